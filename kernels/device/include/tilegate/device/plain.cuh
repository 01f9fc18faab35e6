// Plain CUDA kernels join the ladder unchanged, in a source of their own that a wrapper includes.
// The wrapper is the source of a stage:
//
//   #include <tilegate/device/plain.cuh>
//   #include "sgemm_kernel.cuh"
//
//   namespace tilegate::mine {
//
//   void run(const plain::Call& p) {
//     sgemm<128, 8><<<dim3(p.n / 128, p.m / 128), 256, 0, p.stream>>>(
//         p.m, p.n, p.k, p.alpha, p.a, p.b, p.beta, p.c);
//   }
//
//   extern const Stage stage;
//   const Stage stage{
//       .name = "Mine",
//       .restrictions = {.multiple_of = {128, 128, 8}, .dense = true, .int_indices = true},
//       .tile_sizes = plain::kTiles<8, 128>,
//       .choose = plain::choose<run, plain::kReadsCAlways>,
//   };
//
//   }  // namespace tilegate::mine
//
// cpu/plain.hpp has the part of CUDA that the executor supports; kernels/plain.md describes it.
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#if !defined(__CUDACC__)
#include <tilegate/device/cpu/plain.hpp>
#endif

namespace tilegate::plain {

// Arguments of a call in the types that such kernels take. A and B are not written, although their
// pointers are not const. With the restriction `int_indices` all sizes fit an int.
struct Call {
  int m, n, k;
  float alpha;
  float* a;  // M×K
  float* b;  // K×N
  float beta;
  float* c;  // M×N
  int lda, ldb, ldc;
  int batch;
  std::int64_t stride_a, stride_b, stride_c;
  void* workspace;
  Stream stream;

  Call(const KernelArgs& args, Stream on)
      : m(static_cast<int>(args.shape.m)),
        n(static_cast<int>(args.shape.n)),
        k(static_cast<int>(args.shape.k)),
        alpha(args.alpha),
        a(const_cast<float*>(args.a)),
        b(const_cast<float*>(args.b)),
        beta(args.beta),
        c(args.c),
        lda(static_cast<int>(args.lda)),
        ldb(static_cast<int>(args.ldb)),
        ldc(static_cast<int>(args.ldc)),
        batch(static_cast<int>(args.batch)),
        stride_a(args.stride_a),
        stride_b(args.stride_b),
        stride_c(args.stride_c),
        workspace(args.workspace),
        stream(on) {}
};

#if defined(__CUDACC__)
template <typename LaunchAll>
Status status_of(LaunchAll launch_all) {
  launch_all();
  return device::to_status(cudaGetLastError(), "launch");
}
#endif

// C ← alpha·P + beta·C for a dense product P, or C ← beta·C if P is null. A thread computes one
// column of kRows rows. With beta 0, C is not read.
constexpr int kScaleThreads = 256, kScaleRows = 16;
template <int kRows = kScaleRows>  // a template: compiled only into sources that launch it
__global__ void scale_c(const float* product, float alpha, float* c, std::int64_t m, std::int64_t n,
                        std::int64_t ldc, float beta) {
  const std::int64_t blocks_n = (n + kScaleThreads - 1) / kScaleThreads;
  const std::int64_t col = blockIdx.x % blocks_n * kScaleThreads + threadIdx.x;
  const std::int64_t first = blockIdx.x / blocks_n * kRows;
  if (col >= n) return;
  for (std::int64_t row = first; row < first + kRows && row < m; ++row) {
    float& element = c[row * ldc + col];
    float sum = product == nullptr ? 0.0F : alpha * product[row * n + col];
    if (beta != 0.0F) sum += beta * element;
    element = sum;
  }
}

inline Status scale(const KernelArgs& args, const float* product, Stream stream) {
  const auto& [m, n, k] = args.shape;
  const std::int64_t blocks_n = (n + kScaleThreads - 1) / kScaleThreads;
  const device::LaunchConfig launch{.kernel = "scale_c",
                                    .blocks = (m + kScaleRows - 1) / kScaleRows * blocks_n,
                                    .threads_x = kScaleThreads};
  return device::launch(launch, stream, scale_c<>, product, args.alpha, args.c, m, n, args.ldc,
                        args.beta);
}

// Extents of tiles, for Stage::tile_sizes.
template <std::int64_t... kSizes>
inline constexpr std::int64_t kTiles[] = {kSizes...};

// How the kernels use C.
enum ReadsC {
  kReadsCForBeta,  // they read it if beta is not 0
  kReadsCAlways,   // they compute beta·C also if beta is 0: one more launch clears C first
  kAddsToC,        // they add alpha·A·B: one more launch scales C first
  kProductAlone,   // they store A·B; unless alpha is 1 and beta is 0 it goes to the workspace, and
                   // one more launch computes C from it
};

// Choice of a stage whose kernels, launched by `kRun`, sum serially along K. A sum in several parts
// has `kMoreRoundings` further roundings; see Choice.
template <auto kRun, ReadsC kReads = kReadsCForBeta, int kMoreRoundings = 0>
Choice choose(const Problem& problem, const Device& /*device*/) {
  Choice choice;
  choice.rounding_chain = problem.shape.k + 2 + kMoreRoundings;
  if constexpr (kReads == kProductAlone) {
    const bool to_workspace =
        problem.reads_a_and_b() && (problem.alpha != 1.0F || problem.beta != 0.0F);
    if (to_workspace) choice.workspace_bytes = problem.shape.m * problem.shape.n * sizeof(float);
    choice.enqueue = [to_workspace](const KernelArgs& args, Stream stream) {
      if (args.shape.k == 0) return scale(args, nullptr, stream);
      KernelArgs own = args;
      if (to_workspace) own.c = static_cast<float*>(args.workspace), own.ldc = args.shape.n;
      Status status = status_of([&] { kRun(Call(own, stream)); });
      if (!to_workspace || !status.ok()) return status;
      return scale(args, own.c, stream);
    };
    return choice;
  }
  choice.enqueue = [](const KernelArgs& args, Stream stream) {
    const bool scales = kReads == kReadsCAlways ? args.beta == 0.0F : kReads == kAddsToC;
    if (scales) {
      if (Status s = scale(args, nullptr, stream); !s.ok()) return s;
    }
    return status_of([&] { kRun(Call(args, stream)); });
  };
  return choice;
}

}  // namespace tilegate::plain
