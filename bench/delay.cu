#include "cuda_check.hpp"
#include "delay.hpp"

namespace tilegate::bench {

__global__ void spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

void enqueue_spin(long long cycles, Stream stream) {
  spin<<<1, 1, 0, stream>>>(cycles);
  check(cudaGetLastError(), "delay");
}

}  // namespace tilegate::bench
