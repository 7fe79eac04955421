// The squashing functions, some vectors at a time.
//
// PyTorch's own (Sleef) are exact to one unit in the last place and take most of a small network's
// time. These take less of it, with AVX-512 a third, and are exact to three; tests/kernels has the
// bounds. Without AVX-512 or AVX2 PyTorch's serve.

#pragma once

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include <cstdint>

namespace pernn {

using Vec = at::vec::Vectorized<float>;
constexpr int64_t kWidth = Vec::size();

#if defined(CPU_CAPABILITY_AVX512) || defined(CPU_CAPABILITY_AVX2)

// e^x = 2^n (1 + tail): how many there are, and a polynomial for e^r − 1 over r, exact to 2⁻²⁶.
constexpr float kPerLn2 = 1.44269504f;
constexpr float kLn2[] = {0.693359375f, -2.12194440e-4f};  // n times the first is exact
constexpr float kSeries[] = {0x1.6d995cp-10f, 0x1.122838p-7f, 0x1.555486p-5f, 0x1.5554bp-3f, 0.5f, 1.f};
// Added to a small number, leaves the next whole one in the last digits, with the bias of exponents.
constexpr float kWhole = 3 << 22, kBias = 127;

#ifdef CPU_CAPABILITY_AVX512
using Raw = __m512;
#define PERNN_MM(name) _mm512_##name
#else
using Raw = __m256;
#define PERNN_MM(name) _mm256_##name
#endif

inline Raw all(float value) { return PERNN_MM(set1_ps)(value); }

// 2^n of n + kWhole + kBias; 0 where n is −127.
inline Raw power_of_two(Raw n) {
#ifdef CPU_CAPABILITY_AVX512
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(n), 23));
#else
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(n), 23));
#endif
}

// 1/x, with AVX-512 by one step of Newton's method; x normal, and not so large that 1/x is not.
inline Vec reciprocal(const Vec& of) {
#ifdef CPU_CAPABILITY_AVX512
  const __m512 x = of;
  const __m512 guess = _mm512_rcp14_ps(x);
  const __m512 error = _mm512_fnmadd_ps(x, guess, all(1.f));
  return _mm512_fmadd_ps(guess, error, guess);
#else
  return of.reciprocal();
#endif
}

// e^x for x ≤ 88; 0 far below, as of −∞, by which ids are masked. In this order a NaN stays one.
inline Vec exponential(const Vec& given) {
  const Raw x = PERNN_MM(max_ps)(all(-104.f), given);
  const Raw n = PERNN_MM(sub_ps)(PERNN_MM(fmadd_ps)(x, all(kPerLn2), all(kWhole)), all(kWhole));
  const Raw r = PERNN_MM(fnmadd_ps)(n, all(kLn2[1]), PERNN_MM(fnmadd_ps)(n, all(kLn2[0]), x));
  Raw tail = all(kSeries[0]);
  for (int64_t at = 1; at < 6; ++at) tail = PERNN_MM(fmadd_ps)(tail, r, all(kSeries[at]));
#ifdef CPU_CAPABILITY_AVX512
  const Raw power = _mm512_scalef_ps(all(1.f), n);
#else
  const Raw power = power_of_two(_mm256_add_ps(_mm256_max_ps(all(-kBias), n), all(kWhole + kBias)));
#endif
  return PERNN_MM(fmadd_ps)(power, PERNN_MM(mul_ps)(tail, r), power);
}

#define PERNN_EACH _Pragma("GCC unroll 16") for (int64_t at = 0; at < kAll; ++at)

// Logistic function of the first numbers, tanh of the others, stage by stage: a processor holds few
// instructions that wait, so chains one behind another would not overlap.
//
// By e^{-x}: 1 / (e + 1), and by e^{2x}: (e − 1) / (e + 1), where e − 1 is computed without
// cancellation, so that small x keep their digits.
template <int64_t kLogistic, int64_t kTanh>
inline __attribute__((always_inline)) void squash(Vec (&values)[kLogistic + kTanh]) {
  constexpr int64_t kAll = kLogistic + kTanh;
  Raw x[kAll], power[kAll], tail[kAll];
  // In this order a NaN stays one.
  PERNN_EACH x[at] = PERNN_MM(min_ps)(all(at < kLogistic ? 87.f : 10.f), values[at]);
  PERNN_EACH x[at] = PERNN_MM(max_ps)(all(at < kLogistic ? -87.f : -10.f), x[at]);
  PERNN_EACH power[at] =
      PERNN_MM(fmadd_ps)(x[at], all((at < kLogistic ? -1 : 2) * kPerLn2), all(kWhole + kBias));
  PERNN_EACH {
    const Raw n = PERNN_MM(sub_ps)(power[at], all(kWhole + kBias));
    x[at] = at < kLogistic ? PERNN_MM(fnmsub_ps)(n, all(kLn2[0]), x[at])
                           : PERNN_MM(fnmadd_ps)(n, all(kLn2[0] / 2), x[at]);
    x[at] = PERNN_MM(fnmadd_ps)(n, all(kLn2[1] / (at < kLogistic ? 1 : 2)), x[at]);
  }
  PERNN_EACH power[at] = power_of_two(power[at]);
  PERNN_EACH tail[at] = all(kSeries[0] * (at < kLogistic ? 1 : 64));
#pragma GCC unroll 8
  for (int64_t term = 1; term < 6; ++term)
    PERNN_EACH tail[at] = PERNN_MM(fmadd_ps)(
        tail[at], x[at], all(kSeries[term] * (at < kLogistic ? 1 : 1 << (6 - term))));
  PERNN_EACH tail[at] = PERNN_MM(mul_ps)(tail[at], x[at]);
  PERNN_EACH x[at] = PERNN_MM(add_ps)(power[at], all(at < kLogistic ? 1.f : -1.f));
  PERNN_EACH power[at] = PERNN_MM(fmadd_ps)(power[at], tail[at], x[at]);
  PERNN_EACH x[at] = at < kLogistic ? power[at] : PERNN_MM(add_ps)(power[at], all(2.f));
#ifdef CPU_CAPABILITY_AVX512
  PERNN_EACH tail[at] = _mm512_rcp14_ps(x[at]);
  PERNN_EACH x[at] = _mm512_fnmadd_ps(x[at], tail[at], all(1.f));
  PERNN_EACH x[at] = _mm512_fmadd_ps(tail[at], x[at], tail[at]);
  PERNN_EACH values[at] = at < kLogistic ? x[at] : _mm512_mul_ps(power[at], x[at]);
#else
  PERNN_EACH values[at] = _mm256_div_ps(at < kLogistic ? all(1.f) : power[at], x[at]);
#endif
}

#undef PERNN_EACH
#undef PERNN_MM

#else

inline Vec exponential(const Vec& x) { return x.exp(); }

inline Vec reciprocal(const Vec& x) { return x.reciprocal(); }

template <int64_t kLogistic, int64_t kTanh>
inline void squash(Vec (&values)[kLogistic + kTanh]) {
  for (int64_t at = 0; at < kLogistic + kTanh; ++at)
    // As above never so small that its reciprocal is no number.
    values[at] = at < kLogistic
                     ? reciprocal(Vec(1.f) + at::vec::clamp_max(values[at].neg(), Vec(87.f)).exp())
                     : values[at].tanh();
}

#endif

}  // namespace pernn
