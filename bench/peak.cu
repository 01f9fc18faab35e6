// The most that FP32 arithmetic reaches on this GPU now, at its clock of the day: a loop of FFMA
// instructions that touches no memory.
#include "cuda_check.hpp"
#include "peak.hpp"

namespace tilegate::bench {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 8;  // 2048 threads: full occupancy where that is the limit
constexpr int kChains = 8;                   // independent sums a thread: FFMA latency is 4 cycles
constexpr int kUnroll = 16;                  // steps between two branches
constexpr int kFirstIterations = 1 << 10;
constexpr double kSeconds = 0.02;  // of the measured launch, and of the one that warms up

constexpr double kFlopsPerIteration = 2.0 * kChains * kUnroll * kThreads;  // of a block

}  // namespace

__global__ void ffma_loop(float* out, int iterations, float x, float y) {
  float sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = static_cast<float>(threadIdx.x + i);
  for (int step = 0; step < iterations; ++step) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) sums[i] = fmaf(sums[i], x, y);
    }
  }
  float total = 0.0F;
  for (int i = 0; i < kChains; ++i) total += sums[i];
  if (total == -1.0F) *out = total;  // never, but the compiler cannot know
}

double measure_ffma_gflops(int multiprocessors, Stream stream) {
  const int blocks = multiprocessors * kBlocksPerMultiprocessor;
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  check(cudaEventCreate(&start), "event");
  check(cudaEventCreate(&stop), "event");

  const auto seconds_of = [&](int iterations) {
    check(cudaEventRecord(start, stream), "event");
    // x = 0.5 and y = 1: sums converge to 2 and stay normal numbers.
    ffma_loop<<<blocks, kThreads, 0, stream>>>(nullptr, iterations, 0.5F, 1.0F);
    check(cudaGetLastError(), "peak");
    check(cudaEventRecord(stop, stream), "event");
    check(cudaEventSynchronize(stop), "peak");
    float milliseconds = 0.0F;
    check(cudaEventElapsedTime(&milliseconds, start, stop), "event");
    return static_cast<double>(milliseconds) * 1e-3;
  };
  int iterations = kFirstIterations;
  static_cast<void>(seconds_of(iterations));  // loads the kernel
  for (int launch = 0; launch < 2; ++launch) {
    iterations = static_cast<int>(iterations * kSeconds / seconds_of(iterations));
  }
  const double seconds = seconds_of(iterations);
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return kFlopsPerIteration * iterations * blocks / seconds / 1e9;
}

}  // namespace tilegate::bench
