// The squashing functions, one vector at a time.
//
// PyTorch's own (Sleef) are exact to one unit in the last place and take most of a small network's
// time. With AVX-512 these take a third of it and are exact to about two; tests/kernels has the
// bounds. Elsewhere PyTorch's serve.

#pragma once

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include <cstdint>

namespace pernn {

using Vec = at::vec::Vectorized<float>;
constexpr int64_t kWidth = Vec::size();

#ifdef CPU_CAPABILITY_AVX512

// e^x = 2^n (1 + tail), with n whole and |ln(1 + tail)| ≤ ln 2 / 2.
struct Exponential {
  __m512 power, tail;
};

inline Exponential split_exponential(__m512 x) {
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0x08);
  // ln 2 in two parts: the first has so few digits that n times it is exact.
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 series = _mm512_set1_ps(1.f / 5040);
  for (const float term : {1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 1.f / 2})
    series = _mm512_fmadd_ps(series, r, _mm512_set1_ps(term));
  const __m512 tail = _mm512_fmadd_ps(_mm512_mul_ps(r, r), series, r);
  return {_mm512_scalef_ps(_mm512_set1_ps(1.f), n), tail};
}

// 1/x by one step of Newton's method; x normal, and not so large that 1/x is not.
inline Vec reciprocal(const Vec& of) {
  const __m512 x = of;
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
inline Vec exponential(const Vec& x) {
  const auto [power, tail] = split_exponential(x);
  return _mm512_fmadd_ps(power, tail, power);
}

inline Vec sigmoid(const Vec& x) {
  const auto [power, tail] = split_exponential(clamp(_mm512_sub_ps(_mm512_setzero_ps(), x), 87.f));
  return reciprocal(_mm512_add_ps(_mm512_fmadd_ps(power, tail, power), _mm512_set1_ps(1.f)));
}

// (e^{2x} − 1) / (e^{2x} + 1); e^{2x} − 1 is computed without cancellation, so that small x keep
// their digits.
inline Vec tanh(const Vec& x) {
  const __m512 twice = clamp(_mm512_add_ps(x, x), 20.f);
  const auto [power, tail] = split_exponential(twice);
  const __m512 less = _mm512_sub_ps(power, _mm512_set1_ps(1.f));
  const __m512 minus_one = _mm512_fmadd_ps(power, tail, less);
  return _mm512_mul_ps(minus_one, reciprocal(_mm512_add_ps(minus_one, _mm512_set1_ps(2.f))));
}

#else

inline Vec exponential(const Vec& x) { return x.exp(); }

inline Vec reciprocal(const Vec& x) { return x.reciprocal(); }

// As above never so small that its reciprocal is no number.
inline Vec sigmoid(const Vec& x) {
  return reciprocal(Vec(1.f) + at::vec::clamp_max(x.neg(), Vec(87.f)).exp());
}

inline Vec tanh(const Vec& x) { return x.tanh(); }

#endif

}  // namespace pernn
