// What the recurrences share: one cell after another, on one row and one vector of units.
//
// Widths: H hidden, G gates, U units of a panel. Gates lie as in PyTorch, gate by gate, each H wide.
// The recurrent product is computed panel by panel: all gates of U units, G·U columns, so that what
// these units need is together.

#pragma once

#include "functions.h"

namespace pernn {

// Elman: h = tanh(a).
struct Elman {
  static constexpr int64_t kGates = 1;
  static constexpr int64_t kSaved = 0;
  static constexpr bool kCell = false;
  static constexpr bool kLate = false;
};

// GRU: r, z = σ(a_r), σ(a_z); n = tanh(x_n + r ⊙ raw); h = n + z ⊙ (h_old − n). Saved: r, z, n, raw.
struct GRU {
  static constexpr int64_t kGates = 3;
  static constexpr int64_t kSaved = 4;
  static constexpr bool kCell = false;
  static constexpr bool kLate = true;
};

// LSTM: c = f ⊙ c_old + i ⊙ g, h = o ⊙ tanh(c). Saved: i, f, g, o.
struct LSTM {
  static constexpr int64_t kGates = 4;
  static constexpr int64_t kSaved = 4;
  static constexpr bool kCell = true;
  static constexpr bool kLate = false;
};

// The pointwise part of a step forward, for one row and the units of one panel.
struct ForwardRow {
  const float* input;    // row of the table, at the panel's first unit; gates lie H apart
  const float* code;     // code of the step, likewise; may be absent
  const float* product;  // the panel of the recurrent product, gates lie U apart; may be absent
  const float* late;     // bias of the new gate behind the reset, at the units
  const float* hidden;   // h_old at the units; may be absent
  const float* cell;     // c_old at the units; may be absent
  float* saved;          // what the way back needs, at the panel
  float* new_hidden;
  float* new_cell;
};

// The pointwise part of a step back.
struct BackwardRow {
  const float* grad_output;  // may be absent
  const float* saved;
  const float* hidden;      // h_old; may be absent
  const float* new_hidden;  // h
  const float* cell;        // c_old; may be absent
  const float* new_cell;    // c
  float* grad_hidden;       // adjoint of h from later steps; on return, what goes on by itself
  float* grad_cell;         // adjoint of c; on return, of c_old
};

inline Vec load(const float* from, int64_t at) {
  return from ? Vec::loadu(from + at) : Vec(0.f);
}

struct Strides {
  int64_t hidden, units;
};

inline Vec entering(const ForwardRow& row, int64_t at) {
  return row.code ? Vec::loadu(row.input + at) + Vec::loadu(row.code + at)
                  : Vec::loadu(row.input + at);
}

inline Vec pre_activation(const ForwardRow& row, Strides by, int64_t gate, int64_t unit) {
  const Vec sum = entering(row, gate * by.hidden + unit);
  return row.product ? sum + Vec::loadu(row.product + gate * by.units + unit) : sum;
}

inline void forward(Elman, const ForwardRow& row, Strides by, int64_t unit) {
  tanh(pre_activation(row, by, 0, unit)).store(row.new_hidden + unit);
}

inline void forward(GRU, const ForwardRow& row, Strides by, int64_t unit) {
  const Vec reset = sigmoid(pre_activation(row, by, 0, unit));
  const Vec keep = sigmoid(pre_activation(row, by, 1, unit));
  const Vec raw = load(row.product, 2 * by.units + unit) + Vec::loadu(row.late + unit);
  const Vec fresh = tanh(at::vec::fmadd(reset, raw, entering(row, 2 * by.hidden + unit)));
  const Vec old = load(row.hidden, unit);
  at::vec::fmadd(keep, old - fresh, fresh).store(row.new_hidden + unit);
  const Vec parts[] = {reset, keep, fresh, raw};
  for (int64_t part = 0; part < 4; ++part) parts[part].store(row.saved + part * by.units + unit);
}

inline void forward(LSTM, const ForwardRow& row, Strides by, int64_t unit) {
  const Vec entry = sigmoid(pre_activation(row, by, 0, unit));
  const Vec forget = sigmoid(pre_activation(row, by, 1, unit));
  const Vec update = tanh(pre_activation(row, by, 2, unit));
  const Vec exit = sigmoid(pre_activation(row, by, 3, unit));
  const Vec cell = at::vec::fmadd(forget, load(row.cell, unit), entry * update);
  cell.store(row.new_cell + unit);
  (exit * tanh(cell)).store(row.new_hidden + unit);
  const Vec parts[] = {entry, forget, update, exit};
  for (int64_t part = 0; part < 4; ++part) parts[part].store(row.saved + part * by.units + unit);
}

// Adjoints of the gates of one vector of units. `inner` belongs to the recurrent product, `outer`
// to the input; they differ in the new gate of the GRU alone.
template <typename Cell>
struct Adjoints {
  Vec inner[Cell::kGates];
  Vec outer[Cell::kGates];
};

inline Vec adjoint_of_hidden(const BackwardRow& row, int64_t unit) {
  const Vec later = Vec::loadu(row.grad_hidden + unit);
  return row.grad_output ? later + Vec::loadu(row.grad_output + unit) : later;
}

inline Adjoints<Elman> backward(Elman, const BackwardRow& row, Strides, int64_t unit) {
  const Vec hidden = Vec::loadu(row.new_hidden + unit);
  const Vec grad = adjoint_of_hidden(row, unit) * (Vec(1.f) - hidden * hidden);
  return {{grad}, {grad}};
}

inline Adjoints<GRU> backward(GRU, const BackwardRow& row, Strides by, int64_t unit) {
  const Vec one(1.f), grad = adjoint_of_hidden(row, unit);
  const Vec reset = Vec::loadu(row.saved + unit), keep = Vec::loadu(row.saved + by.units + unit);
  const Vec fresh = Vec::loadu(row.saved + 2 * by.units + unit);
  const Vec raw = Vec::loadu(row.saved + 3 * by.units + unit);
  const Vec entering = grad * (one - keep) * (one - fresh * fresh);
  const Vec shut = entering * raw * reset * (one - reset);
  const Vec hold = grad * (load(row.hidden, unit) - fresh) * keep * (one - keep);
  (grad * keep).store(row.grad_hidden + unit);
  return {{shut, hold, entering * reset}, {shut, hold, entering}};
}

inline Adjoints<LSTM> backward(LSTM, const BackwardRow& row, Strides by, int64_t unit) {
  const Vec one(1.f), grad = adjoint_of_hidden(row, unit);
  const Vec entry = Vec::loadu(row.saved + unit), forget = Vec::loadu(row.saved + by.units + unit);
  const Vec update = Vec::loadu(row.saved + 2 * by.units + unit);
  const Vec exit = Vec::loadu(row.saved + 3 * by.units + unit);
  const Vec flat = tanh(Vec::loadu(row.new_cell + unit));
  const Vec cell =
      at::vec::fmadd(grad * exit, one - flat * flat, Vec::loadu(row.grad_cell + unit));
  (cell * forget).store(row.grad_cell + unit);
  const Vec a = cell * update * entry * (one - entry);
  const Vec b = cell * load(row.cell, unit) * forget * (one - forget);
  const Vec c = cell * entry * (one - update * update);
  const Vec d = grad * flat * exit * (one - exit);
  return {{a, b, c, d}, {a, b, c, d}};
}

}  // namespace pernn
