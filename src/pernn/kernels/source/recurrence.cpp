// Elman, GRU and LSTM over whole sequences, forward and back, on the CPU.
//
// One block of rows of the batch goes through all steps: a product with the packed recurrent
// weights, panel by panel, then everything pointwise, row by row.

#include "recurrence.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

namespace pernn {
namespace {

using at::BFloat16;
using at::Tensor;
using std::optional;

// Sizes of one call.
struct Sizes {
  int64_t steps, batch, hidden, units, inputs, query_row, rows, blocks;
};

const float* data(const optional<Tensor>& tensor) {
  return tensor ? tensor->const_data_ptr<float>() : nullptr;
}

// Rows first … last of the batch that a block works on.
std::pair<int64_t, int64_t> rows_of(const Sizes& sizes, int64_t block) {
  return {block * sizes.batch / sizes.blocks, (block + 1) * sizes.batch / sizes.blocks};
}

int64_t table_row(const Sizes& sizes, const int64_t* tokens, int64_t step, int64_t row) {
  if (step >= sizes.inputs) return sizes.query_row;
  const int64_t place = step * sizes.batch + row;
  return tokens ? tokens[place] : place;
}

template <typename T>
void multiply(int64_t rows, int64_t columns, int64_t inner, int64_t stride, bool add, const T* left,
              const T* right, float* out, int64_t out_stride) {
  at::native::cpublas::brgemm(rows, columns, inner, stride, columns, out_stride, add, left, right,
                              out);
}

template <typename T>
void release() {
  at::native::cpublas::brgemm_release(std::is_same_v<T, BFloat16>);
}

void store(float* to, const Vec& values) { values.store(to); }

void store(BFloat16* to, const Vec& values) {
  at::vec::convert_from_float<BFloat16>(values, Vec(0.f)).store(to, kWidth);
}

template <typename T>
constexpr bool kRounds = !std::is_same_v<T, float>;

template <typename T>
void convert(const float* from, int64_t count, T* to) {
  for (int64_t at = 0; at < count; at += kWidth) store(to + at, Vec::loadu(from + at));
}

template <typename Cell, typename T>
struct Forward {
  Sizes sizes;
  const float *table, *codes, *late, *hidden, *cell;
  const int64_t* tokens;
  const T* packed;
  float *outputs, *cells, *saved;

  void run(int64_t block) const {
    const auto [first, last] = rows_of(sizes, block);
    const int64_t count = last - first, H = sizes.hidden, U = sizes.units;
    if (!count) return;
    const int64_t width = Cell::kGates * H, panel = Cell::kGates * U;
    const int64_t state = first * H;
    std::vector<float> product(count * width);
    std::vector<T> rounded(kRounds<T> ? count * H : 0);
    if (kRounds<T> && hidden) convert(hidden + state, count * H, rounded.data());
    for (int64_t step = 0; step < sizes.steps; ++step) {
      const int64_t now = (step * sizes.batch + first) * H;
      const int64_t before = now - sizes.batch * H;
      const T* left = nullptr;
      if constexpr (kRounds<T>) {
        if (step || hidden) left = rounded.data();
      } else {
        left = step ? outputs + before : offset(hidden, state);
      }
      const float* code = offset(codes, step * width);
      for (int64_t column = 0; left && column < width; column += panel)
        multiply(count, panel, H, H, false, left, packed + column * H, product.data() + column,
                 width);
      for (int64_t row = 0; row < count; ++row) {
        const int64_t place = now + row * H;
        const float* source = table + table_row(sizes, tokens, step, first + row) * width;
        for (int64_t unit = 0; unit < H; unit += kWidth) {
          const int64_t old = row * H + unit, start = unit / U * U;
          step_forward(
              Cell{},
              {H, U, U, source + unit, offset(code, unit),
               left ? product.data() + row * width + start * Cell::kGates + unit - start : nullptr,
               offset(late, unit), step ? outputs + before + old : offset(hidden, state + old),
               step ? offset(cells, before + old) : offset(cell, state + old), outputs + now + old,
               offset(cells, now + old), saved + (place + start) * Cell::kSaved + unit - start});
          if constexpr (kRounds<T>) store(rounded.data() + old, Vec::loadu(outputs + now + old));
        }
      }
    }
    release<T>();
  }
};

template <typename Cell, typename T>
struct Backward {
  Sizes sizes;
  int64_t num_outputs;
  const float *grad_outputs, *saved, *outputs, *cells, *hidden, *cell;
  const int64_t* tokens;
  const T* packed;
  float* inner;         // adjoints of the recurrent product's results
  float* grad_table;    // per block if there are tokens, else a row for each place
  float* grad_codes;    // per block: adjoints of the inputs summed over the rows
  float* grad_late;     // per block
  float *grad_hidden, *grad_cell;

  void run(int64_t block) const {
    const auto [first, last] = rows_of(sizes, block);
    const int64_t count = last - first, H = sizes.hidden, U = sizes.units;
    if (!count) return;
    const int64_t width = Cell::kGates * H, state = first * H;
    float* sums = grad_table + (tokens ? block : 0) * sizes.rows * width;
    float* later = grad_hidden + state;
    const int64_t columns = std::min<int64_t>(64, H & -H);
    std::vector<T> rounded(kRounds<T> ? count * width : 0);
    for (int64_t step = sizes.steps - 1; step >= 0; --step) {
      const int64_t now = (step * sizes.batch + first) * H;
      const int64_t before = now - sizes.batch * H;
      const int64_t output = step - (sizes.steps - num_outputs);
      const float* given =
          output < 0 ? nullptr : grad_outputs + (output * sizes.batch + first) * H;
      const bool is_input = step < sizes.inputs;
      float* total = grad_codes + (block * sizes.steps + step) * width;
      for (int64_t row = 0; row < count; ++row) {
        const int64_t place = now + row * H;
        float* entry = sums + table_row(sizes, tokens, step, first + row) * width;
        for (int64_t unit = 0; unit < H; unit += kWidth) {
          const int64_t old = row * H + unit, start = unit / U * U;
          Vec grad = Vec::loadu(later + old);
          if (given) grad = grad + Vec::loadu(given + old);
          const auto grads = step_back(
              Cell{},
              {.parts = U,
               .before = step ? outputs + before + old : offset(hidden, state + old),
               .old_cell = step ? offset(cells, before + old) : offset(cell, state + old),
               .state = outputs + now + old,
               .cell = offset(cells, now + old),
               .kept = saved + (place + start) * Cell::kSaved + unit - start},
              grad, (Cell::kLate ? later : grad_cell + state) + old);
          for (int64_t gate = 0; gate < Cell::kGates; ++gate) {
            const int64_t column = gate * H + unit;
            store(inner + place * Cell::kGates + column, grads.inner[gate]);
            if constexpr (kRounds<T>) store(rounded.data() + row * width + column, grads.inner[gate]);
            (Vec::loadu(total + column) + grads.outer[gate]).store(total + column);
            if (!is_input) continue;
            const Vec before_it = tokens ? Vec::loadu(entry + column) : Vec(0.f);
            (before_it + grads.outer[gate]).store(entry + column);
          }
          if constexpr (Cell::kLate) {
            float* at = grad_late + block * H + unit;
            (Vec::loadu(at) + grads.inner[Cell::kGates - 1]).store(at);
          }
        }
      }
      if (!step && !hidden) break;
      const T* left;
      if constexpr (kRounds<T>) {
        left = rounded.data();
      } else {
        left = inner + now * Cell::kGates;
      }
      for (int64_t start = 0; start < H; start += columns)
        multiply(count, columns, width, width, Cell::kLate, left, packed + start * width,
                 later + start, H);
    }
    release<T>();
  }
};

template <typename Work>
void run_blocks(const Work& work) {
  at::parallel_for(0, work.sizes.blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) work.run(block);
  });
}

void check(const Tensor& tensor, at::IntArrayRef shape, const char* name) {
  TORCH_CHECK(tensor.sizes() == shape && tensor.is_contiguous(), name, " must be contiguous, of shape ",
              shape, ", got ", tensor.sizes());
}

Sizes measure(const Tensor& table, const optional<Tensor>& tokens, int64_t steps, int64_t batch,
              int64_t hidden, int64_t units, int64_t inputs, int64_t query_row) {
  const Sizes sizes{steps, batch,     hidden,        units,
                    inputs, query_row, table.size(0), at::get_num_threads()};
  TORCH_CHECK(hidden % units == 0 && units % kWidth == 0, "panels of ", units, " units do not fit ",
              hidden);
  TORCH_CHECK(0 <= inputs && inputs <= steps, "no more inputs than steps");
  TORCH_CHECK(inputs == steps || (0 <= query_row && query_row < sizes.rows), "no query row");
  if (tokens) {
    check(*tokens, {inputs, batch}, "tokens");
    // Ids come from outside: one too large would read and write beyond the table.
    const int64_t* ids = tokens->const_data_ptr<int64_t>();
    for (int64_t place = 0; place < tokens->numel(); ++place)
      TORCH_CHECK_INDEX(0 <= ids[place] && ids[place] < sizes.rows, "token id ", ids[place],
                        " is none of 0 … ", sizes.rows - 1);
  } else {
    TORCH_CHECK(sizes.rows >= inputs * batch, "one row of the table per input");
  }
  return sizes;
}

using Forwards = std::tuple<Tensor, Tensor, Tensor>;
using Backwards = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

template <typename Cell, typename T>
Forwards forward_of(const Sizes& sizes, const Tensor& table, const optional<Tensor>& codes,
                               const optional<Tensor>& tokens, const Tensor& packed,
                               const optional<Tensor>& late, const optional<Tensor>& hidden,
                               const optional<Tensor>& cell) {
  const int64_t steps = sizes.steps, batch = sizes.batch, H = sizes.hidden;
  Tensor outputs = at::empty({steps, batch, H}, table.options());
  Tensor cells = Cell::kCell ? at::empty_like(outputs) : at::empty({0}, table.options());
  Tensor saved = at::empty({steps, batch, Cell::kSaved * H}, table.options());
  const Forward<Cell, T> work{
      sizes, table.const_data_ptr<float>(), data(codes), data(late), data(hidden), data(cell),
      tokens ? tokens->const_data_ptr<int64_t>() : nullptr, packed.const_data_ptr<T>(),
      outputs.mutable_data_ptr<float>(), Cell::kCell ? cells.mutable_data_ptr<float>() : nullptr,
      saved.mutable_data_ptr<float>()};
  run_blocks(work);
  return {outputs, cells, saved};
}

template <typename Cell, typename T>
Backwards backward_of(const Sizes& sizes, const Tensor& grad_outputs,
                                const optional<Tensor>& grad_cell, const Tensor& outputs,
                                const Tensor& cells, const Tensor& saved,
                                const optional<Tensor>& tokens, const Tensor& packed,
                                const optional<Tensor>& hidden, const optional<Tensor>& cell) {
  const auto options = outputs.options();
  const int64_t width = Cell::kGates * sizes.hidden;
  Tensor inner = at::empty({sizes.steps, sizes.batch, width}, options);
  const int64_t shares = tokens ? sizes.blocks : 1;
  Tensor table = at::zeros({shares, sizes.rows, width}, options);
  Tensor codes = at::zeros({sizes.blocks, sizes.steps, width}, options);
  Tensor late = at::zeros({sizes.blocks, Cell::kLate ? sizes.hidden : 0}, options);
  Tensor last_hidden = at::zeros({sizes.batch, sizes.hidden}, options);
  Tensor last_cell = grad_cell ? grad_cell->clone() : at::zeros_like(last_hidden);
  const Backward<Cell, T> work{
      sizes, grad_outputs.size(0), grad_outputs.const_data_ptr<float>(),
      saved.const_data_ptr<float>(), outputs.const_data_ptr<float>(), cells.const_data_ptr<float>(),
      data(hidden), data(cell), tokens ? tokens->const_data_ptr<int64_t>() : nullptr,
      packed.const_data_ptr<T>(), inner.mutable_data_ptr<float>(), table.mutable_data_ptr<float>(),
      codes.mutable_data_ptr<float>(), late.mutable_data_ptr<float>(),
      last_hidden.mutable_data_ptr<float>(), last_cell.mutable_data_ptr<float>()};
  run_blocks(work);
  // A single share is the sum.
  const auto add = [](const Tensor& parts) { return parts.size(0) == 1 ? parts.squeeze(0) : parts.sum(0); };
  return {inner, add(table), add(codes), add(late), last_hidden, last_cell};
}

template <typename Call>
auto dispatch(const std::string& cell, at::ScalarType type, Call call) {
  TORCH_CHECK(type == at::kFloat || type == at::kBFloat16, "packed weights of ", type);
  const bool rounds = type == at::kBFloat16;
  if (cell == "elman") return rounds ? call(Elman{}, BFloat16{}) : call(Elman{}, float{});
  if (cell == "gru") return rounds ? call(GRU{}, BFloat16{}) : call(GRU{}, float{});
  TORCH_CHECK(cell == "lstm", "no cell ", cell);
  return rounds ? call(LSTM{}, BFloat16{}) : call(LSTM{}, float{});
}

Forwards scan_forward(const std::string& kind, int64_t units, int64_t batch, int64_t steps,
                                 int64_t inputs, int64_t query_row, const Tensor& table,
                                 const optional<Tensor>& codes, const optional<Tensor>& tokens,
                                 const Tensor& packed, const optional<Tensor>& late,
                                 const optional<Tensor>& hidden, const optional<Tensor>& cell) {
  return dispatch(kind, packed.scalar_type(), [&]<typename Cell, typename T>(Cell, T) {
    const int64_t H = table.size(1) / Cell::kGates;
    const Sizes sizes = measure(table, tokens, steps, batch, H, units, inputs, query_row);
    check(table, {sizes.rows, Cell::kGates * H}, "table");
    if (codes) check(*codes, {steps, Cell::kGates * H}, "codes");
    if (Cell::kLate) check(late.value(), {H}, "late");
    if (hidden) check(*hidden, {batch, H}, "hidden");
    if (cell) check(*cell, {batch, H}, "cell");
    TORCH_CHECK(packed.numel() == Cell::kGates * H * H && packed.is_contiguous(),
                "packed weights do not fit");
    return forward_of<Cell, T>(sizes, table, codes, tokens, packed, late, hidden, cell);
  });
}

Backwards scan_backward(const std::string& kind, int64_t units, int64_t inputs,
                                  int64_t query_row, const Tensor& grad_outputs,
                                  const optional<Tensor>& grad_cell, const Tensor& table,
                                  const Tensor& outputs, const Tensor& cells, const Tensor& saved,
                                  const optional<Tensor>& tokens, const Tensor& packed,
                                  const optional<Tensor>& hidden, const optional<Tensor>& cell) {
  return dispatch(kind, packed.scalar_type(), [&]<typename Cell, typename T>(Cell, T) {
    const Sizes sizes = measure(table, tokens, outputs.size(0), outputs.size(1), outputs.size(2),
                                units, inputs, query_row);
    const int64_t steps = sizes.steps, batch = sizes.batch, H = sizes.hidden;
    TORCH_CHECK(grad_outputs.size(0) <= steps, "no more gradients than steps");
    check(grad_outputs, {grad_outputs.size(0), batch, H}, "grad_outputs");
    check(table, {sizes.rows, Cell::kGates * H}, "table");
    check(outputs, {steps, batch, H}, "outputs");
    check(saved, {steps, batch, Cell::kSaved * H}, "saved");
    if (Cell::kCell) check(cells, {steps, batch, H}, "cells");
    // The compiler gives an empty one to cores without a cell.
    if (Cell::kCell && grad_cell) check(*grad_cell, {batch, H}, "grad_cell");
    if (hidden) check(*hidden, {batch, H}, "hidden");
    if (cell) check(*cell, {batch, H}, "cell");
    TORCH_CHECK(packed.numel() == Cell::kGates * H * H && packed.is_contiguous(),
                "packed weights do not fit");
    return backward_of<Cell, T>(sizes, grad_outputs, grad_cell, outputs, cells, saved, tokens,
                                packed, hidden, cell);
  });
}

TORCH_LIBRARY_FRAGMENT(pernn, library) {
  // Of the CPU alone: elsewhere, and where only shapes are computed, others stand for them.
  library.def(
      "scan_forward(str kind, int units, SymInt batch, SymInt steps, SymInt inputs, "
      "SymInt query_row, Tensor table, Tensor? codes, Tensor? tokens, Tensor packed, Tensor? late, "
      "Tensor? hidden, Tensor? cell) -> (Tensor, Tensor, Tensor)",
      torch::dispatch(c10::DispatchKey::CPU, &scan_forward));
  library.def(
      "scan_backward(str kind, int units, SymInt inputs, SymInt query_row, Tensor grad_outputs, "
      "Tensor? grad_cell, Tensor table, Tensor outputs, Tensor cells, Tensor saved, "
      "Tensor? tokens, Tensor packed, Tensor? hidden, Tensor? cell) "
      "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
      torch::dispatch(c10::DispatchKey::CPU, &scan_backward));
}

}  // namespace
}  // namespace pernn
