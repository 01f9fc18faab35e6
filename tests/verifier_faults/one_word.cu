// What is launched after a right kernel to spoil its work.
#include <cstdint>
#include <cstring>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier_faults/faults.hpp"

namespace tilegate::faults {

__global__ void flip_bits_of(float* word, std::uint32_t mask) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, word, sizeof(bits));
  bits ^= mask;
  std::memcpy(word, &bits, sizeof(bits));
}

__global__ void store_thread_number(float* word) { *word = static_cast<float>(threadIdx.x); }

Status flip_bits(float* word, std::uint32_t mask, Stream stream) {
  const device::LaunchConfig launch{.kernel = "flip_bits", .blocks = 1, .threads_x = 1};
  return device::launch(launch, stream, flip_bits_of, word, mask);
}

Status store_by_all_threads(float* word, Stream stream) {
  const device::LaunchConfig launch{.kernel = "all_store", .blocks = 1, .threads_x = 64};
  return device::launch(launch, stream, store_thread_number, word);
}

}  // namespace tilegate::faults
