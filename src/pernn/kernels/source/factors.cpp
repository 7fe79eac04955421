// Products of a batch of matrices with Σ_g diag(slope_g) W_g, in float32, by matrix units that
// multiply in bfloat16.
//
// Every float32 number is the exact sum of three bfloat16 numbers, x = x₁ + x₂ + x₃, each 2⁻⁹ of
// the one before at most. Of the nine products of parts, six are taken; the others lie below 2⁻²⁶
// of the whole, under float32's own rounding, and so does what is lost in the sums, which the
// units keep in float32. Six products at the units' rate cost less than one at the processor's.
//
// The matrix Σ_g diag(slope_g) W_g belongs to one sequence and one step: it is made panel by panel
// where it is used, already split, and never stored whole.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#if defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__linux__)
#define PERNN_MATRIX_UNITS
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#endif

namespace pernn {
namespace {

using at::Tensor;

#ifdef PERNN_MATRIX_UNITS

constexpr int64_t kTile = 16;            // rows of a tile, and columns of a tile of sums
constexpr int64_t kInner = 32;           // bfloat16 numbers in a row of a tile
constexpr int64_t kPanel = 2 * kTile;    // columns, and rows, that are worked on at once
constexpr int64_t kTileSize = kTile * kInner;
constexpr int64_t kParts = 3;
constexpr int kPermission = 0x1023, kTileData = 18;  // Linux: arch_prctl(ARCH_REQ_XCOMP_PERM, …)

bool may_use_units() {
  static const bool may = syscall(SYS_arch_prctl, kPermission, kTileData) == 0;
  return may;
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles of this thread, all 16 rows of 64 bytes, for as long as the object lives.
struct Tiles {
  Tiles() {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) config.bytes[tile] = 64, config.rows[tile] = kTile;
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// Memory that a thread keeps from one call to the next: fresh pages cost more than the products.
class Buffer {
 public:
  uint16_t* take(int64_t numbers) {
    if (numbers > size_) {
      data_.reset(static_cast<uint16_t*>(std::aligned_alloc(64, (2 * numbers + 63) / 64 * 64)));
      size_ = data_ ? numbers : 0;
      TORCH_CHECK(data_, "no memory for ", numbers, " numbers");
    }
    return data_.get();
  }

 private:
  std::unique_ptr<uint16_t, decltype(&std::free)> data_{nullptr, std::free};
  int64_t size_ = 0;
};

__m512 widen(__m256i numbers) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}

// Split 2 × 16 numbers into parts, each 32 numbers of bfloat16, first `low`'s then `high`'s.
void split(__m512 low, __m512 high, __m512i parts[kParts]) {
  for (int64_t part = 0; part < kParts; ++part) {
    const __m512i rounded = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    parts[part] = rounded;
    low = _mm512_sub_ps(low, widen(_mm512_castsi512_si256(rounded)));
    high = _mm512_sub_ps(high, widen(_mm512_extracti64x4_epi64(rounded, 1)));
  }
}

// What happens to the rows of a source on its way into a product: `other` ⊙ `leak` is added to them
// before, and afterwards they are multiplied with `forget`. All may be absent.
struct Passing {
  const float *other, *leak, *forget;
};

// Up to 32 rows of float32 to tiles: [rows/16][columns/32][part][16][32]; missing rows are zero.
void split_rows(float* from, int64_t rows, int64_t columns, const Passing& passing, uint16_t* to) {
  for (int64_t row = 0; row < kPanel; ++row) {
    uint16_t* tile = to + row / kTile * (columns / kInner) * kParts * kTileSize + row % kTile * kInner;
    for (int64_t column = 0; column < columns; column += kInner, tile += kParts * kTileSize) {
      __m512i parts[kParts] = {};
      if (row < rows) {
        __m512 values[2];
        for (int64_t half = 0; half < 2; ++half) {
          const int64_t at = column + half * kTile;
          float* place = from + row * columns + at;
          values[half] = _mm512_loadu_ps(place);
          if (passing.other)
            values[half] = _mm512_fmadd_ps(_mm512_loadu_ps(passing.other + row * columns + at),
                                           _mm512_loadu_ps(passing.leak + at), values[half]);
          const __m512 left = passing.forget
                                  ? _mm512_mul_ps(values[half], _mm512_loadu_ps(passing.forget + at))
                                  : values[half];
          if (passing.other || passing.forget) _mm512_storeu_ps(place, left);
        }
        split(values[0], values[1], parts);
      }
      for (int64_t part = 0; part < kParts; ++part)
        _mm512_store_si512(tile + part * kTileSize, parts[part]);
    }
  }
}

// What belongs to one source of one sequence.
struct Factor {
  const float* weights;  // [gate][panel][row][32]
  const float* slopes;   // [gate][row]
  const float* diagonal;
  at::IntArrayRef gates;
  int64_t size;

  __m512 entry(int64_t row, int64_t panel, int64_t half) const {
    __m512 sum = _mm512_setzero_ps();
    for (const int64_t gate : gates) {
      const float* at = weights + ((gate * (size / kPanel) + panel) * size + row) * kPanel;
      sum = _mm512_fmadd_ps(_mm512_set1_ps(slopes[gate * size + row]),
                            _mm512_loadu_ps(at + half * kTile), sum);
    }
    const int64_t column = row - panel * kPanel - half * kTile;
    if (diagonal && 0 <= column && column < kTile)
      sum = _mm512_mask_add_ps(sum, __mmask16(1 << column), sum, _mm512_set1_ps(diagonal[row]));
    return sum;
  }

  // A panel as tiles: [rows/32][half][part][16][2 × 16], rows two by two as the units want them.
  void split_panel(int64_t panel, uint16_t* to) const {
    alignas(64) uint16_t order[kInner];
    for (int64_t column = 0; column < kTile; ++column)
      order[2 * column] = column, order[2 * column + 1] = kTile + column;
    const __m512i interleave = _mm512_load_si512(order);
    for (int64_t row = 0; row < size; row += 2) {
      for (int64_t half = 0; half < 2; ++half) {
        __m512i parts[kParts];
        split(entry(row, panel, half), entry(row + 1, panel, half), parts);
        uint16_t* tile = to + (row / kInner * 2 + half) * kParts * kTileSize + row % kInner / 2 * kInner;
        for (int64_t part = 0; part < kParts; ++part)
          _mm512_store_si512(tile + part * kTileSize, _mm512_permutexvar_epi16(interleave, parts[part]));
      }
    }
  }
};

// The tiles of sums: 0 and 1 are those of the first 16 rows, 2 and 3 of the next.
#define PERNN_MULTIPLY()        \
  do {                          \
    _tile_dpbf16ps(0, 4, 6);    \
    _tile_dpbf16ps(1, 4, 7);    \
    _tile_dpbf16ps(2, 5, 6);    \
    _tile_dpbf16ps(3, 5, 7);    \
  } while (false)

// 32 rows times a panel, put where 32 × 32 numbers lie `stride` apart, or added to them.
void multiply(const uint16_t* left, int64_t next_rows, const uint16_t* right, int64_t blocks,
              bool add, float* sums, int64_t stride) {
  const int64_t bytes = stride * sizeof(float);
  if (add) {
    _tile_loadd(0, sums, bytes);
    _tile_loadd(1, sums + kTile, bytes);
    _tile_loadd(2, sums + kTile * stride, bytes);
    _tile_loadd(3, sums + kTile * stride + kTile, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  constexpr int64_t kBoth = kParts * kTileSize;
  const auto load_left = [&](int64_t part) {
    _tile_loadd(4, left + part * kTileSize, 64);
    _tile_loadd(5, left + next_rows + part * kTileSize, 64);
  };
  const auto load_right = [&](int64_t part) {
    _tile_loadd(6, right + part * kTileSize, 64);
    _tile_loadd(7, right + kBoth + part * kTileSize, 64);
  };
  for (int64_t block = 0; block < blocks; ++block, left += kBoth, right += 2 * kBoth) {
    // From one product to the next only one side changes.
    load_left(0), load_right(2);
    PERNN_MULTIPLY();
    load_right(1);
    PERNN_MULTIPLY();
    load_left(1);
    PERNN_MULTIPLY();
    load_right(0);
    PERNN_MULTIPLY();
    load_left(2);
    PERNN_MULTIPLY();
    load_left(0);
    PERNN_MULTIPLY();
  }
  _tile_stored(0, sums, bytes);
  _tile_stored(1, sums + kTile, bytes);
  _tile_stored(2, sums + kTile * stride, bytes);
  _tile_stored(3, sums + kTile * stride + kTile, bytes);
}

#undef PERNN_MULTIPLY

void multiply_rows(float* source, int64_t rows, const Factor& factor, Passing passing, bool add,
                   float* out) {
  static thread_local Buffer left_buffer, right_buffer;
  const int64_t size = factor.size, panel_size = kPanel * size * kParts;
  uint16_t* left = left_buffer.take(panel_size);
  uint16_t* right = right_buffer.take(size * size * kParts);
  for (int64_t panel = 0; panel < size / kPanel; ++panel)
    factor.split_panel(panel, right + panel * panel_size);
  const Tiles tiles;
  // All panels stay in the cache while 32 rows at a time pass by.
  for (int64_t row = 0; row < rows; row += kPanel) {
    const int64_t count = std::min(kPanel, rows - row);
    split_rows(source + row * size, count, size, passing, left);
    if (passing.other) passing.other += kPanel * size;
    for (int64_t panel = 0; panel < size / kPanel; ++panel) {
      float* sums = out + row * size + panel * kPanel;
      const uint16_t* columns = right + panel * panel_size;
      if (count == kPanel) {
        multiply(left, panel_size / 2, columns, size / kInner, add, sums, size);
        continue;
      }
      alignas(64) float rest[kPanel * kPanel] = {};
      for (int64_t one = 0; one < count; ++one)
        std::memcpy(rest + one * kPanel, sums + one * size, kPanel * sizeof(float));
      multiply(left, panel_size / 2, columns, size / kInner, add, rest, kPanel);
      for (int64_t one = 0; one < count; ++one)
        std::memcpy(sums + one * size, rest + one * kPanel, kPanel * sizeof(float));
    }
  }
}

#endif

// Columns that a panel of `multiply_factored` has; 0 where this machine has no matrix units.
int64_t factor_panel() {
#ifdef PERNN_MATRIX_UNITS
  if (may_use_units()) return kPanel;
#endif
  return 0;
}

#ifdef PERNN_MATRIX_UNITS
const float* at_sequence(const std::optional<Tensor>& tensor, int64_t index) {
  return tensor ? tensor->const_data_ptr<float>() + index * (tensor->numel() / tensor->size(0))
                : nullptr;
}
#endif

// source[b] += other[b] ⊙ leak[b];
// out[b] = source[b] · (Σ_{g ∈ gates} diag(slopes[b, g]) W_g + diag(diagonal[b])), or added to it;
// source[b] *= forget[b].
void multiply_factored(Tensor out, Tensor source, const Tensor& slopes, const Tensor& weights,
                       at::IntArrayRef gates, bool add, const std::optional<Tensor>& diagonal,
                       const std::optional<Tensor>& other, const std::optional<Tensor>& leak,
                       const std::optional<Tensor>& forget) {
#ifdef PERNN_MATRIX_UNITS
  const int64_t batch = source.size(0), rows = source.size(1), size = source.size(2);
  const int64_t all = slopes.size(1);
  TORCH_CHECK(may_use_units(), "no matrix units here");
  TORCH_CHECK(size % kPanel == 0 && source.is_contiguous() && out.is_contiguous() &&
                  out.sizes() == source.sizes() && weights.is_contiguous() && slopes.is_contiguous() &&
                  slopes.numel() == batch * all * size && weights.numel() == all * size * size,
              "shapes do not fit");
  for (const int64_t gate : gates) TORCH_CHECK(0 <= gate && gate < all, "no gate ", gate);
  for (const auto& vector : {diagonal, leak, forget})
    TORCH_CHECK(!vector || (vector->is_contiguous() && vector->numel() == batch * size));
  TORCH_CHECK(other.has_value() == leak.has_value() &&
              (!other || (other->is_contiguous() && other->sizes() == source.sizes())));
  float *sums = out.mutable_data_ptr<float>(), *from = source.mutable_data_ptr<float>();
  const float* matrices = weights.const_data_ptr<float>();
  at::parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t one = begin; one < end; ++one) {
      const Factor factor{matrices, at_sequence(slopes, one), at_sequence(diagonal, one), gates, size};
      const Passing passing{at_sequence(other, one), at_sequence(leak, one), at_sequence(forget, one)};
      multiply_rows(from + one * rows * size, rows, factor, passing, add, sums + one * rows * size);
    }
  });
#else
  TORCH_CHECK(false, "no matrix units here");
#endif
}

TORCH_LIBRARY_FRAGMENT(pernn, library) {
  library.def("factor_panel", &factor_panel);
  library.def(
      "multiply_factored(Tensor(a!) out, Tensor(b!) source, Tensor slopes, Tensor weights, "
      "int[] gates, bool add, Tensor? diagonal, Tensor? other, Tensor? leak, Tensor? forget) -> ()",
      &multiply_factored);
}

}  // namespace
}  // namespace pernn
