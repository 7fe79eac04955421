// Products of a batch of matrices with Σ_g diag(slope_g) W_g, in float32, by matrix units.
//
// The matrix belongs to one sequence and one step: it is made panel by panel where it is used,
// already cut into digits, and never stored whole.

#include "digits.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>

namespace pernn {
namespace {

using at::Tensor;

#ifdef PERNN_MATRIX_UNITS

// What happens to the rows of a source on their way into a product: `other` ⊙ `leak` is added to them
// before, `keep` ⊙ them is added to the result, and afterwards they are multiplied with `forget`. All
// may be absent.
struct Passing {
  const float *other, *leak, *keep, *forget;

  // One row; what is to be multiplied is left in `source`, what remains goes into `values`.
  void pass(float* values, const float* beside, int64_t size, bool add, float* out, float* source) const {
    for (int64_t at = 0; at < size; at += kTile) {
      __m512 value = _mm512_loadu_ps(values + at);
      if (beside)
        value = _mm512_fmadd_ps(_mm512_loadu_ps(beside + at), _mm512_loadu_ps(leak + at), value);
      _mm512_store_ps(source + at, value);
      if (keep) {
        const __m512 kept = _mm512_mul_ps(value, _mm512_loadu_ps(keep + at));
        _mm512_storeu_ps(out + at, add ? _mm512_add_ps(kept, _mm512_loadu_ps(out + at)) : kept);
      }
      if (forget) value = _mm512_mul_ps(value, _mm512_loadu_ps(forget + at));
      if (beside || forget) _mm512_storeu_ps(values + at, value);
    }
  }
};

// What belongs to one source of one sequence.
struct Factor {
  const float* weights;  // [gate][panel][row][16]
  const float* largest;  // [gate][row]: of the weights' magnitudes
  const float* slopes;   // [gate][row]
  at::IntArrayRef gates;
  int64_t size;

  int64_t blocks() const { return (size + kDeep - 1) / kDeep; }

  // A bound of each row's magnitudes: rows are divided by it, and columns of the left side multiplied.
  void bound_rows(float* bounds) const {
    for (int64_t row = 0; row < size; ++row) {
      bounds[row] = 0;
      for (const int64_t gate : gates)
        bounds[row] += std::abs(slopes[gate * size + row]) * largest[gate * size + row];
    }
  }

  // A panel as tiles: [block][digit][16][16 × 4], four rows together as the units want them.
  void split_panel(int64_t panel, const Divisor* bounds, int8_t* to) const {
    switch (gates.size()) {
      case 1: return split_panel<1>(panel, bounds, to);
      case 2: return split_panel<2>(panel, bounds, to);
      case 3: return split_panel<3>(panel, bounds, to);
      default: return split_panel<4>(panel, bounds, to);
    }
  }

 private:
  template <int kGates>
  void split_panel(int64_t panel, const Divisor* bounds, int8_t* to) const {
    const float *columns[kGates], *slope[kGates];
    for (int gate = 0; gate < kGates; ++gate) {
      columns[gate] = weights + (gates[gate] * (size / kTile) + panel) * size * kTile;
      slope[gate] = slopes + gates[gate] * size;
    }
    for (int64_t row = 0; row < blocks() * kDeep; row += 4) {
      __m512i rows[4] = {};
      for (int64_t one = row; one < row + 4 && one < size; ++one) {
        __m512 sum = _mm512_setzero_ps();
        for (int gate = 0; gate < kGates; ++gate)
          sum = _mm512_fmadd_ps(_mm512_set1_ps(slope[gate][one]),
                                _mm512_loadu_ps(columns[gate] + one * kTile), sum);
        rows[one - row] = fixed_point(sum, _mm512_set1_ps(bounds[one].power),
                                      _mm512_set1_ps(bounds[one].rest * kRightUnit));
      }
      put_right(rows, to + row / kDeep * kRightDigits * kDigitTile + row % kDeep / 4 * kDeep);
    }
  }
};

// A row to its place in tiles [block][digit][16][64]; gives what the digits are to be multiplied with.
float split_row(const float* source, const float* bounds, int64_t size, float* scaled, int8_t* to) {
  __m512 largest = _mm512_setzero_ps();
  __mmask16 odd = 0;
  for (int64_t at = 0; at < size; at += kTile) {
    const __m512 value = _mm512_mul_ps(_mm512_load_ps(source + at), _mm512_load_ps(bounds + at));
    _mm512_store_ps(scaled + at, value);
    largest = _mm512_max_ps(largest, _mm512_abs_ps(value));
    odd |= _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  }
  const float scale = _mm512_reduce_max_ps(largest);
  const bool finite = !odd && scale <= std::numeric_limits<float>::max();
  const Divisor divisor(finite ? scale : 0);
  const __m512 power = _mm512_set1_ps(divisor.power);
  const __m512 factor = _mm512_set1_ps(divisor.rest * kLeftUnit);
  for (int64_t at = 0; at < (size + kDeep - 1) / kDeep * kDeep; at += kDeep) {
    __m512 values[4];
    for (int64_t part = 0; part < 4; ++part)
      values[part] = at + part * kTile < size && finite ? _mm512_load_ps(scaled + at + part * kTile)
                                                        : _mm512_setzero_ps();
    put_left(values, power, factor, to + at / kDeep * kLeftDigits * kDigitTile);
  }
  // What is no number stays none.
  return finite ? scale : std::numeric_limits<float>::quiet_NaN();
}

void multiply_rows(float* source, int64_t rows, const Factor& factor, const Passing& passing, bool add,
                   float* out) {
  static thread_local Buffer left_buffer, right_buffer, row_buffer;
  const int64_t size = factor.size, depth = factor.blocks() * kDigitTile;
  int8_t* left = left_buffer.take<int8_t>(depth * kLeftDigits);
  int8_t* right = right_buffer.take<int8_t>(size / kTile * depth * kRightDigits);
  float* bounds = row_buffer.take<float>(5 * size);
  float *values = bounds + size, *scaled = values + size;
  Divisor* divisors = reinterpret_cast<Divisor*>(scaled + size);
  factor.bound_rows(bounds);
  for (int64_t at = 0; at < size; ++at) divisors[at] = Divisor(bounds[at]);
  for (int64_t panel = 0; panel < size / kTile; ++panel)
    factor.split_panel(panel, divisors, right + panel * depth * kRightDigits);
  const Tiles tiles;
  alignas(64) int32_t sums[kOrders * kTile * kTile];
  float scales[kTile];
  // All panels stay in the cache while 16 rows at a time pass by.
  for (int64_t row = 0; row < rows; row += kTile) {
    const int64_t count = std::min(kTile, rows - row);
    for (int64_t one = 0; one < count; ++one) {
      const int64_t at = (row + one) * size;
      const float* beside = passing.other ? passing.other + at : nullptr;
      passing.pass(source + at, beside, size, add, out + at, values);
      scales[one] = split_row(values, bounds, size, scaled, left + one * kDeep);
    }
    for (int64_t panel = 0; panel < size / kTile; ++panel) {
      multiply_digits(left, right + panel * depth * kRightDigits, factor.blocks(), sums);
      put_sums(sums, scales, count, add || passing.keep, out + row * size + panel * kTile, size);
    }
  }
}

#endif

// Columns that a panel of `multiply_factored` has; 0 where this machine has no matrix units.
int64_t factor_panel() {
#ifdef PERNN_MATRIX_UNITS
  if (may_use_units()) return kTile;
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
                       const Tensor& largest, at::IntArrayRef gates, bool add,
                       const std::optional<Tensor>& diagonal, const std::optional<Tensor>& other,
                       const std::optional<Tensor>& leak, const std::optional<Tensor>& forget) {
#ifdef PERNN_MATRIX_UNITS
  const int64_t batch = source.size(0), rows = source.size(1), size = source.size(2);
  const int64_t all = slopes.size(1);
  TORCH_CHECK(may_use_units(), "no matrix units here");
  TORCH_CHECK(size % kTile == 0 && source.is_contiguous() && out.is_contiguous() &&
                  out.sizes() == source.sizes() && weights.is_contiguous() && slopes.is_contiguous() &&
                  slopes.numel() == batch * all * size && weights.numel() == all * size * size &&
                  largest.is_contiguous() && largest.numel() == all * size,
              "shapes do not fit");
  TORCH_CHECK(size <= kMostDeep, size, " columns are too many for exact sums");
  TORCH_CHECK(1 <= gates.size() && gates.size() <= 4, gates.size(), " gates");
  for (const int64_t gate : gates) TORCH_CHECK(0 <= gate && gate < all, "no gate ", gate);
  for (const auto& vector : {diagonal, leak, forget})
    TORCH_CHECK(!vector || (vector->is_contiguous() && vector->numel() == batch * size));
  TORCH_CHECK(other.has_value() == leak.has_value() &&
              (!other || (other->is_contiguous() && other->sizes() == source.sizes())));
  float *sums = out.mutable_data_ptr<float>(), *from = source.mutable_data_ptr<float>();
  const float *matrices = weights.const_data_ptr<float>(), *magnitudes = largest.const_data_ptr<float>();
  at::parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t one = begin; one < end; ++one) {
      const Factor factor{matrices, magnitudes, at_sequence(slopes, one), gates, size};
      const Passing passing{at_sequence(other, one), at_sequence(leak, one), at_sequence(diagonal, one),
                            at_sequence(forget, one)};
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
      "Tensor largest, int[] gates, bool add, Tensor? diagonal, Tensor? other, Tensor? leak, "
      "Tensor? forget) -> ()",
      &multiply_factored);
}

}  // namespace
}  // namespace pernn
