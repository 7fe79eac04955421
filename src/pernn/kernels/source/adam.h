// Adam's step on pieces of weights, with the factor that clips their gradients.

#pragma once

#include "functions.h"

#include <algorithm>

namespace pernn {

// What a piece of a weight needs to take Adam's step.
struct Piece {
  float *weight, *first, *second;
  const float* grad;
  int64_t count;

  double squares() const {
    Vec sums(0.f);
    int64_t at = 0;
    for (; at + kWidth <= count; at += kWidth) {
      const Vec value = Vec::loadu(grad + at);
      sums = at::vec::fmadd(value, value, sums);
    }
    double total =
        at::vec::vec_reduce_all<float>([](const Vec& one, const Vec& other) { return one + other; }, sums);
    for (; at < count; ++at) total += static_cast<double>(grad[at]) * grad[at];
    return total;
  }
};

// Numbers of one step of Adam, the same for all weights.
struct Adam {
  // What is added: 1 − β in double precision, as rounding β first would cost it three digits.
  float scale, keep1, add1, keep2, add2, rate, root, epsilon;  // rate and root: corrected for the bias

  void change(const Piece& piece) const {
    for (int64_t at = 0; at < piece.count; at += kWidth) {
      const int64_t count = std::min(kWidth, piece.count - at);
      const Vec grad = Vec::loadu(piece.grad + at, count) * Vec(scale);
      const Vec first = Vec(keep1) * Vec::loadu(piece.first + at, count) + Vec(add1) * grad;
      const Vec second =
          Vec(keep2) * Vec::loadu(piece.second + at, count) + Vec(add2) * grad * grad;
      first.store(piece.first + at, count);
      second.store(piece.second + at, count);
      const Vec size = at::vec::fmadd(second.sqrt(), Vec(1 / root), Vec(epsilon));
      const Vec step = Vec(rate) * first * reciprocal(size);
      (Vec::loadu(piece.weight + at, count) - step).store(piece.weight + at, count);
    }
  }
};

}  // namespace pernn
