// Warps that misuse tensor cores; each fault is one thing done wrong.
#include <cstdint>

#include <tilegate/device/warp_mma.cuh>

#include "planted.hpp"

namespace tilegate::planted {
namespace {

enum class Fault {
  kNone,
  kLoadsBeforeBarrier,
  kOverwritesBeforeBarrier,
  kLoadsMisaligned,
  kLaneIsMissing
};

constexpr unsigned kThreads = 64;

struct Storage {
  alignas(16) std::uint32_t rows[kThreads][4];  // of 16 bytes
};

// Each warp multiplies rows that the other has stored.
template <Fault kFault>
__global__ void multiply_rows(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  const unsigned thread = threadIdx.x;
  const auto store = [&](std::uint32_t value) {
    for (std::uint32_t& word : smem.rows[thread]) word = value;
  };
  store(thread * 0x01010101U);
  if (kFault != Fault::kLoadsBeforeBarrier) __syncthreads();
  std::int32_t acc[4] = {0, 0, 0, 0};
  if (kFault != Fault::kLaneIsMissing || thread != 5) {
    const std::uint32_t* row = smem.rows[thread ^ 32U];
    std::uint32_t v[4];
    device::load_matrices(v, row + (kFault == Fault::kLoadsMisaligned && thread == 5 ? 1 : 0));
    device::multiply_s8(acc, v, {v[0], v[1]});
  }
  if (kFault != Fault::kOverwritesBeforeBarrier) __syncthreads();
  store(thread);
  memory[kResults + thread] = static_cast<float>(acc[0] + acc[1] + acc[2] + acc[3]);
}

template <Fault kFault>
Status launch(float* memory) {
  const device::LaunchConfig config{
      .kernel = "planted", .blocks = 1, .threads_x = kThreads, .shared_bytes = sizeof(Storage)};
  return device::launch(config, nullptr, multiply_rows<kFault>, memory);
}

constexpr Plant plant(const char* name, Status (*faulty)(float*), const char* message) {
  return {name, faulty, launch<Fault::kNone>, message};
}

constexpr Plant kPlants[] = {
    plant("LoadsMatricesBeforeBarrier", launch<Fault::kLoadsBeforeBarrier>,
          "race at byte \\d+ of shared memory: this thread (reads|writes) at .*; thread .* "
          "(wrote|read) at .*; no __syncthreads between"),
    plant("OverwritesMatricesBeforeBarrier", launch<Fault::kOverwritesBeforeBarrier>,
          "race at byte \\d+ of shared memory: this thread (reads|writes) at .*; thread .* "
          "(wrote|read) at .*; no __syncthreads between"),
    plant("LoadsMatricesMisaligned", launch<Fault::kLoadsMisaligned>,
          "misaligned 128-bit matrix load at "),
    plant("LaneDoesNotMultiply", launch<Fault::kLaneIsMissing>,
          "divergent warp barrier: this thread waits at .*, thread \\(5,0,0\\) waits at "),
};

}  // namespace

std::span<const Plant> mma_plants() { return kPlants; }

}  // namespace tilegate::planted
