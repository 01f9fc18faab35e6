// Cublas: the yardstick. cuBLAS SGEMM in FP32, TF32 off, behind the interface of a rung.
//
// cuBLAS is column-major: a row-major product is computed as its transpose, B'·A' = (A·B)'.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>

#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#if defined(__CUDACC__)
#include <cublas_v2.h>
#endif

namespace tilegate::cublas {

#if defined(__CUDACC__)

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // cuBLAS's recommendation for sm_90

// One handle per device, made by `setup` and kept until the process ends.
struct Context {
  cublasHandle_t handle = nullptr;
  void* workspace = nullptr;  // cuBLAS may not allocate while a stream is captured
};

Context& current_context() {
  static std::array<Context, 64> contexts;
  int device = 0;
  static_cast<void>(cudaGetDevice(&device));
  return contexts.at(static_cast<std::size_t>(device));
}

Status to_status(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return Status::device_error(std::string("cuBLAS: ") + cublasGetStatusString(status));
}

Status setup() {
  Context& context = current_context();
  if (context.handle != nullptr) return {};
  if (Status s = device::to_status(cudaMalloc(&context.workspace, kWorkspaceBytes), "workspace");
      !s.ok()) {
    return s;
  }
  return to_status(cublasCreate(&context.handle));  // the default math mode keeps FP32 as FP32
}

template <cublasOperation_t kOpA, cublasOperation_t kOpB>
Status enqueue(const KernelArgs& args, Stream stream) {
  const Context& context = current_context();
  if (context.handle == nullptr) return Status::unsupported("Cublas needs prepare() first");
  if (Status s = to_status(cublasSetStream(context.handle, stream)); !s.ok()) return s;
  // cublasSetStream resets the workspace.
  if (Status s = to_status(cublasSetWorkspace(context.handle, context.workspace, kWorkspaceBytes));
      !s.ok()) {
    return s;
  }
  const auto& [m, n, k] = args.shape;
  const auto at_least_one = [](std::int64_t ld) { return std::max<std::int64_t>(ld, 1); };
  if (args.batch > 1) {
    return to_status(cublasSgemmStridedBatched_64(
        context.handle, kOpB, kOpA, n, m, k, &args.alpha, args.b, at_least_one(args.ldb),
        args.stride_b, args.a, at_least_one(args.lda), args.stride_a, &args.beta, args.c,
        at_least_one(args.ldc), args.stride_c, args.batch));
  }
  return to_status(cublasSgemm_64(context.handle, kOpB, kOpA, n, m, k, &args.alpha, args.b,
                                  at_least_one(args.ldb), args.a, at_least_one(args.lda),
                                  &args.beta, args.c, at_least_one(args.ldc)));
}

auto enqueue_for(const Problem& problem) {
  const bool a = problem.op_a == Op::kT;
  const bool b = problem.op_b == Op::kT;
  if (a) return b ? enqueue<CUBLAS_OP_T, CUBLAS_OP_T> : enqueue<CUBLAS_OP_T, CUBLAS_OP_N>;
  return b ? enqueue<CUBLAS_OP_N, CUBLAS_OP_T> : enqueue<CUBLAS_OP_N, CUBLAS_OP_N>;
}

#else

Status setup() { return {}; }
std::function<Status(const KernelArgs&, Stream)> enqueue_for(const Problem& /*problem*/) {
  return nullptr;  // the requirements rule a launch out
}

#endif

Choice choose(const Problem& problem, const Device& /*device*/) {
  // cuBLAS 13.1 returns NaN for some finite sums times an infinite alpha.
  if (!std::isfinite(problem.alpha)) {
    return {.status =
                Status::unsupported("cuBLAS defines no result for an alpha that is not finite")};
  }
  // cuBLAS 13.1 sums wrong elements of B, or faults, from ldb = 2^28 on (4x8x20, op N).
  constexpr std::int64_t kGreatest = (std::int64_t{1} << 28) - 1;
  if (std::max(problem.lda, problem.ldb) > kGreatest) {
    return {.status = Status::unsupported(
                "cuBLAS computes wrong results with leading dimensions of A and B above " +
                std::to_string(kGreatest))};
  }
  return {.rounding_chain = serial_rounding_chain(problem.shape), .enqueue = enqueue_for(problem)};
}

constexpr std::int64_t kTileSizes[] = {32, 64, 128};

extern const Stage stage;
const Stage stage{
    .name = "Cublas",
    .idea = "the yardstick: cuBLAS in FP32, TF32 off",
    .requirements = {.not_on_simt = "cuBLAS needs a CUDA GPU"},
    .takes_transposed = true,
    .takes_batches = true,
    .tile_sizes = kTileSizes,
    .choose = choose,
    .setup = setup,
};

}  // namespace tilegate::cublas
