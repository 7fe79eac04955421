// One step of a cell over tiles of sequences and units, forward and back, for whole updates.
//
// The recurrent product of a tile is added up in registers and everything pointwise follows at once.
// The way back writes adjoints over what the way forward kept. Gates lie gate by gate, H apart.

#pragma once

#include "recurrence.h"
#include "rows.h"

namespace pernn {

// Blocks of H that the way back finds of each sequence: first those that become the adjoints of the
// recurrent product; of the GRU one more, which becomes that of the new gate's input.
template <typename Cell>
constexpr int64_t kKept = Cell::kSaved ? Cell::kSaved : 1;

// One sequence and one vector of units of a step.
struct Place {
  int64_t H;
  const float *input, *code;  // what enters: projected token, projected encoding with the biases
  const float* bias_hn;       // the GRU's
  const float *before, *old_cell;  // state and cell of the step before; absent at the first step
  float *state, *cell, *flat;      // flat: tanh of the cell
  float* kept;

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

// The recurrence of one layer over all steps, time first.
struct Layer {
  int64_t batch, steps, inputs, scored, H, num_rows;
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
            kept + (step * batch + row) * kKept<Cell> * H + unit};
  }

  // Sequences first … last of the batch through all steps.
  template <typename Cell>
  void run_forward(int64_t first, int64_t last) const {
    constexpr int64_t kGates = Cell::kGates;
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t unit = 0; unit < H; unit += kWidth)
        in_tiles<kTileRowsOf<kGates>>(first, last, [&]<int64_t kRows>(int64_t row) {
          alignas(64) float sums[kRows * kGates * kWidth];
          if (step)
            multiply_rows<kRows, kGates>(states + ((step - 1) * batch + row) * H, H, 1,
                                         ahead + unit * H * kGates, H, false, sums, kGates * kWidth);
          for (int64_t one = 0; one < kRows; ++one)
            step_forward(Cell{}, place<Cell>(step, row + one, unit),
                         step ? sums + one * kGates * kWidth : nullptr);
        });
  }

  template <typename Cell, int64_t kVectors>
  void run_back(int64_t first, int64_t last, int64_t block) const {
    constexpr int64_t kGates = Cell::kGates;
    const int64_t width = kGates * H, stride = kKept<Cell> * H;
    for (int64_t step = steps - 1; step >= 0; --step)
      for (int64_t panel = 0; panel < H; panel += kVectors * kWidth)
        in_tiles<kTileRowsOf<kVectors>>(first, last, [&]<int64_t kRows>(int64_t row) {
          alignas(64) float sums[kRows * kVectors * kWidth];
          const bool is_last = step == steps - 1;
          if (!is_last)
            multiply_rows<kRows, kVectors>(kept + ((step + 1) * batch + row) * stride, stride, 1,
                                           back + panel * width, width, false, sums,
                                           kVectors * kWidth);
          for (int64_t at = 0; at < kVectors * kWidth; at += kWidth)
            add_adjoints<Cell, kRows>(step, row, panel + at, block, is_last ? nullptr : sums + at,
                                      kVectors * kWidth);
        });
  }

  // Rows of `sums` lie `stride` apart.
  template <typename Cell, int64_t kRows>
  void add_adjoints(int64_t step, int64_t row, int64_t unit, int64_t block, const float* sums,
                    int64_t stride) const {
    constexpr int64_t kGates = Cell::kGates;
    const int64_t width = kGates * H, output = step - (steps - scored);
    float* entries = grad_table + block * num_rows * width + unit;
    Vec totals[kGates], total_hn(0.f);
    for (auto& total : totals) total = Vec(0.f);
    for (int64_t one = 0; one < kRows; ++one) {
      const Place here = place<Cell>(step, row + one, unit);
      Vec grad = load(sums ? sums + one * stride : nullptr, 0);
      if (output >= 0)
        grad = grad + Vec::loadu(grad_states + (output * batch + row + one) * H + unit);
      const auto found = step_back(Cell{}, here, grad, carry + (row + one) * H + unit);
      float* entry = entries + rows[step * batch + row + one] * width;
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
