// The squashing functions, one vector at a time.
//
// PyTorch's own (Sleef) are exact to one unit in the last place and take most of a small network's
// time. With AVX-512 these take a third of it and are exact to about two; tests/kernels has the
// bounds. Elsewhere PyTorch's serve.

#pragma once

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include <cstdint>
#include <utility>

namespace pernn {

using Vec = at::vec::Vectorized<float>;
constexpr int64_t kWidth = Vec::size();

// Call with 0 … kCount − 1, without a loop.
template <int64_t kCount, typename Call>
inline __attribute__((always_inline)) void each(const Call& call) {
  [&]<int64_t... at>(std::integer_sequence<int64_t, at...>) __attribute__((always_inline)) {
    (call(at), ...);
  }(std::make_integer_sequence<int64_t, kCount>{});
}

// Call with pieces of at most `kMost` of what is between first and last.
template <int64_t kMost, typename Call>
inline void in_tiles(int64_t first, int64_t last, const Call& call) {
  for (; last - first >= kMost; first += kMost) call.template operator()<kMost>(first);
  if constexpr (kMost > 1)
    if (first < last) in_tiles<kMost - 1>(first, last, call);
}

#ifdef CPU_CAPABILITY_AVX512

// e^x = 2^n (1 + tail), with n whole and |ln(1 + tail)| ≤ ln 2 / 2. Each operation waits for the one
// before: several x go abreast, so that there is always one that need not wait.
template <int64_t kCount>
struct Exponentials {
  __m512 power[kCount], tail[kCount];

  explicit Exponentials(const __m512 (&x)[kCount]) {
    __m512 n[kCount], r[kCount];
    each<kCount>([&](int64_t at) { n[at] = _mm512_mul_ps(x[at], _mm512_set1_ps(1.44269504f)); });
    each<kCount>([&](int64_t at) { n[at] = _mm512_roundscale_ps(n[at], 0x08); });
    // ln 2 in two parts: the first has so few digits that n times it is exact.
    each<kCount>([&](int64_t at) { r[at] = _mm512_fnmadd_ps(n[at], _mm512_set1_ps(0.693359375f), x[at]); });
    each<kCount>([&](int64_t at) { r[at] = _mm512_fnmadd_ps(n[at], _mm512_set1_ps(-2.12194440e-4f), r[at]); });
    each<kCount>([&](int64_t at) { tail[at] = _mm512_set1_ps(1.f / 5040); });
    for (const float term : {1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 1.f / 2})
      each<kCount>([&](int64_t at) { tail[at] = _mm512_fmadd_ps(tail[at], r[at], _mm512_set1_ps(term)); });
    each<kCount>([&](int64_t at) { tail[at] = _mm512_fmadd_ps(_mm512_mul_ps(r[at], r[at]), tail[at], r[at]); });
    each<kCount>([&](int64_t at) { power[at] = _mm512_scalef_ps(_mm512_set1_ps(1.f), n[at]); });
  }
};

// 1/x by one step of Newton's method; x normal, and not so large that 1/x is not.
inline __m512 reciprocal(__m512 x) {
  const __m512 guess = _mm512_rcp14_ps(x);
  const __m512 error = _mm512_fnmadd_ps(x, guess, _mm512_set1_ps(1.f));
  return _mm512_fmadd_ps(guess, error, guess);
}

inline __m512 clamp(__m512 x, float bound) {
  // In this order a NaN stays one.
  x = _mm512_min_ps(_mm512_set1_ps(bound), x);
  return _mm512_max_ps(_mm512_set1_ps(-bound), x);
}

// e^x for x ≤ 88.
template <int64_t kCount>
inline void exponential(Vec (&x)[kCount]) {
  __m512 given[kCount];
  each<kCount>([&](int64_t at) { given[at] = x[at]; });
  const Exponentials<kCount> e(given);
  each<kCount>([&](int64_t at) { x[at] = _mm512_fmadd_ps(e.power[at], e.tail[at], e.power[at]); });
}

// The first so many become sigmoid(x), the others tanh(x) = (e^{2x} − 1) / (e^{2x} + 1); e^{2x} − 1 is
// computed without cancellation, so that small x keep their digits.
template <int64_t kSigmoids, int64_t kCount>
inline void squash(Vec (&x)[kCount]) {
  __m512 given[kCount], top[kCount], below[kCount];
  each<kCount>([&](int64_t at) {
    given[at] = at < kSigmoids ? clamp(_mm512_sub_ps(_mm512_setzero_ps(), x[at]), 87.f)
                               : clamp(_mm512_add_ps(x[at], x[at]), 20.f);
  });
  const Exponentials<kCount> e(given);
  const __m512 one = _mm512_set1_ps(1.f);
  each<kCount>([&](int64_t at) {
    const __m512 base = at < kSigmoids ? e.power[at] : _mm512_sub_ps(e.power[at], one);
    top[at] = _mm512_fmadd_ps(e.power[at], e.tail[at], base);
  });
  each<kCount>([&](int64_t at) {
    below[at] = _mm512_add_ps(top[at], at < kSigmoids ? one : _mm512_set1_ps(2.f));
  });
  each<kCount>([&](int64_t at) { below[at] = reciprocal(below[at]); });
  each<kCount>([&](int64_t at) { x[at] = at < kSigmoids ? below[at] : _mm512_mul_ps(top[at], below[at]); });
}

#else

template <int64_t kCount>
inline void exponential(Vec (&x)[kCount]) {
  for (Vec& one : x) one = one.exp();
}

template <int64_t kSigmoids, int64_t kCount>
inline void squash(Vec (&x)[kCount]) {
  for (int64_t at = 0; at < kCount; ++at)
    x[at] = at < kSigmoids ? (Vec(1.f) + x[at].neg().exp()).reciprocal() : x[at].tanh();
}

#endif

}  // namespace pernn
