// Float32 products by vector instructions, for processors without matrix units: AVX-512 or AVX2.
//
// A tile of sums stays in registers while one column of the left side and one row of the right pass
// by; both sides are put in panels first, so that they pass in one piece.

#pragma once

#include "functions.h"
#include "matrix.h"

#if defined(CPU_CAPABILITY_AVX512) || defined(CPU_CAPABILITY_AVX2)
#define PERNN_VECTORS

namespace pernn {

// 24 or 12 registers of sums; the others hold a row of the right side and one number of the left.
constexpr int64_t kTileVectors = 3;
constexpr int64_t kTileRows = kWidth == 16 ? 8 : 4;
constexpr int64_t kTileColumns = kTileVectors * kWidth;
constexpr int64_t kBlockDepth = 160;  // a block of each side and of the sums stay in the second cache
constexpr int64_t kBlockRows = 384;
constexpr int64_t kBlockColumns = 528;
static_assert(kBlockRows % kTileRows == 0 && kBlockColumns % kTileColumns == 0);

// Rows of a tile of so many vectors: its sums, a row of the right side and a factor fit the registers.
template <int64_t kVectors>
constexpr int64_t kTileRowsOf =
    kWidth == 16 ? (kVectors > 3 ? 6 : 8) : (kVectors > 3 ? 2 : kVectors > 1 ? 4 : 8);

// out = left · right, or added to it. Numbers of a row of the left side lie `next_inner` apart, rows of
// the right one `next_right`: in one piece unless told otherwise.
template <int64_t kRows, int64_t kVectors>
inline void multiply_rows(const float* left, int64_t next_row, int64_t next_inner, const float* right,
                          int64_t depth, bool add, float* out, int64_t stride,
                          int64_t next_right = kVectors * kWidth) {
  Vec sums[kRows][kVectors];
  for (auto& row : sums)
    for (auto& sum : row) sum = Vec(0.f);
  for (int64_t inner = 0; inner < depth; ++inner, left += next_inner, right += next_right) {
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

// Numbers of a tile to their place, or added to what is there.
inline void put_tile(const float* tile, int64_t next, int64_t rows, int64_t columns, bool add, float* out,
                     int64_t stride) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t at = 0; at < columns; ++at) {
      float& to = out[row * stride + at];
      to = add ? to + tile[row * next + at] : tile[row * next + at];
    }
}

// Lines first … of a matrix, `depth` deep, to panels [lines/kLines][depth][kLines]: a line is a row
// of the left side or a column of the right one. What is beyond the matrix is zero.
struct Lines {
  const float* data;
  int64_t count, line_stride, depth_stride;

  template <int64_t kLines>
  void pack(int64_t first, int64_t last, int64_t begin, int64_t depth, float* to) const {
    if (line_stride != 1) {
      for (int64_t line = first; line < last; line += kLines, to += kLines * depth)
        turn<kLines>(data + line * line_stride + begin * depth_stride, std::min(kLines, count - line),
                     depth, to);
      return;
    }
    // Some panels at a time: each visit of a page reads several cache lines in a row.
    constexpr int64_t kGroup = std::max<int64_t>(1, 128 / kLines) * kLines;
    for (int64_t group = first; group < last; group += kGroup) {
      const int64_t end = std::min(group + kGroup, last);
      for (int64_t inner = 0; inner < depth; ++inner) {
        const float* from = data + (begin + inner) * depth_stride;
        for (int64_t line = group; line < end; line += kLines) {
          float* place = to + (line - first) * depth + inner * kLines;
          if (count - line >= kLines)
            for (int64_t at = 0; at < kLines; ++at) place[at] = from[line + at];
          else
            for (int64_t at = 0; at < kLines; ++at) place[at] = line + at < count ? from[line + at] : 0;
        }
      }
    }
  }

 private:
  template <int64_t kLines>
  void turn(const float* from, int64_t kept, int64_t depth, float* to) const {
    if (kept < kLines) std::fill(to, to + kLines * depth, 0.f);
    int64_t whole = 0;
    if constexpr (kLines % kWidth == 0) {
      whole = kept == kLines ? depth / kWidth * kWidth : 0;
      for (int64_t inner = 0; inner < whole; inner += kWidth)
        for (int64_t line = 0; line < kLines; line += kWidth)
          at::vec::transpose_mxn<float, kWidth, kWidth>(from + line * line_stride + inner, line_stride,
                                                        to + inner * kLines + line, kLines);
    }
    for (int64_t line = 0; line < kept; ++line)
      for (int64_t inner = whole; inner < depth; ++inner)
        to[inner * kLines + line] = from[line * line_stride + inner * depth_stride];
  }
};

struct VectorProduct {
  Matrix left, right;
  float* out;
  int64_t stride;
  bool add;

  // Rows and columns first … last of the result.
  void run(int64_t first_row, int64_t last_row, int64_t first_column, int64_t last_column) const {
    static thread_local Buffer left_buffer, right_buffer;
    auto* rows = left_buffer.take<float>(kBlockRows * kBlockDepth);
    auto* columns = right_buffer.take<float>(kBlockColumns * kBlockDepth);
    const Lines lefts{left.data, left.rows, left.row_stride, left.column_stride};
    const Lines rights{right.data, right.columns, right.column_stride, right.row_stride};
    for (int64_t wide = first_column; wide < last_column; wide += kBlockColumns) {
      const int64_t end = std::min(wide + kBlockColumns, last_column);
      for (int64_t tall = first_row; tall < last_row; tall += kBlockRows) {
        const int64_t bottom = std::min(tall + kBlockRows, last_row);
        for (int64_t begin = 0; begin < left.columns; begin += kBlockDepth) {
          const int64_t depth = std::min(kBlockDepth, left.columns - begin);
          rights.pack<kTileColumns>(wide, end, begin, depth, columns);
          lefts.pack<kTileRows>(tall, bottom, begin, depth, rows);
          for (int64_t column = wide; column < end; column += kTileColumns)
            for (int64_t row = tall; row < bottom; row += kTileRows)
              put(rows + (row - tall) * depth, columns + (column - wide) * depth, depth, row,
                  std::min(kTileRows, bottom - row), column, std::min(kTileColumns, end - column),
                  add || begin);
        }
      }
    }
  }

  // Long sums are added up piece by piece, which is more exact than all in a row.
  void put(const float* rows, const float* columns, int64_t depth, int64_t row, int64_t num_rows,
           int64_t column, int64_t num_columns, bool more) const {
    float* place = out + row * stride + column;
    const auto multiply = [&](bool to_add, float* to, int64_t next) {
      multiply_rows<kTileRows, kTileVectors>(rows, 1, kTileRows, columns, depth, to_add, to, next);
    };
    if (num_rows == kTileRows && num_columns == kTileColumns) {
      // The sums before are needed last; their way from the second cache is long.
      for (int64_t one = 0; one < kTileRows; ++one)
        for (int64_t at = 0; at < kTileVectors; ++at)
          __builtin_prefetch(place + one * stride + at * kWidth, 1);
      return multiply(more, place, stride);
    }
    alignas(64) float tile[kTileRows * kTileColumns];
    multiply(false, tile, kTileColumns);
    put_tile(tile, kTileColumns, num_rows, num_columns, more, place, stride);
  }
};

// For small products packing both sides costs more than it saves: the left one stays where it is.
constexpr int64_t kRowDepth = 96;  // a panel stays in the first cache
constexpr int64_t kFewRows = 64;

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
    auto* packed = buffer.take<float>(kColumns * kRowDepth);
    const Lines lines{right.data, right.columns, right.column_stride, right.row_stride};
    const int64_t count = std::min(kColumns, right.columns - column);
    // For few rows the right side stays, too, where its cache lines are whole and fill the first cache
    // evenly.
    const bool stays = last - first <= kFewRows && count == kColumns && right.column_stride == 1 &&
                       right.row_stride % 16 == 0 && right.row_stride % 128 &&
                       reinterpret_cast<uintptr_t>(right.at(0, column)) % 64 == 0;
    // Long sums are added up piece by piece, which is more exact than all in a row.
    for (int64_t begin = 0; begin < left.columns; begin += kRowDepth) {
      const int64_t depth = std::min(kRowDepth, left.columns - begin);
      if (!stays) lines.pack<kColumns>(column, column + kColumns, begin, depth, packed);
      in_tiles<kTileRowsOf<kVectors>>(first, last, [&]<int64_t kRows>(int64_t row) {
        const bool more = add || begin;
        float* to = out + row * stride + column;
        const auto multiply = [&](bool to_add, float* place, int64_t next) {
          const float* from = left.at(row, begin);
          if (stays)
            multiply_rows<kRows, kVectors>(from, left.row_stride, left.column_stride,
                                           right.at(begin, column), depth, to_add, place, next,
                                           right.row_stride);
          else
            multiply_rows<kRows, kVectors>(from, left.row_stride, left.column_stride, packed, depth,
                                           to_add, place, next);
        };
        if (count == kColumns) return multiply(more, to, stride);
        alignas(64) float tile[kRows * kColumns];
        multiply(false, tile, kColumns);
        put_tile(tile, kColumns, kRows, count, more, to, stride);
      });
    }
    return kColumns;
  }
};

}  // namespace pernn

#endif
