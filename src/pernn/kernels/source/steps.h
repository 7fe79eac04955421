// One step of a cell over sequences and units, forward and back, for whole updates.
//
// Everything pointwise follows the recurrent product of a panel of units at once.
// The way back writes adjoints over what the way forward kept. Gates lie gate by gate, H apart.

#pragma once

#include "recurrence.h"
#include "rows.h"

namespace pernn {

constexpr int64_t kPanelDepth = 128;

// One sequence and one vector of units of a step.
struct Place {
  int64_t H;
  const float *input, *code;  // what enters: projected token, projected encoding with the biases
  const float* bias_hn;       // the GRU's
  const float *before, *old_cell;  // state and cell of the step before; absent at the first step
  float *state, *cell, *flat;      // flat: tanh of the cell
  float* kept;  // blocks that the way back needs: first what becomes the adjoints of the product

  Vec entering(int64_t gate) const {
    return Vec::loadu(input + gate * H) + Vec::loadu(code + gate * H);
  }
  Vec kept_at(int64_t part) const { return Vec::loadu(kept + part * H); }
  template <int64_t kParts>
  void keep(const Vec (&parts)[kParts]) const {
    for (int64_t part = 0; part < kParts; ++part) parts[part].store(kept + part * H);
  }
};

// Recurrent sums of the gates, absent at the first step.
inline Vec sum_of(const float* sums, int64_t gate) { return load(sums, gate * kWidth); }

inline void step_forward(Elman, const Place& place, const float* sums) {
  tanh(place.entering(0) + sum_of(sums, 0)).store(place.state);
}

inline void step_forward(GRU, const Place& place, const float* sums) {
  const Vec reset = sigmoid(place.entering(0) + sum_of(sums, 0));
  const Vec keep = sigmoid(place.entering(1) + sum_of(sums, 1));
  const Vec raw = sum_of(sums, 2) + Vec::loadu(place.bias_hn);
  const Vec fresh = tanh(at::vec::fmadd(reset, raw, place.entering(2)));
  at::vec::fmadd(keep, load(place.before, 0) - fresh, fresh).store(place.state);
  place.keep<4>({reset, keep, fresh, raw});
}

inline void step_forward(LSTM, const Place& place, const float* sums) {
  const Vec entry = sigmoid(place.entering(0) + sum_of(sums, 0));
  const Vec forget = sigmoid(place.entering(1) + sum_of(sums, 1));
  const Vec update = tanh(place.entering(2) + sum_of(sums, 2));
  const Vec exit = sigmoid(place.entering(3) + sum_of(sums, 3));
  const Vec cell = at::vec::fmadd(forget, load(place.old_cell, 0), entry * update);
  const Vec flat = tanh(cell);
  cell.store(place.cell);
  flat.store(place.flat);
  (exit * flat).store(place.state);
  place.keep<4>({entry, forget, update, exit});
}

// Adjoints of what enters the gates; those of the recurrent product take the place of what was kept.
// `grad` is the adjoint of the state. `carry` goes from step to step beside the product: the cell's
// adjoint, or the share of the state's that a GRU hands on.
template <typename Cell>
struct Entering {
  Vec gates[Cell::kGates];
};

inline Entering<Elman> step_back(Elman, const Place& place, const Vec& grad, float*) {
  const Vec state = Vec::loadu(place.state), gate = grad * (Vec(1.f) - state * state);
  place.keep<1>({gate});
  return {{gate}};
}

inline Entering<GRU> step_back(GRU, const Place& place, const Vec& product, float* carry) {
  const Vec one(1.f), grad = product + Vec::loadu(carry);
  const Vec reset = place.kept_at(0), keep = place.kept_at(1), fresh = place.kept_at(2);
  const Vec entering = grad * (one - keep) * (one - fresh * fresh);
  const Vec shut = entering * place.kept_at(3) * reset * (one - reset);
  const Vec hold = grad * (load(place.before, 0) - fresh) * keep * (one - keep);
  (grad * keep).store(carry);
  place.keep<4>({shut, hold, entering * reset, entering});
  return {{shut, hold, entering}};
}

inline Entering<LSTM> step_back(LSTM, const Place& place, const Vec& grad, float* carry) {
  const Vec one(1.f), flat = Vec::loadu(place.flat);
  const Vec entry = place.kept_at(0), forget = place.kept_at(1), update = place.kept_at(2);
  const Vec exit = place.kept_at(3);
  const Vec cell = at::vec::fmadd(grad * exit, one - flat * flat, Vec::loadu(carry));
  (cell * forget).store(carry);
  const Vec a = cell * update * entry * (one - entry);
  const Vec b = cell * load(place.old_cell, 0) * forget * (one - forget);
  const Vec c = cell * entry * (one - update * update);
  const Vec d = grad * flat * exit * (one - exit);
  place.keep<4>({a, b, c, d});
  return {{a, b, c, d}};
}

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
  float *states, *cells, *flats, *kept;
  const float* grad_states;  // of the scored steps, the last ones
  float *grad_table, *grad_codes, *grad_bias_hn;  // one after another for each block of sequences
  float* carry;

  template <typename Cell>
  Place place(int64_t step, int64_t row, int64_t unit) const {
    const int64_t at = (step * batch + row) * H + unit, width = Cell::kGates * H;
    const auto before = [&](float* from) { return step && from ? from + at - batch * H : nullptr; };
    const auto now = [&](float* from) { return from ? from + at : nullptr; };
    return {H,
            table + rows[step * batch + row] * width + unit,
            codes + step * width + unit,
            bias_hn + unit,
            before(states),
            before(cells),
            states + at,
            now(cells),
            now(flats),
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
          step_forward(Cell{}, place<Cell>(step, row, unit),
                       sums ? sums + (row - first) * kGates * kWidth : nullptr);
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
          add_adjoints<Cell>(step, first, last, panel + at, block, sums ? sums + at : nullptr,
                             kVectors * kWidth);
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
      const Place here = place<Cell>(step, row, unit);
      Vec grad = load(sums ? sums + (row - first) * next : nullptr, 0);
      if (output >= 0) grad = grad + Vec::loadu(grad_states + (output * batch + row) * H + unit);
      const auto found = step_back(Cell{}, here, grad, carry + row * H + unit);
      float* entry = entries + rows[step * batch + row] * width;
      for (int64_t gate = 0; gate < kGates; ++gate) {
        totals[gate] = totals[gate] + found.gates[gate];
        // Queries all show one row, whose gradient is these steps' sum.
        if (step < inputs)
          (Vec::loadu(entry + gate * H) + found.gates[gate]).store(entry + gate * H);
      }
      if constexpr (Cell::kLate) total_hn = total_hn + here.kept_at(kGates - 1);
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
