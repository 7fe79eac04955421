// The recurrence of whole updates: everything pointwise follows the product of a panel of units at
// once, and the way back writes adjoints over what the way forward kept. Gates lie H apart.

#pragma once

#include "recurrence.h"
#include "vectors.h"

namespace pernn {

constexpr int64_t kPanelDepth = 128;

// Transposed recurrent weights in panels of one vector of units, gates side by side; beyond h zeros.
inline void pack_ahead(const float* weight, int64_t h, int64_t H, int64_t gates, float* to) {
  at::parallel_for(0, H / kWidth, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin * kWidth; unit < end * kWidth; unit += kWidth)
      for (int64_t gate = 0; gate < gates; ++gate) {
        const float* from = weight + (gate * h + unit) * h;
        float* place = to + unit * H * gates + gate * kWidth;
        for (int64_t inner = 0; inner < H; inner += kWidth) {
          float* tile = place + inner * gates * kWidth;
          if (std::max(unit, inner) + kWidth <= h) {
            at::vec::transpose_mxn<float, kWidth, kWidth>(from + inner, h, tile, gates * kWidth);
            continue;
          }
          for (int64_t row = 0; row < kWidth; ++row)
            for (int64_t at = 0; at < kWidth; ++at)
              tile[row * gates * kWidth + at] =
                  unit + at < h && inner + row < h ? from[at * h + inner + row] : 0.f;
        }
      }
  });
}

// Recurrent weights in panels of so many columns; beyond h zeros.
inline void pack_back(const float* weight, int64_t h, int64_t H, int64_t gates, int64_t columns, float* to) {
  at::parallel_for(0, H / columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin * columns; panel < end * columns; panel += columns)
      for (int64_t row = 0; row < gates * H; ++row) {
        float* place = to + panel * gates * H + row * columns;
        const int64_t unit = row % H, kept = unit < h ? std::clamp(h - panel, int64_t{0}, columns) : 0;
        std::copy_n(weight + (row / H * h + unit) * h + panel, kept, place);
        std::fill(place + kept, place + columns, 0.f);
      }
  });
}

// The recurrence of one layer over all steps, time first.
struct Layer {
  int64_t batch, steps, inputs, scored, H, num_rows;
  int64_t stride;  // of a sequence among what is kept
  const float *table, *codes, *bias_hn;
  const int32_t* rows;  // of the table: what a sequence is fed, step by step
  const float *ahead, *back;  // recurrent weights in panels, for either way
  float *states, *cells, *kept;
  const float* grad_states;  // of the scored steps, the last ones
  float *grad_table, *grad_codes, *grad_bias_hn;  // one after another for each block of sequences
  float* carry;

  template <typename Cell, typename Number>
  Place<Number> place(int64_t step, int64_t row, int64_t unit, const float* sums) const {
    const int64_t at = (step * batch + row) * H + unit, width = Cell::kGates * H;
    const auto before = [&](float* from) { return step ? offset(from, at - batch * H) : nullptr; };
    return {H, H, kWidth, table + rows[step * batch + row] * width + unit, codes + step * width + unit,
            sums, bias_hn + unit, before(states), before(cells), states + at, offset(cells, at),
            kept + (step * batch + row) * stride + unit};
  }

  // Recurrent sums of one panel, for sequences first … last; `left` is what a whole step left behind.
  // Part of the panel stays in the first cache while the sequences pass by.
  template <int64_t kVectors>
  static float* multiply_panel(const float* left, int64_t stride, const float* panel, int64_t depth,
                               int64_t first, int64_t last) {
    constexpr int64_t kColumns = kVectors * kWidth;
    static thread_local Buffer buffer;
    auto* sums = buffer.take<float>((last - first) * kColumns);
    for (int64_t begin = 0; begin < depth; begin += kPanelDepth)
      in_tiles<kTileRowsOf<kVectors>>(first, last, [&]<int64_t kRows>(int64_t row) {
        multiply_rows<kRows, kVectors>(left + row * stride + begin, stride, 1, panel + begin * kColumns,
                                       std::min(kPanelDepth, depth - begin), begin > 0,
                                       sums + (row - first) * kColumns, kColumns);
      });
    return sums;
  }

  // Sequences first … last of the batch through all steps.
  template <typename Cell>
  void run_forward(int64_t first, int64_t last) const {
    constexpr int64_t kGates = Cell::kGates;
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t unit = 0; unit < H; unit += kWidth) {
        const float* sums = step ? multiply_panel<kGates>(states + (step - 1) * batch * H, H,
                                                          ahead + unit * H * kGates, H, first, last)
                                 : nullptr;
        for (int64_t row = first; row < last; ++row)
          step_forward(Cell{}, place<Cell, float>(step, row, unit,
                                                  offset(sums, (row - first) * kGates * kWidth)));
      }
  }

  template <typename Cell, int64_t kVectors>
  void run_back(int64_t first, int64_t last, int64_t block) const {
    const int64_t width = Cell::kGates * H;
    for (int64_t step = steps - 1; step >= 0; --step)
      for (int64_t panel = 0; panel < H; panel += kVectors * kWidth) {
        const float* sums = step < steps - 1
                                ? multiply_panel<kVectors>(kept + (step + 1) * batch * stride, stride,
                                                           back + panel * width, width, first, last)
                                : nullptr;
        for (int64_t at = 0; at < kVectors * kWidth; at += kWidth)
          add_adjoints<Cell>(step, first, last, panel + at, block, offset(sums, at), kVectors * kWidth);
      }
  }

  // Rows of `sums` lie `next` apart.
  template <typename Cell>
  void add_adjoints(int64_t step, int64_t first, int64_t last, int64_t unit, int64_t block,
                    const float* sums, int64_t next) const {
    constexpr int64_t kGates = Cell::kGates;
    const int64_t width = kGates * H, output = step - (steps - scored);
    float* entries = grad_table + block * num_rows * width + unit;
    Vec totals[kGates], total_hn(0.f);
    for (auto& total : totals) total = Vec(0.f);
    for (int64_t row = first; row < last; ++row) {
      Vec grad = load(sums, (row - first) * next);
      if (output >= 0) grad = grad + Vec::loadu(grad_states + (output * batch + row) * H + unit);
      if (Cell::kLate) grad = grad + Vec::loadu(carry + row * H + unit);
      const auto found = step_back(Cell{}, place<Cell, const float>(step, row, unit, nullptr), grad,
                                   carry + row * H + unit);
      float* inner = kept + (step * batch + row) * stride + unit;
      float* entry = entries + rows[step * batch + row] * width;
      for (int64_t gate = 0; gate < kGates; ++gate) {
        found.inner[gate].store(inner + gate * H);
        totals[gate] = totals[gate] + found.outer[gate];
        // Queries all show one row, whose gradient is these steps' sum.
        if (step < inputs)
          (Vec::loadu(entry + gate * H) + found.outer[gate]).store(entry + gate * H);
      }
      if constexpr (Cell::kLate) total_hn = total_hn + found.inner[kGates - 1];
    }
    float* code = grad_codes + (block * steps + step) * width + unit;
    for (int64_t gate = 0; gate < kGates; ++gate)
      (Vec::loadu(code + gate * H) + totals[gate]).store(code + gate * H);
    if constexpr (Cell::kLate) {
      float* at = grad_bias_hn + block * H + unit;
      (Vec::loadu(at) + total_hn).store(at);
    }
  }
};

}  // namespace pernn
