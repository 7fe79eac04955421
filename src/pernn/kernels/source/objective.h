// The cross-entropy of rows of logits.

#pragma once

#include <cstdint>

namespace pernn {

// Losses of rows of logits. The bias is added to the logits; these become (softmax − one-hot) · scale
// if the gradient is wanted.
void cross_entropy_rows(float* logits, const float* bias, int64_t rows, int64_t size,
                        const int64_t* targets, float scale, bool gradient, float* losses, bool* hits);

}  // namespace pernn
