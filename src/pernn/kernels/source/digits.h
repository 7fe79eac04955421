// Float32 products by matrix units that multiply 8-bit integers and add them up exactly.
//
// A number of at most 1 becomes a fixed-point number, cut into digits of base 256 in −128 … 127:
// x = (d₀ + d₁/256 + d₂/256² …) / 127. Digits of two numbers are multiplied each with each, products of
// one order (the sum of their places) are added up in one tile, without rounding. Orders above 3 lie
// below 2⁻³⁰ of the largest product. Left rows have four digits, more than float32's, as one row's
// numbers differ more in size than a panel's, whose rows are scaled apart.
//
// Source of the idea: Ootomo, Ozaki and Yokota (2024), "DGEMM on integer matrix multiplication unit".

#pragma once

#include "tiles.h"

#ifdef PERNN_MATRIX_UNITS

#include <algorithm>
#include <cmath>
#include <limits>

namespace pernn {

constexpr int64_t kDeep = 64;  // 8-bit numbers in a row of a tile
constexpr int64_t kLeftDigits = 4, kRightDigits = 3, kOrders = 4;
constexpr int64_t kDigitTile = kTile * kDeep;
constexpr int64_t kMostDeep = 1 << 15;  // three products of two digits each: the sums stay below 2³¹
constexpr float kTop = 127.0f;  // largest first digit
constexpr float kLeftUnit = kTop * (1 << 24), kRightUnit = kTop * (1 << 16);

// A scale taken apart, so that numbers of any size can be divided by it: x / scale = x · 2⁻ᵉ · rest.
struct Divisor {
  float power, rest;

  explicit Divisor(float scale)
      : power(scale > 0 ? -std::floor(std::log2(scale)) : 0),
        rest(scale > 0 ? 1 / std::ldexp(scale, static_cast<int>(power)) : 0) {}
};

inline __m512i fixed_point(__m512 values, __m512 power, __m512 factor) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_scalef_ps(values, power), factor));
}

// Integers whose bytes are digits, the last in the lowest: all but the first have their sign put in.
inline __m512i to_digits(__m512i numbers, int32_t half) {
  const __m512i bias = _mm512_set1_epi32(half);
  return _mm512_xor_si512(_mm512_add_epi32(numbers, bias), bias);
}

// 64 numbers of a row, at most 1 after division: a row of a tile for each digit.
inline void put_left(const __m512 values[4], __m512 power, __m512 factor, int8_t* tile) {
  alignas(64) static const struct Order {
    uint8_t high[64], low[64];
    Order() : high(), low() {
      for (int column = 0; column < 32; ++column) {
        const int byte = column < 16 ? 4 * column : 64 + 4 * (column - 16);
        high[column] = byte + 3, high[32 + column] = byte + 2;
        low[column] = byte + 1, low[32 + column] = byte;
      }
    }
  } order;
  const __m512i high = _mm512_load_si512(order.high), low = _mm512_load_si512(order.low);
  __m512i digits[4], highs[2], lows[2];
  for (int64_t part = 0; part < 4; ++part)
    digits[part] = to_digits(fixed_point(values[part], power, factor), 0x808080);
  for (int64_t pair = 0; pair < 2; ++pair) {
    highs[pair] = _mm512_permutex2var_epi8(digits[2 * pair], high, digits[2 * pair + 1]);
    lows[pair] = _mm512_permutex2var_epi8(digits[2 * pair], low, digits[2 * pair + 1]);
  }
  _mm512_store_si512(tile, _mm512_shuffle_i64x2(highs[0], highs[1], 0x44));
  _mm512_store_si512(tile + kDigitTile, _mm512_shuffle_i64x2(highs[0], highs[1], 0xee));
  _mm512_store_si512(tile + 2 * kDigitTile, _mm512_shuffle_i64x2(lows[0], lows[1], 0x44));
  _mm512_store_si512(tile + 3 * kDigitTile, _mm512_shuffle_i64x2(lows[0], lows[1], 0xee));
}

// Four rows of 16 fixed-point numbers, turned so that a column's four lie together, by digit.
inline void put_right(__m512i rows[4], int8_t* tile) {
  constexpr __mmask64 kOddBytes = 0xaaaaaaaaaaaaaaaa;
  constexpr __mmask32 kOddPairs = 0xaaaaaaaa;
  for (int64_t row = 0; row < 4; ++row) rows[row] = to_digits(rows[row], 0x8080);
  __m512i even[2], odd[2];
  for (int64_t pair = 0; pair < 2; ++pair) {
    const __m512i one = rows[2 * pair], next = rows[2 * pair + 1];
    even[pair] = _mm512_mask_blend_epi8(kOddBytes, one, _mm512_slli_epi32(next, 8));
    odd[pair] = _mm512_mask_blend_epi8(kOddBytes, _mm512_srli_epi32(one, 8), next);
  }
  _mm512_store_si512(tile, _mm512_mask_blend_epi16(kOddPairs, _mm512_srli_epi32(even[0], 16), even[1]));
  _mm512_store_si512(tile + kDigitTile,
                     _mm512_mask_blend_epi16(kOddPairs, odd[0], _mm512_slli_epi32(odd[1], 16)));
  _mm512_store_si512(tile + 2 * kDigitTile,
                     _mm512_mask_blend_epi16(kOddPairs, even[0], _mm512_slli_epi32(even[1], 16)));
}

// 16 rows times 16 columns, `blocks` tiles deep: the sums of each order, [order][row][column]. The left
// tiles lie [block][digit], the right ones too.
inline void multiply_digits(const int8_t* left, const int8_t* right, int64_t blocks, int32_t* sums) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t block = 0; block < blocks; ++block) {
    // The right side streams by, so that the left one stays in the first cache. A sum is not added to
    // twice in a row, where that can be: each addition waits for the last.
    _tile_stream_loadd(4, right, kDeep);
    _tile_loadd(7, left, kDeep);
    _tile_dpbssd(0, 7, 4);
    _tile_stream_loadd(5, right + kDigitTile, kDeep);
    _tile_dpbssd(1, 7, 5);
    _tile_stream_loadd(6, right + 2 * kDigitTile, kDeep);
    _tile_dpbssd(2, 7, 6);
    _tile_loadd(7, left + kDigitTile, kDeep);
    _tile_dpbssd(3, 7, 6);
    _tile_dpbssd(1, 7, 4);
    _tile_dpbssd(2, 7, 5);
    _tile_loadd(7, left + 2 * kDigitTile, kDeep);
    _tile_dpbssd(3, 7, 5);
    _tile_dpbssd(2, 7, 4);
    _tile_loadd(7, left + 3 * kDigitTile, kDeep);
    _tile_dpbssd(3, 7, 4);
    left += kLeftDigits * kDigitTile;
    right += kRightDigits * kDigitTile;
  }
  _tile_stored(0, sums, kTile * sizeof(int32_t));
  _tile_stored(1, sums + kTile * kTile, kTile * sizeof(int32_t));
  _tile_stored(2, sums + 2 * kTile * kTile, kTile * sizeof(int32_t));
  _tile_stored(3, sums + 3 * kTile * kTile, kTile * sizeof(int32_t));
}

// Sums of all orders as float32, times each row's scale: put in their place, or added there.
inline void put_sums(const int32_t* sums, const float* scales, int64_t rows, bool add, float* out,
                     int64_t stride) {
  const __m512 base = _mm512_set1_ps(1.0f / 256);
  for (int64_t row = 0; row < rows; ++row, out += stride) {
    const auto order = [&](int64_t place) {
      return _mm512_cvtepi32_ps(_mm512_load_si512(sums + (place * kTile + row) * kTile));
    };
    __m512 sum = order(kOrders - 1);
    for (int64_t place = kOrders - 2; place >= 0; --place)
      sum = _mm512_fmadd_ps(sum, base, order(place));
    const __m512 scale = _mm512_set1_ps(scales[row] / (kTop * kTop));
    _mm512_storeu_ps(out, add ? _mm512_fmadd_ps(sum, scale, _mm512_loadu_ps(out))
                              : _mm512_mul_ps(sum, scale));
  }
}

}  // namespace pernn

#endif
