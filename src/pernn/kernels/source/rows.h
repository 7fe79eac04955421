// Float32 products whose left side stays where it is: for small ones packing both sides costs more
// than it saves. The right side is put in panels, or was before.

#pragma once

#include "vectors.h"

#include <ATen/Parallel.h>

namespace pernn {

// Rows of a tile of so many vectors: its sums, a row of the right side and a factor fit the registers.
template <int64_t kVectors>
constexpr int64_t kTileRowsOf =
    kWidth == 16 ? (kVectors > 3 ? 6 : 8) : (kVectors > 3 ? 2 : kVectors > 1 ? 4 : 8);

// out = left · right, or added to it; the right side lies in one piece. Numbers of a row of the left
// side lie `next_inner` apart.
template <int64_t kRows, int64_t kVectors>
inline void multiply_rows(const float* left, int64_t next_row, int64_t next_inner, const float* right,
                          int64_t depth, bool add, float* out, int64_t stride) {
  Vec sums[kRows][kVectors];
  for (auto& row : sums)
    for (auto& sum : row) sum = Vec(0.f);
  for (int64_t inner = 0; inner < depth; ++inner, left += next_inner, right += kVectors * kWidth) {
    Vec numbers[kVectors];
#pragma GCC unroll 4
    for (int64_t at = 0; at < kVectors; ++at) numbers[at] = Vec::loadu(right + at * kWidth);
#pragma GCC unroll 8
    for (int64_t row = 0; row < kRows; ++row) {
      const Vec factor(left[row * next_row]);
#pragma GCC unroll 4
      for (int64_t at = 0; at < kVectors; ++at)
        sums[row][at] = at::vec::fmadd(factor, numbers[at], sums[row][at]);
    }
  }
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int64_t at = 0; at < kVectors; ++at) {
      float* to = out + row * stride + at * kWidth;
      (add ? Vec::loadu(to) + sums[row][at] : sums[row][at]).store(to);
    }
}

// Call with tiles of at most `kMost` of the rows first … last.
template <int64_t kMost, typename Call>
inline void in_tiles(int64_t first, int64_t last, const Call& call) {
  for (; last - first >= kMost; first += kMost) call.template operator()<kMost>(first);
  if constexpr (kMost > 1)
    if (first < last) in_tiles<kMost - 1>(first, last, call);
}

#ifdef PERNN_VECTORS

constexpr int64_t kRowDepth = 96;  // a panel stays in the first cache

struct RowProduct {
  Matrix left, right;
  float* out;
  int64_t stride;
  bool add;

  // Rows first … last of the result, panel by panel, the widest that fit.
  void run(int64_t first, int64_t last) const {
    for (int64_t column = 0; column < right.columns;) {
      const int64_t rest = right.columns - column;
      column += rest > 2 * kWidth ? panel<4>(first, last, column)
                : rest > kWidth   ? panel<2>(first, last, column)
                                  : panel<1>(first, last, column);
    }
  }

  template <int64_t kVectors>
  int64_t panel(int64_t first, int64_t last, int64_t column) const {
    constexpr int64_t kColumns = kVectors * kWidth;
    static thread_local Buffer buffer;
    auto* numbers = buffer.take<float>(kColumns * kRowDepth);
    const Lines lines{right.data, right.columns, right.column_stride, right.row_stride};
    const int64_t count = std::min(kColumns, right.columns - column);
    // Long sums are added up piece by piece, which is more exact than all in a row.
    for (int64_t begin = 0; begin < left.columns; begin += kRowDepth) {
      const int64_t depth = std::min(kRowDepth, left.columns - begin);
      lines.pack<kColumns>(column, column + kColumns, begin, depth, numbers);
      in_tiles<kTileRowsOf<kVectors>>(first, last, [&]<int64_t kRows>(int64_t row) {
        const bool more = add || begin;
        float* to = out + row * stride + column;
        const auto multiply = [&](bool to_add, float* place, int64_t next) {
          multiply_rows<kRows, kVectors>(left.at(row, begin), left.row_stride, left.column_stride,
                                         numbers, depth, to_add, place, next);
        };
        if (count == kColumns) return multiply(more, to, stride);
        alignas(64) float tile[kRows * kColumns];
        multiply(false, tile, kColumns);
        for (int64_t one = 0; one < kRows; ++one)
          for (int64_t at = 0; at < count; ++at) {
            float& sum = to[one * stride + at];
            sum = more ? sum + tile[one * kColumns + at] : tile[one * kColumns + at];
          }
      });
    }
    return kColumns;
  }
};

#endif

}  // namespace pernn
