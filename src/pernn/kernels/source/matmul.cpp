// Products of two float32 matrices: by matrix units in float32 (three parts for every number), or
// with factors rounded to bfloat16 (one part) and sums in float32; else by vectors in float32.

#include "tiles.h"
#include "vectors.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

namespace pernn {
namespace {

using at::Tensor;

constexpr int64_t kTallRows = 512;

#ifdef PERNN_MATRIX_UNITS

constexpr int64_t kDepth = 512;    // inner numbers at a time: then a wide right side stays in the
constexpr int64_t kColumns = 512;  // second cache while the left one passes by

__mmask16 first(int64_t count) {
  return count >= kTile ? 0xffff : count <= 0 ? 0 : (__mmask16)((1u << count) - 1);
}

// 16 rows of 16 numbers of 32 bits: rows become columns.
void transpose(__m512i rows[kTile]) {
  __m512i pairs[kTile], fours[kTile];
  for (int64_t row = 0; row < kTile; row += 2) {
    pairs[row] = _mm512_unpacklo_epi32(rows[row], rows[row + 1]);
    pairs[row + 1] = _mm512_unpackhi_epi32(rows[row], rows[row + 1]);
  }
  for (int64_t row = 0; row < kTile; row += 4) {
    fours[row] = _mm512_unpacklo_epi64(pairs[row], pairs[row + 2]);
    fours[row + 1] = _mm512_unpackhi_epi64(pairs[row], pairs[row + 2]);
    fours[row + 2] = _mm512_unpacklo_epi64(pairs[row + 1], pairs[row + 3]);
    fours[row + 3] = _mm512_unpackhi_epi64(pairs[row + 1], pairs[row + 3]);
  }
  for (int64_t row = 0; row < 4; ++row) {
    const __m512i a = _mm512_shuffle_i32x4(fours[row], fours[row + 4], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(fours[row], fours[row + 4], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(fours[row + 8], fours[row + 12], 0x88);
    const __m512i d = _mm512_shuffle_i32x4(fours[row + 8], fours[row + 12], 0xdd);
    rows[row] = _mm512_shuffle_i32x4(a, c, 0x88);
    rows[row + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
    rows[row + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
    rows[row + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
}

// 16 lines of 16 numbers: rows of the matrix if they lie in one piece, else its columns, turned.
// What is beyond the matrix is zero.
void load_square(const Matrix& from, int64_t row, int64_t column, __m512 square[kTile]) {
  const bool by_rows = from.by_rows();
  const int64_t lines = by_rows ? from.rows - row : from.columns - column;
  const __mmask16 kept = first(by_rows ? from.columns - column : from.rows - row);
  __m512i numbers[kTile];
  for (int64_t line = 0; line < kTile; ++line)
    numbers[line] = line < lines ? _mm512_maskz_loadu_epi32(
                                       kept, by_rows ? from.at(row + line, column)
                                                     : from.at(row, column + line))
                                 : _mm512_setzero_si512();
  if (!by_rows) transpose(numbers);
  for (int64_t line = 0; line < kTile; ++line) square[line] = _mm512_castsi512_ps(numbers[line]);
}

// 32 rows, `depth` deep, to tiles [rows/16][depth/32][part][16][32].
template <int64_t kParts>
void split_left(const Matrix& from, int64_t row, int64_t column, int64_t depth, uint16_t* to) {
  for (int64_t half = 0; half < 2; ++half) {
    for (int64_t inner = 0; inner < depth; inner += kInner, to += kParts * kTileSize) {
      __m512 low[kTile], high[kTile];
      load_square(from, row + half * kTile, column + inner, low);
      load_square(from, row + half * kTile, column + inner + kTile, high);
      for (int64_t line = 0; line < kTile; ++line) {
        __m512i parts[kParts];
        split<kParts>(low[line], high[line], parts);
        for (int64_t part = 0; part < kParts; ++part)
          _mm512_store_si512(to + part * kTileSize + line * kInner, parts[part]);
      }
    }
  }
}

// 32 columns, `depth` deep, to tiles [depth/32][columns/16][part][16][2 × 16], rows two by two.
template <int64_t kParts>
void split_right(const Matrix& from, int64_t row, int64_t column, int64_t depth, uint16_t* to) {
  for (int64_t inner = 0; inner < depth; inner += kInner) {
    for (int64_t half = 0; half < 2; ++half, to += kParts * kTileSize) {
      const int64_t start = column + half * kTile;
      if (from.by_rows()) {
        for (int64_t pair = 0; pair < kTile; ++pair) {
          const int64_t at = row + inner + 2 * pair;
          const __mmask16 kept = first(from.columns - start);
          const auto load = [&](int64_t one) {
            return one < from.rows ? _mm512_maskz_loadu_ps(kept, from.at(one, start))
                                   : _mm512_setzero_ps();
          };
          __m512i parts[kParts];
          split<kParts>(load(at), load(at + 1), parts);
          for (int64_t part = 0; part < kParts; ++part)
            _mm512_store_si512(to + part * kTileSize + pair * kInner, pair_rows(parts[part]));
        }
        continue;
      }
      // Pairs lie together in a column: split columns, then turn the pairs.
      __m512i columns[kParts][kTile];
      for (int64_t one = 0; one < kTile; ++one) {
        const bool inside = start + one < from.columns;
        const auto load = [&](int64_t at) {
          return inside ? _mm512_maskz_loadu_ps(first(from.rows - at), from.at(at, start + one))
                        : _mm512_setzero_ps();
        };
        __m512i parts[kParts];
        split<kParts>(load(row + inner), load(row + inner + kTile), parts);
        for (int64_t part = 0; part < kParts; ++part) columns[part][one] = parts[part];
      }
      for (int64_t part = 0; part < kParts; ++part) {
        transpose(columns[part]);
        for (int64_t line = 0; line < kTile; ++line)
          _mm512_store_si512(to + part * kTileSize + line * kInner, columns[part][line]);
      }
    }
  }
}

struct Product {
  Matrix left, right;
  float* out;
  int64_t stride;
  bool add;

  // Rows and columns first … last of the result.
  template <int64_t kParts>
  void run(int64_t first_row, int64_t last_row, int64_t first_column, int64_t last_column) const {
    static thread_local Buffer left_buffer, right_buffer;
    auto* rows = left_buffer.take<uint16_t>(kPanel * kDepth * kParts);
    auto* panels = right_buffer.take<uint16_t>(kColumns * kDepth * kParts);
    const Tiles tiles;
    for (int64_t begin = 0; begin < left.columns; begin += kDepth) {
      const int64_t depth = (std::min(kDepth, left.columns - begin) + kInner - 1) / kInner * kInner;
      for (int64_t wide = first_column; wide < last_column; wide += kColumns) {
        const int64_t end = std::min(wide + kColumns, last_column);
        for (int64_t column = wide; column < end; column += kPanel)
          split_right<kParts>(right, begin, column, depth, panels + (column - wide) * depth * kParts);
        for (int64_t row = first_row; row < last_row; row += kPanel) {
          split_left<kParts>(left, row, begin, depth, rows);
          for (int64_t column = wide; column < end; column += kPanel)
            multiply_square<kParts>(rows, panels + (column - wide) * depth * kParts, depth, row,
                                    std::min(kPanel, last_row - row), column,
                                    std::min(kPanel, end - column), add || begin);
        }
      }
    }
  }

  template <int64_t kParts>
  void multiply_square(const uint16_t* rows, const uint16_t* panel, int64_t depth, int64_t row,
                       int64_t num_rows, int64_t column, int64_t num_columns, bool more) const {
    float* place = out + row * stride + column;
    const int64_t next = depth * kTile * kParts, blocks = depth / kInner;
    if (num_rows == kPanel && num_columns == kPanel && !more) {
      multiply<kParts>(rows, next, panel, blocks, false, place, stride);
      return;
    }
    // Long sums are added up piece by piece, which is more exact than all in a row.
    alignas(64) float square[kPanel * kPanel];
    multiply<kParts>(rows, next, panel, blocks, false, square, kPanel);
    for (int64_t one = 0; one < num_rows; ++one) {
      for (int64_t half = 0; half < kPanel; half += kTile) {
        const __mmask16 kept = first(num_columns - half);
        float* to = place + one * stride + half;
        __m512 sum = _mm512_load_ps(square + one * kPanel + half);
        if (more) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(kept, to));
        _mm512_mask_storeu_ps(to, kept, sum);
      }
    }
  }
};

#endif

// Threads share the rows if there are many: each rearranges the right side for itself.
template <typename Run>
void share(int64_t rows, int64_t columns, int64_t row_panel, int64_t column_panel, Run run) {
  const int64_t threads = at::get_num_threads();
  const bool by_rows = rows / threads >= kTallRows || rows >= columns;
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t size = by_rows ? rows : columns, panel = by_rows ? row_panel : column_panel;
      const int64_t from = cut(size, panel, part, threads), to = cut(size, panel, part + 1, threads);
      if (from == to) continue;
      by_rows ? run(from, to, int64_t{0}, columns) : run(int64_t{0}, rows, from, to);
    }
  });
}

}  // namespace

bool multiply_by_units(const Matrix& left, const Matrix& right, float* out, int64_t stride, int64_t parts,
                       bool add) {
#ifdef PERNN_MATRIX_UNITS
  if (may_use_units()) {
    const Product product{left, right, out, stride, add};
    const auto run = parts == 3 ? &Product::run<3> : &Product::run<1>;
    share(left.rows, right.columns, kPanel, kPanel, [&](auto... range) { (product.*run)(range...); });
    return true;
  }
#endif
  return false;
}

namespace {

// Parts of a number that `matmul` takes: 3 stands for float32, 1 for factors rounded to bfloat16.
std::vector<int64_t> product_parts() {
#ifdef PERNN_MATRIX_UNITS
  if (may_use_units()) return {1, 3};
#endif
#ifdef PERNN_VECTORS
  return {3};
#else
  return {};
#endif
}

// out = left · right, or added to it.
void matmul(Tensor out, const Tensor& left, const Tensor& right, int64_t parts, bool add) {
  const auto known = product_parts();
  TORCH_CHECK(std::count(known.begin(), known.end(), parts), "no products of ", parts, " part(s) here");
  TORCH_CHECK(left.dim() == 2 && right.dim() == 2 && out.dim() == 2 && left.size(1) == right.size(0) &&
                  out.size(0) == left.size(0) && out.size(1) == right.size(1) && out.stride(1) == 1,
              "shapes do not fit");
  if (!left.size(1)) {
    if (!add) out.zero_();
    return;
  }
  if (!out.numel()) return;
  float* to = out.mutable_data_ptr<float>();
  if (multiply_by_units(Matrix(left), Matrix(right), to, out.stride(0), parts, add)) return;
#ifdef PERNN_VECTORS
  const VectorProduct product{Matrix(left), Matrix(right), to, out.stride(0), add};
  share(out.size(0), out.size(1), kTileRows, kTileColumns,
        [&](auto... range) { product.run(range...); });
#endif
}

TORCH_LIBRARY_FRAGMENT(pernn, library) {
  library.def("product_parts", &product_parts);
  library.def("matmul(Tensor(a!) out, Tensor left, Tensor right, int parts, bool add) -> ()", &matmul);
}

}  // namespace
}  // namespace pernn
