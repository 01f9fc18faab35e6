// Executes lane patterns, each in a launch of one warp, for ncu to measure. Reads a line a pattern:
//
//   shared_load|shared_store|global_load|global_store <bytes> <mask, hex> <byte offset>×32
//
// The instructions are written out, because the compiler would narrow, merge or drop them.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include <cuda_runtime.h>

namespace {

constexpr unsigned kBytes = 32 * 1024;  // that offsets may reach

struct Pattern {
  unsigned mask;
  unsigned offset[32];
};

__device__ char global_memory[kBytes];

enum class Space { kShared, kGlobal };

template <Space kSpace, int kWidth>
__device__ float load(const void* p) {
  float x = 0, y = 0, z = 0, w = 0;
  const auto s = static_cast<unsigned>(__cvta_generic_to_shared(p));
  if constexpr (kSpace == Space::kShared) {
    if constexpr (kWidth == 4) asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(s));
    if constexpr (kWidth == 8)
      asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(s));
    if constexpr (kWidth == 16)
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                   : "r"(s));
  } else {
    if constexpr (kWidth == 4) asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(p));
    if constexpr (kWidth == 8)
      asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "l"(p));
    if constexpr (kWidth == 16)
      asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                   : "l"(p));
  }
  return x + y + z + w;
}

template <Space kSpace, int kWidth>
__device__ void store(void* p, float v) {
  const auto s = static_cast<unsigned>(__cvta_generic_to_shared(p));
  if constexpr (kSpace == Space::kShared) {
    if constexpr (kWidth == 4) asm volatile("st.shared.f32 [%0], %1;" ::"r"(s), "f"(v));
    if constexpr (kWidth == 8) asm volatile("st.shared.v2.f32 [%0], {%1, %1};" ::"r"(s), "f"(v));
    if constexpr (kWidth == 16)
      asm volatile("st.shared.v4.f32 [%0], {%1, %1, %1, %1};" ::"r"(s), "f"(v));
  } else {
    if constexpr (kWidth == 4) asm volatile("st.global.f32 [%0], %1;" ::"l"(p), "f"(v));
    if constexpr (kWidth == 8) asm volatile("st.global.v2.f32 [%0], {%1, %1};" ::"l"(p), "f"(v));
    if constexpr (kWidth == 16)
      asm volatile("st.global.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(p), "f"(v));
  }
}

// Offsets come from the kernel's parameters: nothing but the pattern touches memory.
template <Space kSpace, int kWidth, bool kStore>
__global__ void execute(const __grid_constant__ Pattern pattern) {
  extern __shared__ __align__(1024) char shared_memory[];
  char* base = kSpace == Space::kShared ? shared_memory : global_memory;
  unsigned offset = 0;
#pragma unroll
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (threadIdx.x == lane) offset = pattern.offset[lane];
  }
  if ((pattern.mask >> threadIdx.x & 1) == 0) return;
  if constexpr (kStore) {
    store<kSpace, kWidth>(base + offset, static_cast<float>(offset));
  } else {
    // Never true, but the compiler cannot know.
    if (load<kSpace, kWidth>(base + offset) == 12345.678F) global_memory[0] = 1;
  }
}

template <Space kSpace, bool kStore>
void launch(int width, const Pattern& pattern) {
  if (width == 4) execute<kSpace, 4, kStore><<<1, 32, kBytes>>>(pattern);
  if (width == 8) execute<kSpace, 8, kStore><<<1, 32, kBytes>>>(pattern);
  if (width == 16) execute<kSpace, 16, kStore><<<1, 32, kBytes>>>(pattern);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string kind;
    int width = 0;
    Pattern pattern{};
    in >> kind >> width >> std::hex >> pattern.mask >> std::dec;
    for (unsigned& offset : pattern.offset) in >> offset;
    if (!in) {
      std::cerr << "malformed: " << line << '\n';
      return 2;
    }
    if (kind == "shared_load") launch<Space::kShared, false>(width, pattern);
    if (kind == "shared_store") launch<Space::kShared, true>(width, pattern);
    if (kind == "global_load") launch<Space::kGlobal, false>(width, pattern);
    if (kind == "global_store") launch<Space::kGlobal, true>(width, pattern);
  }
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::cerr << cudaGetErrorString(error) << '\n';
  return error == cudaSuccess ? 0 : 1;
}
