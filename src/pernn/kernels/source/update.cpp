// A whole update of the usual network: tokens and queries → one recurrent layer → logits →
// cross-entropy, the way back, clipping and Adam's step, without a graph.
//
// All arrays lie in one tensor that the caller keeps; products have small buffers of each thread. Sizes: K ids, E numbers of an embedding, D of an
// encoding, h hidden units, H the same in whole vectors, T steps, B sequences, S scored steps.

#include "vectors.h"

#ifdef PERNN_VECTORS

#include "adam.h"
#include "objective.h"
#include "steps.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace pernn {
namespace {

using at::Tensor;
using std::optional;

// Order of the weights in the lists; the biases of the layer may be absent.
enum { kEmbedding, kInput, kRecurrent, kOutput, kOutputBias, kInputBias, kRecurrentBias };

constexpr int64_t kPiece = 1 << 14;      // numbers of a weight that one thread changes at a time
constexpr int64_t kLogits = 1 << 21;     // at a time
constexpr int64_t kLeastForUnits = 128;  // rows and columns of products that matrix units do,
constexpr int64_t kLeastDepth = 32;      // and how deep these are
constexpr int64_t kLeastTurned = 160;    // depth from which turning a product's result pays
constexpr int64_t kHugePage = 1 << 21;   // bytes

// out = left · right, or added to it: by matrix units where there are any and they pay.
void multiply(float* out, int64_t stride, const Matrix& left, const Matrix& right, bool add = false) {
  const int64_t rows = left.rows, columns = right.columns;
  if (!left.columns && !add)
    for (int64_t row = 0; row < rows; ++row) std::fill_n(out + row * stride, columns, 0.f);
  if (std::min(rows, columns) >= kLeastForUnits && left.columns >= kLeastDepth &&
      multiply_by_units(left, right, out, stride, 3, add))
    return;
  const auto share = [](const RowProduct& product) {
    const int64_t grain = 1 + (1 << 18) / (1 + product.right.columns * product.left.columns);
    at::parallel_for(0, product.left.rows, grain,
                     [&](int64_t begin, int64_t end) { product.run(begin, end); });
  };
  if (left.by_rows() || left.columns < kLeastTurned) return share({left, right, out, stride, add});
  // Columns of a wide left side are far apart, its rows in one piece: it serves better as right side.
  static thread_local Buffer buffer;
  auto* turned = buffer.take<float>(rows * columns);
  share({right.t(), left.t(), turned, rows, false});
  at::parallel_for(0, rows, 1 + (1 << 14) / columns, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += kWidth)
      for (int64_t column = 0; column < columns; column += kWidth) {
        const int64_t tall = std::min(kWidth, end - row), wide = std::min(kWidth, columns - column);
        float* to = out + row * stride + column;
        if (!add && tall == kWidth && wide == kWidth) {
          at::vec::transpose_mxn<float, kWidth, kWidth>(turned + column * rows + row, rows, to, stride);
          continue;
        }
        for (int64_t one = 0; one < tall; ++one)
          for (int64_t at = 0; at < wide; ++at) {
            const float found = turned[(column + at) * rows + row + one];
            to[one * stride + at] = add ? to[one * stride + at] + found : found;
          }
      }
  });
}

// Cuts memory into arrays of whole cache lines.
struct Arena {
  float* data;
  int64_t used = 0;

  template <typename T = float>
  T* take(int64_t count) {
    static_assert(sizeof(T) == sizeof(float));
    const int64_t at = used;
    used += (count + 15) / 16 * 16;
    return data ? reinterpret_cast<T*>(data + at) : nullptr;
  }
};

// Memory for so many numbers, in huge pages where the system has them: an update goes through more
// small ones than the processor keeps addresses of.
float* reserve(Tensor& space, int64_t count) {
  const int64_t needed = (count * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
  const int64_t numbers = (needed + kHugePage) / sizeof(float);
  const bool is_new = space.numel() < numbers;
  if (is_new) space.resize_({numbers});
  const auto start = reinterpret_cast<uintptr_t>(space.mutable_data_ptr<float>());
  auto* place = reinterpret_cast<float*>((start + kHugePage - 1) / kHugePage * kHugePage);
#ifdef __linux__
  // What was never touched will get them; what was, as memory of the heap may be, is moved. Where
  // either is refused the small ones serve.
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack
  if (is_new) madvise(place, needed, MADV_HUGEPAGE), madvise(place, needed, kCollapse);
#endif
  return place;
}

// One update; `weights` and the lists beside it are in the order above.
struct Update {
  at::TensorList weights, firsts, seconds, counts;
  const optional<Tensor>& encodings;
  int64_t copies;
  const Tensor &tokens, &targets;
  int64_t queries;

  int64_t K = weights[kOutput].size(0), E = weights[kEmbedding].size(1), ids = weights[kEmbedding].size(0);
  int64_t h = weights[kRecurrent].size(1), H = (h + 15) / 16 * 16, gates = weights[kRecurrent].size(0) / h;
  int64_t columns = weights[kInput].size(1), D = columns - copies * E, width = gates * H;
  int64_t B = tokens.size(0), L = tokens.size(1), T = L + queries, S = targets.size(1);
  int64_t blocks = at::get_num_threads(), num_rows = 0, chunk = 0;
  bool has_bias = weights.size() > kInputBias;

  Layer layer{};
  std::vector<int32_t> used;  // rows of the embedding that are shown, ascending
  int32_t *row_of, *rows;     // row of the embedding → its place among these; step, sequence → place
  const float* vectors;       // those rows
  float *shown_vectors, *table, *codes, *bias_hn, *ahead, *back, *grad_states, *logits, *losses;
  float* grads[kRecurrentBias + 1] = {};
  bool* hits;

  const float* weight(int64_t which) const { return weights[which].const_data_ptr<float>(); }

  // Call with the weights' first row, number of rows, and first column among gates in whole vectors.
  template <typename Call>
  void by_blocks(const Call& call) const {
    if (h == H) return call(0, gates * h, 0);
    for (int64_t gate = 0; gate < gates; ++gate) call(gate * h, h, gate * H);
  }

  // Input weights of one copy of the embedding, or of the encoding.
  Matrix inputs_of(int64_t row, int64_t count, int64_t part) const {
    return {weight(kInput) + row * columns + part * E, count, part < copies ? E : D, columns};
  }

  void check() const {
    for (const auto& tensor : {tokens, targets})
      TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kLong, "ids must be contiguous");
    TORCH_CHECK(B > 0 && targets.size(0) == B && 0 < S && S <= T, "targets do not fit the tokens");
    TORCH_CHECK(D == (encodings ? encodings->size(1) : 0) && (!D || encodings->size(0) == T),
                "encodings do not fit");
    TORCH_CHECK(!queries || K < ids, "no query row");
    for (const auto& list : {weights, firsts, seconds})
      for (size_t at = 0; at < weights.size(); ++at)
        TORCH_CHECK(list[at].is_contiguous() && list[at].scalar_type() == at::kFloat &&
                        list[at].sizes() == weights[at].sizes(),
                    "weights and moments must be contiguous float32, of one shape");
    const int64_t* wanted = targets.const_data_ptr<int64_t>();
    for (int64_t place = 0; place < B * S; ++place)
      TORCH_CHECK_INDEX(0 <= wanted[place] && wanted[place] < K, "target ", wanted[place],
                        " is none of 0 … ", K - 1);
  }

  // Find the rows that are shown, before there is memory for more.
  void index(std::vector<bool>& is_shown) {
    const int64_t* shown = tokens.const_data_ptr<int64_t>();
    for (int64_t place = 0; place < B * L; ++place) {
      TORCH_CHECK_INDEX(0 <= shown[place] && shown[place] < ids, "token id ", shown[place],
                        " is none of 0 … ", ids - 1);
      is_shown[shown[place]] = true;
    }
    if (queries) is_shown[K] = true;
    num_rows = std::count(is_shown.begin(), is_shown.end(), true);
  }

  // Lay everything out; without memory only count.
  int64_t lay_out(float* space) {
    Arena arena{space};
    const bool lstm = gates == 4;
    const int64_t places = T * B;
    // Rows a power of two apart would share few lines of the first cache.
    layer.stride = (gates == 1 ? 1 : 4) * H + 16;
    chunk = std::clamp(kLogits / K, int64_t{1}, B * S);
    row_of = arena.take<int32_t>(ids), rows = arena.take<int32_t>(places);
    shown_vectors = arena.take(num_rows < ids ? num_rows * E : 0);
    table = arena.take(num_rows * width), codes = arena.take(T * width), bias_hn = arena.take(H);
    ahead = arena.take(width * H), back = arena.take(width * H);
    layer.states = arena.take(places * H);
    layer.cells = lstm ? arena.take(places * H) : nullptr;
    layer.kept = arena.take(places * layer.stride);
    layer.carry = arena.take(B * H);
    grad_states = arena.take(B * S * H), logits = arena.take(chunk * K), losses = arena.take(B * S);
    hits = reinterpret_cast<bool*>(arena.take(B * S));
    layer.grad_table = arena.take(blocks * num_rows * width);
    layer.grad_codes = arena.take(blocks * T * width), layer.grad_bias_hn = arena.take(blocks * H);
    for (size_t which = 0; which < weights.size(); ++which)
      grads[which] = arena.take(weights[which].numel());
    return arena.used;
  }

  void project() {
    const int64_t* shown = tokens.const_data_ptr<int64_t>();
    vectors = num_rows < ids ? shown_vectors : weight(kEmbedding);
    for (int64_t place = 0; num_rows < ids && place < num_rows; ++place)
      std::copy_n(weight(kEmbedding) + used[place] * E, E, shown_vectors + place * E);
    for (int64_t step = 0; step < T; ++step)
      for (int64_t row = 0; row < B; ++row)
        rows[step * B + row] = row_of[step < L ? shown[row * L + step] : K];
    std::fill_n(codes, width, 0.f);
    std::fill_n(bias_hn, H, 0.f);
    if (H > h) std::fill_n(table, num_rows * width, 0.f);
    for (int64_t row = 0; has_bias && row < gates * h; ++row) {
      const bool behind = gates == 3 && row >= 2 * h;
      const float one = weight(kInputBias)[row], other = weight(kRecurrentBias)[row];
      if (behind) bias_hn[row - 2 * h] = other;
      codes[row / h * H + row % h] = behind ? one : one + other;
    }
    for (int64_t step = 1; step < T; ++step) std::copy_n(codes, width, codes + step * width);
    by_blocks([&](int64_t row, int64_t count, int64_t column) {
      for (int64_t copy = 0; copy < copies; ++copy)
        multiply(table + column, width, {vectors, num_rows, E, E}, inputs_of(row, count, copy).t(),
                 copy > 0);
      if (D)
        multiply(codes + column, width, Matrix(*encodings), inputs_of(row, count, copies).t(), true);
    });
  }

  template <typename Run>
  void share_batch(const Run& run) const {
    at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        run(block * B / blocks, (block + 1) * B / blocks, block);
    });
  }

  template <typename Cell>
  void recur() {
    const int64_t vectors_of = H / kWidth;
    const int64_t abreast = vectors_of % 4 == 0 ? 4 : vectors_of % 2 == 0 ? 2 : 1;
    pack_ahead(weight(kRecurrent), h, H, gates, ahead);
    // A single panel is the weight itself.
    const bool is_packed = h == abreast * kWidth;
    if (!is_packed) pack_back(weight(kRecurrent), h, H, gates, abreast * kWidth, back);
    const auto [states, cells, kept] = std::tie(layer.states, layer.cells, layer.kept);
    layer = {B, T, L, S, H, num_rows, layer.stride, table, codes, bias_hn, rows, ahead,
             is_packed ? weight(kRecurrent) : back, states, cells,
             kept, grad_states, layer.grad_table, layer.grad_codes, layer.grad_bias_hn, layer.carry};
    share_batch([&](int64_t first, int64_t last, int64_t) { layer.run_forward<Cell>(first, last); });
    read_out();
    std::fill_n(layer.grad_table, blocks * num_rows * width, 0.f);
    std::fill_n(layer.grad_codes, blocks * T * width, 0.f);
    std::fill_n(layer.grad_bias_hn, blocks * H, 0.f);
    std::fill_n(layer.carry, B * H, 0.f);
    share_batch([&](int64_t first, int64_t last, int64_t block) {
      if (abreast == 4) return layer.run_back<Cell, 4>(first, last, block);
      if (abreast == 2) return layer.run_back<Cell, 2>(first, last, block);
      layer.run_back<Cell, 1>(first, last, block);
    });
    for (const auto& [sums, count] : {std::pair{layer.grad_table, num_rows * width},
                                      std::pair{layer.grad_codes, T * width},
                                      std::pair{layer.grad_bias_hn, H}})
      for (int64_t at = 0; blocks > 1 && at < count; ++at)
        for (int64_t block = 1; block < blocks; ++block) sums[at] += sums[block * count + at];
    for (int64_t step = L; step < T; ++step)
      for (int64_t at = 0; at < width; ++at)
        layer.grad_table[row_of[K] * width + at] += layer.grad_codes[step * width + at];
    add_up();
  }

  // Logits, some at a time, become their own gradient, and that the gradients of what made them.
  void read_out() {
    const float* states = layer.states + (T - S) * B * H;
    const Matrix output(weight(kOutput), K, h, h);
    const int64_t* given = targets.const_data_ptr<int64_t>();
    std::vector<int64_t> wanted(B * S);  // time first
    for (int64_t place = 0; place < B * S; ++place) wanted[place] = given[place % B * S + place / B];
    if (H > h) std::fill_n(grad_states, B * S * H, 0.f);
    std::fill_n(grads[kOutputBias], K, 0.f);
    for (int64_t start = 0; start < B * S; start += chunk) {
      const int64_t count = std::min(chunk, B * S - start);
      const Matrix values(logits, count, K, K), read(states + start * H, count, h, H);
      multiply(logits, K, read, output.t());
      at::parallel_for(0, count, 1 + (1 << 14) / K, [&](int64_t begin, int64_t end) {
        cross_entropy_rows(logits + begin * K, weight(kOutputBias), end - begin, K, &wanted[start + begin],
                           1.f / (B * S), true, losses + start + begin, hits + start + begin);
      });
      at::parallel_for(0, K, 1 << 10, [&](int64_t begin, int64_t end) {
        for (int64_t row = 0; row < count; ++row)
          for (int64_t id = begin; id < end; ++id) grads[kOutputBias][id] += logits[row * K + id];
      });
      multiply(grad_states + start * H, H, values, output);
      multiply(grads[kOutput], h, values.t(), read, start > 0);
    }
  }

  // The weights' gradients: products over all steps, and over all rows that were shown.
  void add_up() {
    const int64_t stride = layer.stride, rest = (T - 1) * B;
    float* vector_grads = num_rows < ids ? shown_vectors : grads[kEmbedding];
    by_blocks([&](int64_t row, int64_t count, int64_t column) {
      const Matrix found(layer.grad_table + column, num_rows, count, width);
      multiply(grads[kRecurrent] + row * h, h,
               Matrix(layer.kept + B * stride + column, rest, count, stride).t(),
               {layer.states, rest, h, H});
      float* to = grads[kInput] + row * columns;
      for (int64_t copy = 0; copy < copies; ++copy)
        multiply(to + copy * E, columns, found.t(), {vectors, num_rows, E, E});
      if (D)
        multiply(to + copies * E, columns, Matrix(layer.grad_codes + column, T, count, width).t(),
                 Matrix(*encodings));
    });
    by_blocks([&](int64_t row, int64_t count, int64_t column) {
      for (int64_t copy = 0; copy < copies; ++copy)
        multiply(vector_grads, E, {layer.grad_table + column, num_rows, count, width},
                 inputs_of(row, count, copy), row || copy);
    });
    if (num_rows < ids) {
      std::fill_n(grads[kEmbedding], ids * E, 0.f);
      for (int64_t place = 0; place < num_rows; ++place)
        std::copy_n(shown_vectors + place * E, E, grads[kEmbedding] + used[place] * E);
    }
    // Over all steps, into the first one's.
    for (int64_t step = 1; step < T; ++step)
      for (int64_t at = 0; at < width; ++at) layer.grad_codes[at] += layer.grad_codes[step * width + at];
    for (int64_t row = 0; has_bias && row < gates * h; ++row) {
      const float sum = layer.grad_codes[row / h * H + row % h];
      grads[kInputBias][row] = sum;
      grads[kRecurrentBias][row] = gates == 3 && row >= 2 * h ? layer.grad_bias_hn[row - 2 * h] : sum;
    }
  }

  // Clip, take Adam's step, and add loss, norm and share of right answers to the sums.
  void finish(double rate, double beta1, double beta2, double epsilon, double clip_norm, double* sums) {
    std::vector<Piece> pieces;
    for (size_t which = 0; which < weights.size(); ++which)
      for (int64_t at = 0, all = weights[which].numel(); at < all; at += kPiece)
        pieces.push_back({weights[which].mutable_data_ptr<float>() + at,
                          firsts[which].mutable_data_ptr<float>() + at,
                          seconds[which].mutable_data_ptr<float>() + at, grads[which] + at,
                          std::min(kPiece, all - at)});
    std::vector<double> squares(pieces.size());
    const auto each = [&](const auto& call) {
      at::parallel_for(0, pieces.size(), 2, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) call(piece);
      });
    };
    each([&](int64_t piece) { squares[piece] = pieces[piece].squares(); });
    double total = 0, loss = 0, right = 0;
    for (const double one : squares) total += one;
    const double norm = std::sqrt(total);
    // In this order a NaN stays one.
    double scale = clip_norm / (norm + 1e-6);
    if (scale > 1) scale = 1;
    for (const Tensor& count : counts) *count.mutable_data_ptr<float>() += 1;
    const double step = *counts[0].const_data_ptr<float>();
    const Adam adam{.scale = float(scale),
                    .keep1 = float(beta1),
                    .add1 = float(1 - beta1),
                    .keep2 = float(beta2),
                    .add2 = float(1 - beta2),
                    .rate = float(rate / (1 - std::pow(beta1, step))),
                    .root = float(std::sqrt(1 - std::pow(beta2, step))),
                    .epsilon = float(epsilon)};
    each([&](int64_t piece) { adam.change(pieces[piece]); });
    for (int64_t place = 0; place < B * S; ++place) loss += losses[place], right += hits[place];
    sums[0] += loss / (B * S), sums[1] += norm, sums[2] += right / (B * S);
  }
};

void update(const std::string& kind, at::TensorList weights, at::TensorList firsts,
            at::TensorList seconds, at::TensorList counts, const optional<Tensor>& encodings,
            int64_t copies, const Tensor& tokens, const Tensor& targets, int64_t queries, double rate,
            double beta1, double beta2, double epsilon, double clip_norm, Tensor sums, Tensor space) {
  Update one{weights, firsts, seconds, counts, encodings, copies, tokens, targets, queries};
  one.check();
  std::vector<bool> is_shown(one.ids);
  one.index(is_shown);
  one.lay_out(reserve(space, one.lay_out(nullptr)));
  for (int64_t id = 0; id < one.ids; ++id)
    if (is_shown[id]) one.row_of[id] = one.used.size(), one.used.push_back(id);
  one.project();
  if (kind == "elman")
    one.recur<Elman>();
  else if (kind == "gru")
    one.recur<GRU>();
  else
    one.recur<LSTM>();
  one.finish(rate, beta1, beta2, epsilon, clip_norm, sums.mutable_data_ptr<double>());
}

TORCH_LIBRARY_FRAGMENT(pernn, library) {
  library.def(
      "update(str kind, Tensor(a!)[] weights, Tensor(b!)[] firsts, Tensor(c!)[] seconds, "
      "Tensor(d!)[] counts, Tensor? encodings, int copies, Tensor tokens, Tensor targets, int queries, "
      "float rate, float beta1, float beta2, float epsilon, float clip_norm, Tensor(e!) sums, "
      "Tensor(f!) space) -> ()",
      torch::dispatch(c10::DispatchKey::CPU, &update));
}

// There is nothing to differentiate: this saves a way through autograd, and the caller `no_grad`.
TORCH_LIBRARY_IMPL(pernn, Autograd, library) {
  library.impl("update", torch::CppFunction::makeFallthrough());
}

}  // namespace
}  // namespace pernn

#endif
