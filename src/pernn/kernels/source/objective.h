// The cross-entropy of one row of logits.

#pragma once

#include <cstdint>

namespace pernn {

// Return the loss. The bias is added to the logits; these become (softmax − one-hot) · scale if the
// gradient is wanted.
float cross_entropy_row(float* logits, const float* bias, int64_t size, int64_t target, float scale,
                        bool gradient, bool* hit);

}  // namespace pernn
