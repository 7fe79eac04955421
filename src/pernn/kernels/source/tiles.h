// Matrix units that multiply tiles of bfloat16 numbers and add up in float32.
//
// A float32 number is the exact sum of three bfloat16 numbers, x = x₁ + x₂ + x₃, each 2⁻⁹ of the
// one before at most. With three parts, six of the nine products of parts are taken; the others lie
// below 2⁻²⁶ of the whole, under float32's own rounding. With one part, factors are rounded.

#pragma once

#if defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__linux__)
#define PERNN_MATRIX_UNITS

#include "matrix.h"

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace pernn {

constexpr int64_t kTile = 16;          // rows of a tile, and columns of a tile of sums
constexpr int64_t kInner = 32;         // bfloat16 numbers in a row of a tile
constexpr int64_t kPanel = 2 * kTile;  // columns, and rows, that are worked on at once
constexpr int64_t kTileSize = kTile * kInner;

inline bool may_use_units() {
  constexpr int kPermission = 0x1023, kTileData = 18;  // arch_prctl(ARCH_REQ_XCOMP_PERM, …)
  static const bool may = syscall(SYS_arch_prctl, kPermission, kTileData) == 0;
  return may;
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles of this thread, all 16 rows of 64 bytes, for as long as the object lives.
struct Tiles {
  Tiles() {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) config.bytes[tile] = 64, config.rows[tile] = kTile;
    // The intrinsic tells the compiler of the first bytes only: without this it drops the others.
    asm volatile("" ::"r"(&config) : "memory");
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

inline __m512 widen(__m256i numbers) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}

// Split 2 × 16 numbers into parts, each 32 numbers of bfloat16, first `low`'s then `high`'s.
template <int64_t kParts>
inline void split(__m512 low, __m512 high, __m512i parts[kParts]) {
  for (int64_t part = 0; part < kParts; ++part) {
    const __m512i rounded = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    parts[part] = rounded;
    if (part + 1 == kParts) break;
    low = _mm512_sub_ps(low, widen(_mm512_castsi512_si256(rounded)));
    high = _mm512_sub_ps(high, widen(_mm512_extracti64x4_epi64(rounded, 1)));
  }
}

// Two rows of 16 numbers each, as `split` gives them, turned into 16 pairs.
inline __m512i pair_rows(__m512i rows) {
  alignas(64) static const struct Order {
    uint16_t at[kInner];
    Order() : at() {
      for (int64_t column = 0; column < kTile; ++column)
        at[2 * column] = column, at[2 * column + 1] = kTile + column;
    }
  } order;
  return _mm512_permutexvar_epi16(_mm512_load_si512(order.at), rows);
}

// The tiles of sums: 0 and 1 are those of the first 16 rows, 2 and 3 of the next.
#define PERNN_MULTIPLY()        \
  do {                          \
    _tile_dpbf16ps(0, 4, 6);    \
    _tile_dpbf16ps(1, 4, 7);    \
    _tile_dpbf16ps(2, 5, 6);    \
    _tile_dpbf16ps(3, 5, 7);    \
  } while (false)

// 32 rows times a panel, `blocks` tiles deep: put where 32 × 32 numbers lie `stride` apart, or
// added to them. The left tiles lie [rows/16][block][part], the right ones [block][columns/16][part].
template <int64_t kParts>
inline void multiply(const uint16_t* left, int64_t next_rows, const uint16_t* right, int64_t blocks,
                     bool add, float* sums, int64_t stride) {
  const int64_t bytes = stride * sizeof(float);
  constexpr int64_t kAll = kParts * kTileSize;
  if (add) {
    _tile_loadd(0, sums, bytes);
    _tile_loadd(1, sums + kTile, bytes);
    _tile_loadd(2, sums + kTile * stride, bytes);
    _tile_loadd(3, sums + kTile * stride + kTile, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const auto load_left = [&](int64_t part) {
    _tile_loadd(4, left + part * kTileSize, 64);
    _tile_loadd(5, left + next_rows + part * kTileSize, 64);
  };
  const auto load_right = [&](int64_t part) {
    _tile_loadd(6, right + part * kTileSize, 64);
    _tile_loadd(7, right + kAll + part * kTileSize, 64);
  };
  for (int64_t block = 0; block < blocks; ++block, left += kAll, right += 2 * kAll) {
    load_left(0);
    if constexpr (kParts == 3) {
      // From one product to the next only one side changes.
      load_right(2);
      PERNN_MULTIPLY();
      load_right(1);
      PERNN_MULTIPLY();
      load_left(1);
      PERNN_MULTIPLY();
      load_right(0);
      PERNN_MULTIPLY();
      load_left(2);
      PERNN_MULTIPLY();
      load_left(0);
      PERNN_MULTIPLY();
    } else {
      load_right(0);
      PERNN_MULTIPLY();
    }
  }
  _tile_stored(0, sums, bytes);
  _tile_stored(1, sums + kTile, bytes);
  _tile_stored(2, sums + kTile * stride, bytes);
  _tile_stored(3, sums + kTile * stride + kTile, bytes);
}

#undef PERNN_MULTIPLY

}  // namespace pernn

#endif
