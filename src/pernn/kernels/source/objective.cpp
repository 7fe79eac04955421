// Cross-entropy of rows of logits, their gradient put in their place: one pass over each row while
// it is in the cache.

#include "functions.h"
#include "objective.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

namespace pernn {

namespace {

constexpr int64_t kRowsAbreast = 8;        // rows: while one waits for its sum, the next ones go on,
constexpr int64_t kTogether = 1 << 12;  // if all their numbers stay in the first cache

// Add the bias to a row, and return its largest number.
float add_bias(float* row, const float* bias, int64_t size) {
  const int64_t whole = size / kWidth * kWidth;
  Vec most(-std::numeric_limits<float>::infinity());
  for (int64_t at = 0; at < whole; at += kWidth) {
    Vec value = Vec::loadu(row + at);
    if (bias) {
      value = value + Vec::loadu(bias + at);
      value.store(row + at);
    }
    most = at::vec::maximum(most, value);
  }
  for (int64_t at = whole; bias && at < size; ++at) row[at] += bias[at];
  float largest = at::vec::vec_reduce_all<float>(
      [](const Vec& one, const Vec& other) { return at::vec::maximum(one, other); }, most);
  for (int64_t at = whole; at < size; ++at) largest = std::max(largest, row[at]);
  return largest;
}

// Return the sum of e^(number − largest); these take the numbers' place if they are kept.
float add_exponentials(float* row, int64_t size, float largest, bool keep) {
  const int64_t whole = size / kWidth * kWidth;
  Vec sums(0.f);
  const Vec shift(largest);
  for (int64_t at = 0; at < whole; at += kWidth) {
    const Vec value = exponential(Vec::loadu(row + at) - shift);
    sums = sums + value;
    if (keep) value.store(row + at);
  }
  float sum =
      at::vec::vec_reduce_all<float>([](const Vec& one, const Vec& other) { return one + other; }, sums);
  for (int64_t at = whole; at < size; ++at) {
    const float value = std::exp(row[at] - largest);
    sum += value;
    if (keep) row[at] = value;
  }
  return sum;
}

}  // namespace

void cross_entropy_rows(float* logits, const float* bias, int64_t rows, int64_t size,
                        const int64_t* targets, float scale, bool gradient, float* losses, bool* hits) {
  const int64_t most = std::clamp(kTogether / size, int64_t{1}, kRowsAbreast);
  for (int64_t first = 0; first < rows; first += most) {
    const int64_t last = std::min(first + most, rows);
    float largest[kRowsAbreast], sums[kRowsAbreast];
    for (int64_t row = first; row < last; ++row)
      largest[row - first] = add_bias(logits + row * size, bias, size);
    for (int64_t row = first; row < last; ++row) {
      const float wanted = logits[row * size + targets[row]];
      hits[row] = wanted >= largest[row - first];
      losses[row] = largest[row - first] - wanted;
    }
    for (int64_t row = first; row < last; ++row)
      sums[row - first] = add_exponentials(logits + row * size, size, largest[row - first], gradient);
    for (int64_t row = first; row < last; ++row) {
      losses[row] += std::log(sums[row - first]);
      if (!gradient) continue;
      float* values = logits + row * size;
      const float factor = scale / sums[row - first];
      int64_t at = 0;
      for (; at + kWidth <= size; at += kWidth) (Vec::loadu(values + at) * Vec(factor)).store(values + at);
      for (; at < size; ++at) values[at] *= factor;
      values[targets[row]] -= scale;
    }
  }
}

namespace {

using at::Tensor;

void cross_entropy(Tensor logits, const std::optional<Tensor>& bias, const Tensor& targets,
                   double scale, bool gradient, Tensor losses, Tensor hits) {
  TORCH_CHECK(logits.dim() == 2, "logits must be a matrix");
  const int64_t rows = logits.size(0), size = logits.size(1);
  TORCH_CHECK(logits.is_contiguous() && targets.is_contiguous() && losses.is_contiguous() &&
                  hits.is_contiguous() && targets.numel() == rows && losses.numel() == rows &&
                  hits.numel() == rows,
              "shapes do not fit");
  TORCH_CHECK(!bias || (bias->is_contiguous() && bias->numel() == size), "one bias for each id");
  if (!rows) return;
  const float* shift = bias ? bias->const_data_ptr<float>() : nullptr;
  float *values = logits.mutable_data_ptr<float>(), *loss = losses.mutable_data_ptr<float>();
  bool* hit = hits.mutable_data_ptr<bool>();
  const int64_t* ids = targets.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row)
    TORCH_CHECK_INDEX(0 <= ids[row] && ids[row] < size, "target ", ids[row], " is none of 0 … ",
                      size - 1);
  at::parallel_for(0, rows, 1 + (1 << 14) / size, [&](int64_t begin, int64_t end) {
    cross_entropy_rows(values + begin * size, shift, end - begin, size, ids + begin,
                       static_cast<float>(scale), gradient, loss + begin, hit + begin);
  });
}

TORCH_LIBRARY_FRAGMENT(pernn, library) {
  library.def(
      "cross_entropy(Tensor(a!) logits, Tensor? bias, Tensor targets, float scale, bool gradient, "
      "Tensor(b!) losses, Tensor(c!) hits) -> ()",
      &cross_entropy);
}

}  // namespace
}  // namespace pernn
