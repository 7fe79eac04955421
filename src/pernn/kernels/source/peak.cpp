// The instructions that products are made of, on registers alone: no product is faster.

#include "tiles.h"
#include "vectors.h"

#include <ATen/Parallel.h>
#include <torch/library.h>

#include <algorithm>
#include <string>

namespace pernn {
namespace {

// Run on every thread; the operations of one thread and repetition are given back, 0 if there are no
// such instructions here.
template <typename Work>
double on_all_threads(double operations, int64_t repeats, const Work& work) {
  const int64_t threads = at::get_num_threads();
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) work(repeats);
  });
  return operations * static_cast<double>(threads * repeats);
}

#ifdef PERNN_VECTORS

// As many chains as a tile of sums has, so that none waits for its last result.
constexpr int64_t kChains = kTileRows * kTileVectors;

[[gnu::noinline]] void add_products(int64_t repeats) {
  Vec sums[kChains];
  for (auto& sum : sums) sum = Vec(0.f);
  const Vec left(0.75f), right(0.5f);
  for (int64_t turn = 0; turn < repeats; ++turn) {
#pragma GCC unroll 24
    for (auto& sum : sums) sum = at::vec::fmadd(left, right, sum);
  }
  Vec total(0.f);
  for (const auto& sum : sums) total = total + sum;
  alignas(64) float kept[kWidth];
  total.store(kept);
  asm volatile("" ::"r"(kept) : "memory");
}

#endif

#ifdef __AVX512BF16__

constexpr int64_t kPairChains = 24;

[[gnu::noinline]] void add_pairs(int64_t repeats) {
  __m512 sums[kPairChains];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  const auto factor = (__m512bh)_mm512_set1_epi16(0x3f00);
  for (int64_t turn = 0; turn < repeats; ++turn) {
#pragma GCC unroll 24
    for (auto& sum : sums) sum = _mm512_dpbf16_ps(sum, factor, factor);
  }
  __m512 total = _mm512_setzero_ps();
  for (const auto& sum : sums) total = _mm512_add_ps(total, sum);
  asm volatile("" ::"v"(total));
}

#endif

#ifdef PERNN_MATRIX_UNITS

[[gnu::noinline]] void add_tiles(int64_t repeats) {
  alignas(64) uint16_t ones[kTileSize];
  std::fill_n(ones, kTileSize, uint16_t{0x3f00});
  asm volatile("" ::"r"(ones) : "memory");
  const Tiles tiles;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  _tile_loadd(6, ones, 64);
  _tile_loadd(7, ones, 64);
  for (int64_t turn = 0; turn < repeats; ++turn) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

#endif

// Operations that were done: `vectors` (float32), `pairs` (bfloat16 by vectors) or `tiles` (bfloat16 by
// matrix units).
double register_operations(const std::string& kind, int64_t repeats) {
#ifdef PERNN_VECTORS
  if (kind == "vectors") return on_all_threads(2. * kChains * kWidth, repeats, add_products);
#endif
#ifdef __AVX512BF16__
  if (kind == "pairs") return on_all_threads(4. * kPairChains * 16, repeats, add_pairs);
#endif
#ifdef PERNN_MATRIX_UNITS
  if (kind == "tiles" && may_use_units())
    return on_all_threads(4. * 2 * kTile * kTile * kInner, repeats, add_tiles);
#endif
  return 0;
}

TORCH_LIBRARY_FRAGMENT(pernn, library) { library.def("register_operations", &register_operations); }

}  // namespace
}  // namespace pernn
