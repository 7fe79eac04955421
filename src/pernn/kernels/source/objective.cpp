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

float cross_entropy_row(float* logits, const float* bias, int64_t size, int64_t target, float scale,
                        bool gradient, bool* hit) {
  const int64_t whole = size / kWidth * kWidth;
  Vec most(-std::numeric_limits<float>::infinity());
  for (int64_t at = 0; at < whole; at += kWidth) {
    Vec value = Vec::loadu(logits + at);
    if (bias) {
      value = value + Vec::loadu(bias + at);
      value.store(logits + at);
    }
    most = at::vec::maximum(most, value);
  }
  for (int64_t at = whole; bias && at < size; ++at) logits[at] += bias[at];
  float largest = at::vec::vec_reduce_all<float>(
      [](const Vec& one, const Vec& other) { return at::vec::maximum(one, other); }, most);
  for (int64_t at = whole; at < size; ++at) largest = std::max(largest, logits[at]);
  const float wanted = logits[target];
  *hit = wanted >= largest;
  Vec sums(0.f);
  const Vec shift(largest);
  for (int64_t at = 0; at < whole; at += kWidth) {
    const Vec value = exponential(Vec::loadu(logits + at) - shift);
    sums = sums + value;
    if (gradient) value.store(logits + at);
  }
  float sum =
      at::vec::vec_reduce_all<float>([](const Vec& one, const Vec& other) { return one + other; }, sums);
  for (int64_t at = whole; at < size; ++at) {
    const float value = std::exp(logits[at] - largest);
    sum += value;
    if (gradient) logits[at] = value;
  }
  if (gradient) {
    const float factor = scale / sum;
    const Vec factors(factor);
    for (int64_t at = 0; at < whole; at += kWidth)
      (Vec::loadu(logits + at) * factors).store(logits + at);
    for (int64_t at = whole; at < size; ++at) logits[at] *= factor;
    logits[target] -= scale;
  }
  return std::log(sum) + largest - wanted;
}

namespace {

using at::Tensor;

void cross_entropy(Tensor logits, const std::optional<Tensor>& bias, const Tensor& targets,
                   double scale, bool gradient, Tensor losses, Tensor hits) {
  const int64_t rows = logits.size(0), size = logits.size(1);
  TORCH_CHECK(logits.is_contiguous() && targets.is_contiguous() && losses.is_contiguous() &&
                  hits.is_contiguous() && targets.numel() == rows && losses.numel() == rows &&
                  hits.numel() == rows,
              "shapes do not fit");
  TORCH_CHECK(!bias || (bias->is_contiguous() && bias->numel() == size), "one bias for each id");
  const float* shift = bias ? bias->const_data_ptr<float>() : nullptr;
  float *values = logits.mutable_data_ptr<float>(), *loss = losses.mutable_data_ptr<float>();
  bool* hit = hits.mutable_data_ptr<bool>();
  const int64_t* ids = targets.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row)
    TORCH_CHECK_INDEX(0 <= ids[row] && ids[row] < size, "target ", ids[row], " is none of 0 … ",
                      size - 1);
  at::parallel_for(0, rows, 1 + (1 << 14) / size, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      loss[row] = cross_entropy_row(values + row * size, shift, size, ids[row],
                                    static_cast<float>(scale), gradient, hit + row);
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
