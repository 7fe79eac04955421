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

inline Vec load(const float* from, int64_t at) {
  return from ? Vec::loadu(from + at) : Vec(0.f);
}

template <typename Number>
Number* offset(Number* from, int64_t by) {
  return from ? from + by : nullptr;
}

// One row of the batch and one vector of units of a step. Number is const on the way back, which has
// no need of what enters.
template <typename Number>
struct Place {
  int64_t gates = 0, parts = 0, sum = 0;  // how far apart are gates, parts kept, gates of the sums
  const float *input = nullptr, *code = nullptr;  // what enters: of the token, and of the step if any
  const float* sums = nullptr;                    // recurrent product; absent if there is no state
  const float* late = nullptr;                    // bias of the GRU's new gate behind the reset
  const float *before = nullptr, *old_cell = nullptr;  // of the step before; may be absent
  Number *state = nullptr, *cell = nullptr;
  Number* kept = nullptr;  // what the way back needs

  Vec entering(int64_t gate) const {
    const Vec value = Vec::loadu(input + gate * gates);
    return code ? value + Vec::loadu(code + gate * gates) : value;
  }
  Vec activation(int64_t gate) const {
    return sums ? entering(gate) + Vec::loadu(sums + gate * sum) : entering(gate);
  }
  Vec kept_at(int64_t part) const { return Vec::loadu(kept + part * parts); }
  template <int64_t kParts>
  void keep(const Vec (&values)[kParts]) const {
    for (int64_t part = 0; part < kParts; ++part) values[part].store(kept + part * parts);
  }
};

// Inlined, so that the constants of `squash` stay in registers from row to row.
#define PERNN_INLINE inline __attribute__((always_inline))

PERNN_INLINE void step_forward(Elman, const Place<float>& place) {
  Vec state[] = {place.activation(0)};
  squash<0, 1>(state);
  state[0].store(place.state);
}

PERNN_INLINE void step_forward(GRU, const Place<float>& place) {
  Vec gates[] = {place.activation(0), place.activation(1)};
  squash<2, 0>(gates);
  const auto [reset, keep] = gates;
  const Vec raw = load(place.sums, 2 * place.sum) + Vec::loadu(place.late);
  Vec fresh[] = {at::vec::fmadd(reset, raw, place.entering(2))};
  squash<0, 1>(fresh);
  at::vec::fmadd(keep, load(place.before, 0) - fresh[0], fresh[0]).store(place.state);
  place.keep<4>({reset, keep, fresh[0], raw});
}

PERNN_INLINE void step_forward(LSTM, const Place<float>& place) {
  Vec gates[] = {place.activation(0), place.activation(1), place.activation(3), place.activation(2)};
  squash<3, 1>(gates);
  const auto [entry, forget, exit, update] = gates;
  Vec flat[] = {at::vec::fmadd(forget, load(place.old_cell, 0), entry * update)};
  flat[0].store(place.cell);
  squash<0, 1>(flat);
  (exit * flat[0]).store(place.state);
  place.keep<4>({entry, forget, update, exit});
}

// Adjoints of the gates of one vector of units. `inner` belongs to the recurrent product, `outer`
// to the input; they differ in the new gate of the GRU alone.
template <typename Cell>
struct Adjoints {
  Vec inner[Cell::kGates];
  Vec outer[Cell::kGates];
};

// `grad` is the adjoint of the state. `carry` goes from step to step beside the product: the cell's
// adjoint, or the share of the state's that a GRU hands on.
inline Adjoints<Elman> step_back(Elman, const Place<const float>& place, const Vec& grad, float*) {
  const Vec state = Vec::loadu(place.state), gate = grad * (Vec(1.f) - state * state);
  return {{gate}, {gate}};
}

inline Adjoints<GRU> step_back(GRU, const Place<const float>& place, const Vec& grad, float* carry) {
  const Vec one(1.f), reset = place.kept_at(0), keep = place.kept_at(1), fresh = place.kept_at(2);
  const Vec entering = grad * (one - keep) * (one - fresh * fresh);
  const Vec shut = entering * place.kept_at(3) * reset * (one - reset);
  const Vec hold = grad * (load(place.before, 0) - fresh) * keep * (one - keep);
  (grad * keep).store(carry);
  return {{shut, hold, entering * reset}, {shut, hold, entering}};
}

inline Adjoints<LSTM> step_back(LSTM, const Place<const float>& place, const Vec& grad, float* carry) {
  const Vec one(1.f), entry = place.kept_at(0), forget = place.kept_at(1), update = place.kept_at(2);
  const Vec exit = place.kept_at(3), flat = Vec::loadu(place.state) * reciprocal(exit);  // tanh(cell)
  const Vec cell = at::vec::fmadd(grad * exit, one - flat * flat, Vec::loadu(carry));
  (cell * forget).store(carry);
  const Vec a = cell * update * entry * (one - entry);
  const Vec b = cell * load(place.old_cell, 0) * forget * (one - forget);
  const Vec c = cell * entry * (one - update * update);
  const Vec d = grad * flat * exit * (one - exit);
  return {{a, b, c, d}, {a, b, c, d}};
}

}  // namespace pernn
