// Products of a batch of matrices with Σ_g diag(slope_g) W_g, in float32, by matrix units.
//
// The matrix belongs to one sequence and one step: it is made panel by panel where it is used,
// already split, and never stored whole.

#include "tiles.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>

namespace pernn {
namespace {

using at::Tensor;

#ifdef PERNN_MATRIX_UNITS

constexpr int64_t kParts = 3;

// What happens to the rows of a source on its way into a product: `other` ⊙ `leak` is added to them
// before, and afterwards they are multiplied with `forget`. All may be absent.
struct Passing {
  const float *other, *leak, *forget;
};

// Up to 32 rows of float32 to tiles: [rows/16][columns/32][part][16][32]; missing rows are zero.
void split_rows(float* from, int64_t rows, int64_t columns, const Passing& passing, uint16_t* to) {
  for (int64_t row = 0; row < kPanel; ++row) {
    uint16_t* tile = to + row / kTile * (columns / kInner) * kParts * kTileSize + row % kTile * kInner;
    for (int64_t column = 0; column < columns; column += kInner, tile += kParts * kTileSize) {
      __m512i parts[kParts] = {};
      if (row < rows) {
        __m512 values[2];
        for (int64_t half = 0; half < 2; ++half) {
          const int64_t at = column + half * kTile;
          float* place = from + row * columns + at;
          values[half] = _mm512_loadu_ps(place);
          if (passing.other)
            values[half] = _mm512_fmadd_ps(_mm512_loadu_ps(passing.other + row * columns + at),
                                           _mm512_loadu_ps(passing.leak + at), values[half]);
          const __m512 left = passing.forget
                                  ? _mm512_mul_ps(values[half], _mm512_loadu_ps(passing.forget + at))
                                  : values[half];
          if (passing.other || passing.forget) _mm512_storeu_ps(place, left);
        }
        split<kParts>(values[0], values[1], parts);
      }
      for (int64_t part = 0; part < kParts; ++part)
        _mm512_store_si512(tile + part * kTileSize, parts[part]);
    }
  }
}

// What belongs to one source of one sequence.
struct Factor {
  const float* weights;  // [gate][panel][row][32]
  const float* slopes;   // [gate][row]
  const float* diagonal;
  at::IntArrayRef gates;
  int64_t size;

  __m512 entry(int64_t row, int64_t panel, int64_t half) const {
    __m512 sum = _mm512_setzero_ps();
    for (const int64_t gate : gates) {
      const float* at = weights + ((gate * (size / kPanel) + panel) * size + row) * kPanel;
      sum = _mm512_fmadd_ps(_mm512_set1_ps(slopes[gate * size + row]),
                            _mm512_loadu_ps(at + half * kTile), sum);
    }
    const int64_t column = row - panel * kPanel - half * kTile;
    if (diagonal && 0 <= column && column < kTile)
      sum = _mm512_mask_add_ps(sum, __mmask16(1 << column), sum, _mm512_set1_ps(diagonal[row]));
    return sum;
  }

  // A panel as tiles: [rows/32][half][part][16][2 × 16], rows two by two as the units want them.
  void split_panel(int64_t panel, uint16_t* to) const {
    for (int64_t row = 0; row < size; row += 2) {
      for (int64_t half = 0; half < 2; ++half) {
        __m512i parts[kParts];
        split<kParts>(entry(row, panel, half), entry(row + 1, panel, half), parts);
        uint16_t* tile = to + (row / kInner * 2 + half) * kParts * kTileSize + row % kInner / 2 * kInner;
        for (int64_t part = 0; part < kParts; ++part)
          _mm512_store_si512(tile + part * kTileSize, pair_rows(parts[part]));
      }
    }
  }
};

void multiply_rows(float* source, int64_t rows, const Factor& factor, Passing passing, bool add,
                   float* out) {
  static thread_local Buffer left_buffer, right_buffer;
  const int64_t size = factor.size, panel_size = kPanel * size * kParts;
  uint16_t* left = left_buffer.take<uint16_t>(panel_size);
  uint16_t* right = right_buffer.take<uint16_t>(size * size * kParts);
  for (int64_t panel = 0; panel < size / kPanel; ++panel)
    factor.split_panel(panel, right + panel * panel_size);
  const Tiles tiles;
  // All panels stay in the cache while 32 rows at a time pass by.
  for (int64_t row = 0; row < rows; row += kPanel) {
    const int64_t count = std::min(kPanel, rows - row);
    split_rows(source + row * size, count, size, passing, left);
    if (passing.other) passing.other += kPanel * size;
    for (int64_t panel = 0; panel < size / kPanel; ++panel) {
      float* sums = out + row * size + panel * kPanel;
      const uint16_t* columns = right + panel * panel_size;
      if (count == kPanel) {
        multiply<kParts>(left, panel_size / 2, columns, size / kInner, add, sums, size);
        continue;
      }
      alignas(64) float rest[kPanel * kPanel] = {};
      for (int64_t one = 0; one < count; ++one)
        std::memcpy(rest + one * kPanel, sums + one * size, kPanel * sizeof(float));
      multiply<kParts>(left, panel_size / 2, columns, size / kInner, add, rest, kPanel);
      for (int64_t one = 0; one < count; ++one)
        std::memcpy(sums + one * size, rest + one * kPanel, kPanel * sizeof(float));
    }
  }
}

#endif

// Columns that a panel of `multiply_factored` has; 0 where this machine has no matrix units.
int64_t factor_panel() {
#ifdef PERNN_MATRIX_UNITS
  if (may_use_units()) return kPanel;
#endif
  return 0;
}

#ifdef PERNN_MATRIX_UNITS
const float* at_sequence(const std::optional<Tensor>& tensor, int64_t index) {
  return tensor ? tensor->const_data_ptr<float>() + index * (tensor->numel() / tensor->size(0))
                : nullptr;
}
#endif

// source[b] += other[b] ⊙ leak[b];
// out[b] = source[b] · (Σ_{g ∈ gates} diag(slopes[b, g]) W_g + diag(diagonal[b])), or added to it;
// source[b] *= forget[b].
void multiply_factored(Tensor out, Tensor source, const Tensor& slopes, const Tensor& weights,
                       at::IntArrayRef gates, bool add, const std::optional<Tensor>& diagonal,
                       const std::optional<Tensor>& other, const std::optional<Tensor>& leak,
                       const std::optional<Tensor>& forget) {
#ifdef PERNN_MATRIX_UNITS
  const int64_t batch = source.size(0), rows = source.size(1), size = source.size(2);
  const int64_t all = slopes.size(1);
  TORCH_CHECK(may_use_units(), "no matrix units here");
  TORCH_CHECK(size % kPanel == 0 && source.is_contiguous() && out.is_contiguous() &&
                  out.sizes() == source.sizes() && weights.is_contiguous() && slopes.is_contiguous() &&
                  slopes.numel() == batch * all * size && weights.numel() == all * size * size,
              "shapes do not fit");
  for (const int64_t gate : gates) TORCH_CHECK(0 <= gate && gate < all, "no gate ", gate);
  for (const auto& vector : {diagonal, leak, forget})
    TORCH_CHECK(!vector || (vector->is_contiguous() && vector->numel() == batch * size));
  TORCH_CHECK(other.has_value() == leak.has_value() &&
              (!other || (other->is_contiguous() && other->sizes() == source.sizes())));
  float *sums = out.mutable_data_ptr<float>(), *from = source.mutable_data_ptr<float>();
  const float* matrices = weights.const_data_ptr<float>();
  at::parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t one = begin; one < end; ++one) {
      const Factor factor{matrices, at_sequence(slopes, one), at_sequence(diagonal, one), gates, size};
      const Passing passing{at_sequence(other, one), at_sequence(leak, one), at_sequence(forget, one)};
      multiply_rows(from + one * rows * size, rows, factor, passing, add, sums + one * rows * size);
    }
  });
#else
  TORCH_CHECK(false, "no matrix units here");
#endif
}

TORCH_LIBRARY_FRAGMENT(pernn, library) {
  library.def("factor_panel", &factor_panel);
  library.def(
      "multiply_factored(Tensor(a!) out, Tensor(b!) source, Tensor slopes, Tensor weights, "
      "int[] gates, bool add, Tensor? diagonal, Tensor? other, Tensor? leak, Tensor? forget) -> ()",
      &multiply_factored);
}

}  // namespace
}  // namespace pernn
