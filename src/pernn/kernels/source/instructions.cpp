// What the library was compiled for, and what works on this processor.

#include "tiles.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <c10/util/BFloat16.h>
#include <torch/library.h>

#include <string>
#include <vector>

namespace pernn {
namespace {

#define PERNN_TEXT(word) #word
#define PERNN_NAME(word) PERNN_TEXT(word)

// `AMX`, `AVX512`, `AVX2` or `DEFAULT`.
std::string instructions() {
#ifdef PERNN_MATRIX_UNITS
  if (may_use_units()) return "AMX";
#endif
  return PERNN_NAME(CPU_CAPABILITY);
}

// Whether the library's products of bfloat16 numbers with sums in float32 work here.
bool multiplies_bfloat16() {
  const std::vector<at::BFloat16> factors(32 * 32, at::BFloat16(1.f));
  std::vector<float> sums(32 * 32);
  try {
    at::native::cpublas::brgemm(32, 32, 32, 32, 32, 32, false, factors.data(), factors.data(),
                                sums.data());
    at::native::cpublas::brgemm_release();
  } catch (const std::exception&) {
    return false;
  }
  return sums.front() == 32.f && sums.back() == 32.f;
}

// Take numbers below 2⁻¹²⁶ for zero, or not, in all threads of PyTorch's loops: each has a setting of
// its own, which it got from the one that made it.
void flush_denormals(bool flush) {
  at::parallel_for(0, at::get_num_threads(), 1,
                   [&](int64_t, int64_t) { at::globalContext().setFlushDenormal(flush); });
}

TORCH_LIBRARY_FRAGMENT(pernn, library) {
  library.def("instructions", &instructions);
  library.def("multiplies_bfloat16", &multiplies_bfloat16);
  library.def("flush_denormals", &flush_denormals);
}

}  // namespace
}  // namespace pernn
