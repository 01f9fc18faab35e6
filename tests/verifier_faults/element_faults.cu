// One thread per element of C, and one fault in each instance but the first.
#include <algorithm>
#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier_faults/faults.hpp"
#include "verifier_faults/planted_stage.cuh"

namespace tilegate::faults {

enum class Fault {
  kNone,
  kDropsLastTerm,       // where K is no multiple of 8
  kDropsTermOfLongSum,  // the last one, where K is large: within the forward error bound
  kLeavesTileUnwritten,
  kReadsPadding,
  kReadsCAtBetaZero,
  kSwapsLeadingDimensions,
  kDoesNothing,
  kWritesPastTheEnd,
  kWritesPadding,
  kWrongAtOffset8,
  kReturnsConstant,
  kModifiesA,
  kModifiesB,
  kSwallowsNan,
  kReadsPastTheEnd,  // of A, and uses nothing of it
  kUninitialisedSum,
};

constexpr int kThreads = 128;
constexpr std::int64_t kLongSum = 10000;

__host__ __device__ inline std::int64_t last_of(std::int64_t rows, std::int64_t cols,
                                                std::int64_t ld) {
  return (rows - 1) * ld + cols - 1;
}

// *sum += A(row, 0 … k_end - 1)·B(0 … k_end - 1, col)
__device__ void add_products(const KernelArgs& args, std::int64_t row, std::int64_t col,
                             std::int64_t k_end, float* sum) {
  for (std::int64_t k = 0; k < k_end; ++k) {
    *sum += args.a[row * args.lda + k] * args.b[k * args.ldb + col];
  }
}

template <Fault kFault>
__device__ float dot(const KernelArgs& args, std::int64_t row, std::int64_t col) {
  const auto [m, n, k_all] = args.shape;
  if constexpr (kFault == Fault::kUninitialisedSum) {
    float uninitialised;
    add_products(args, row, col, k_all, &uninitialised);
    return uninitialised;
  }
  std::int64_t k_end = k_all;
  if (kFault == Fault::kDropsLastTerm && k_all % 8 != 0) --k_end;
  if (kFault == Fault::kDropsTermOfLongSum && k_all > kLongSum) --k_end;
  const std::int64_t lda = kFault == Fault::kSwapsLeadingDimensions ? args.ldc : args.lda;
  float sum = 0.0F;
  for (std::int64_t k = 0; k < k_end; ++k) {
    std::int64_t at = row * lda + k;
    // A wild address would end the process on a GPU.
    if (kFault == Fault::kSwapsLeadingDimensions && at > last_of(m, k_all, args.lda)) at = 0;
    sum += args.a[at] * args.b[k * args.ldb + col];
  }
  if (kFault == Fault::kReadsPadding && args.lda > k_all && row + 1 < m) {
    sum += args.a[row * args.lda + k_all] * 0.0F;
  }
  if (kFault == Fault::kSwallowsNan && sum != sum) sum = 0.0F;
  if (kFault == Fault::kWrongAtOffset8 && reinterpret_cast<std::uintptr_t>(args.c) % 16 == 8) {
    sum *= 1.5F;
  }
  return kFault == Fault::kReturnsConstant ? 1.0F : sum;
}

template <Fault kFault>
__global__ void sgemm(KernelArgs args) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const auto [m, n, k_all] = args.shape;
  if (i >= m * n || kFault == Fault::kDoesNothing) return;
  const std::int64_t row = i / n;
  const std::int64_t col = i % n;
  if (kFault == Fault::kLeavesTileUnwritten && row / kTile > 0 && col / kTile > 0) return;

  const float sum = dot<kFault>(args, row, col);
  float* c = args.c + row * args.ldc + col;
  const bool reads_c = kFault == Fault::kReadsCAtBetaZero || args.beta != 0.0F;
  *c = reads_c ? args.alpha * sum + args.beta * *c : args.alpha * sum;

  const bool is_last = i == m * n - 1;
  if (kFault == Fault::kReadsPastTheEnd && is_last && k_all > 0) {
    const volatile float* end = args.a + last_of(m, k_all, args.lda) + 1;
    static_cast<void>(end[2]);
  }
  if (kFault == Fault::kWritesPastTheEnd && is_last) c[1] = sum;
  if (kFault == Fault::kWritesPadding && col == n - 1 && args.ldc > n && !is_last) c[1] = sum;
  if (k_all == 0 || !is_last) return;
  if (kFault == Fault::kModifiesA) const_cast<float*>(args.a)[last_of(m, k_all, args.lda)] += 1.0F;
  if (kFault == Fault::kModifiesB) const_cast<float*>(args.b)[last_of(k_all, n, args.ldb)] += 1.0F;
}

template <Fault kFault>
Status enqueue(const KernelArgs& args, Stream stream) {
  const device::LaunchConfig launch{.kernel = "planted fault",
                                    .blocks = (args.shape.m * args.shape.n - 1) / kThreads + 1,
                                    .threads_x = kThreads};
  return device::launch(launch, stream, sgemm<kFault>, args);
}

Status refuse(const KernelArgs& /*args*/, Stream /*stream*/) {
  return Status::device_error("refuses every call");
}

std::span<const PlantedFault> element_faults() {
  static constexpr PlantedFault kFaults[] = {
      {make_stage<enqueue<Fault::kNone>>("RightOneThreadPerElement"), ""},
      {make_stage<refuse>("RefusesEveryCall"), "status"},
      {make_stage<enqueue<Fault::kDropsLastTerm>>("DropsLastTerm"), "exact|bound"},
      {make_stage<enqueue<Fault::kDropsTermOfLongSum>>("DropsTermOfLongSum"), "exact"},
      {make_stage<enqueue<Fault::kLeavesTileUnwritten>>("LeavesTileUnwritten"),
       "finite|exact|bound"},
      {make_stage<enqueue<Fault::kReadsPadding>>("ReadsPadding"), "finite"},
      {make_stage<enqueue<Fault::kReadsCAtBetaZero>>("ReadsCAtBetaZero"), "finite"},
      {make_stage<enqueue<Fault::kSwapsLeadingDimensions>>("SwapsLeadingDimensions"),
       "finite|exact|bound"},
      {make_stage<enqueue<Fault::kDoesNothing>>("DoesNothing"), "finite|exact|bound"},
      // A guard that the sanitizer closes ends the launch.
      {make_stage<enqueue<Fault::kWritesPastTheEnd>>("WritesPastTheEnd"), "guards|status"},
      {make_stage<enqueue<Fault::kWritesPadding>>("WritesPadding"), "padding"},
      {make_stage<enqueue<Fault::kWrongAtOffset8>>("WrongAtOffset8"), "exact|bound"},
      {make_stage<enqueue<Fault::kReturnsConstant>>("ReturnsConstant"), "exact|bound"},
      {make_stage<enqueue<Fault::kModifiesA>>("ModifiesA"), "inputs"},
      {make_stage<enqueue<Fault::kModifiesB>>("ModifiesB"), "inputs"},
      {make_stage<enqueue<Fault::kSwallowsNan>>("SwallowsNan"), "class"},
      {make_stage<enqueue<Fault::kUninitialisedSum>>("UninitialisedSum"), "finite|exact|bound",
       Needs::kExecutor},
      {make_stage<enqueue<Fault::kReadsPastTheEnd>>("ReadsPastTheEnd"), "status",
       Needs::kSanitizer},
  };
  return kFaults;
}

}  // namespace tilegate::faults
