// Multiplications of tiles that threads store themselves, and what is wrong with them.
#pragma once

#include <cstdint>

#include <tilegate/device/async.cuh>

#include "planted_pipeline.cuh"

namespace tilegate::planted::async {

// Threads store the tiles themselves.
template <bool kFaulty>
__global__ void multiply_stored_tiles(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  auto* const a = reinterpret_cast<float*>(smem.a[0]);
  auto* const b = reinterpret_cast<float*>(smem.b[0]);
  for (unsigned i = threadIdx.x; i < kBytesOfA / 4; i += kConsumers) a[i] = memory[i];
  for (unsigned i = threadIdx.x; i < kBytesOfB / 4; i += kConsumers) b[i] = memory[i];
  if (!kFaulty) device::fence_async_proxy();
  __syncthreads();                           // all is stored
  if (kFaulty) device::fence_async_proxy();  // too late: the stores of the others are not fenced
  std::int32_t acc[kN / 2] = {};
  device::warpgroup_arrive();
  device::warpgroup_mma_s8<kN>(
      acc, device::matrix_descriptor(a, device::Swizzle::kNone, kBytesOfA / 2, 128),
      device::matrix_descriptor(b, device::Swizzle::kNone, kBytesOfB / 2, 128));
  device::warpgroup_commit();
  device::warpgroup_wait<0>();
  device::warpgroup_fence_operand(acc);
  memory[kResults + threadIdx.x] = static_cast<float>(acc[0]);
}

// The rows of a come from registers.
template <bool kFaulty>
__global__ void multiply_registers(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  auto* const b = reinterpret_cast<float*>(smem.b[0]);
  for (unsigned i = threadIdx.x; i < kBytesOfB / 4; i += kConsumers) b[i] = memory[i];
  device::fence_async_proxy();
  __syncthreads();  // all is stored
  std::uint32_t a[4] = {threadIdx.x, 1, 2, 3};
  std::int32_t acc[kN / 2] = {};
  device::warpgroup_arrive();
  device::warpgroup_mma_s8<kN>(
      acc, a, device::matrix_descriptor(b, device::Swizzle::kNone, kBytesOfB / 2, 128));
  device::warpgroup_commit();
  if (kFaulty) a[1] = 7;
  device::warpgroup_wait<0>();
  device::warpgroup_fence_operand(acc);
  memory[kResults + threadIdx.x] = static_cast<float>(acc[0]);
}

// And once more, with other rows.
template <bool kFaulty>
__global__ void multiply_other_registers(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  auto* const b = reinterpret_cast<float*>(smem.b[0]);
  for (unsigned i = threadIdx.x; i < kBytesOfB / 4; i += kConsumers) b[i] = memory[i];
  device::fence_async_proxy();
  __syncthreads();  // all is stored
  const auto tile_of_b = device::matrix_descriptor(b, device::Swizzle::kNone, kBytesOfB / 2, 128);
  std::uint32_t a[4] = {threadIdx.x, 1, 2, 3};
  std::int32_t acc[kN / 2] = {};
  for (int i = 0; i < 2; ++i) {
    a[1] += 6;
    device::warpgroup_arrive();
    device::warpgroup_mma_s8<kN>(acc, a, tile_of_b);
    device::warpgroup_commit();
    device::warpgroup_wait<0>();
    if (!kFaulty) device::warpgroup_fence_operand(a);
  }
  device::warpgroup_fence_operand(acc);
  memory[kResults + threadIdx.x] = static_cast<float>(acc[0]);
}

// The same with floats, whose lines lie along k, or, transposed, along the rows.
enum class FloatFault { kNone, kUnfenced, kLoadsAccumulator, kMultipliesBeyondTile, kSkipsResults };

template <FloatFault kFault, bool kTransposed>
__global__ void multiply_floats(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  auto* const a = reinterpret_cast<float*>(smem.a[0]);
  auto* const b = reinterpret_cast<float*>(smem.b[0]);
  for (unsigned i = threadIdx.x; i < kBytesOfA / 4; i += kConsumers) a[i] = memory[i];
  for (unsigned i = threadIdx.x; i < kBytesOfB / 4; i += kConsumers) b[i] = memory[i];
  if (kFault != FloatFault::kUnfenced) device::fence_async_proxy();
  __syncthreads();  // all is stored
  struct {
    float before, acc[kN / 2], after;
  } registers{1.0F, {}, 2.0F};
  auto& acc = registers.acc;
  float sum = 0.0F;
  const unsigned leading = kBytesOfA / (kFault == FloatFault::kMultipliesBeyondTile ? 1 : 2);
  const auto tile_of_a = device::matrix_descriptor(a, device::Swizzle::kNone, leading, 128);
  const auto tile_of_b = device::matrix_descriptor(b, device::Swizzle::kNone, kBytesOfB / 2, 128);
  device::warpgroup_arrive();
  if constexpr (kTransposed) {
    constexpr auto kMN = device::Major::kMN;
    device::warpgroup_mma_f16<kN, kMN, kMN>(acc, tile_of_a, tile_of_b);
  } else {
    device::warpgroup_mma_tf32<kN>(acc, tile_of_a, tile_of_b);
  }
  device::warpgroup_commit();
  if (kFault == FloatFault::kLoadsAccumulator) sum = acc[0];
  sum += registers.before + registers.after;  // only the accumulators must wait
  device::warpgroup_wait<0>();
  if (kFault != FloatFault::kSkipsResults) device::warpgroup_fence_operand(acc);
  memory[kResults + threadIdx.x] = sum + acc[1];
}

}  // namespace tilegate::planted::async
