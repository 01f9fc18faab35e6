// Random boxes of shared memory, stored to random tensors, over their borders; one per launch.
#include "cases.hpp"
#include "random.cuh"
#include "tensors.hpp"

namespace tilegate::async_model {

constexpr std::uint32_t kTargetWords = 1U << 12;

__global__ void store_box(std::uint32_t seed, const __grid_constant__ device::TensorMap map,
                          Box box) {
#if TILEGATE_TEST_ASYNC
  auto& smem = device::shared_storage<Storage>();
  fill(smem, seed);
  __syncthreads();  // all is stored
  if (threadIdx.x != 0) return;
  Choices choices(seed, kCopy);
  const Corner at = box.random_corner(choices, 0);
  const void* const from = &smem.words[box.random_place(choices)];
  if (box.dimensions == 2) {
    device::store_tensor(map, at.x, at.y, from);
  } else {
    device::store_tensor(map, at.x, at.y, at.z, from);
  }
  device::store_commit();
  device::store_wait<0>();
#endif
}

// The checksum is that of all that may have been stored to.
Status run_stores(std::uint32_t first, std::vector<std::uint32_t>* checksums) {
  std::vector<std::uint32_t> words(kTargetWords);
  const device::Buffer target(words.size() * sizeof(std::uint32_t));
  for (std::uint32_t& checksum : *checksums) {
    const std::uint32_t seed = first++;
    for (std::uint32_t i = 0; i < kTargetWords; ++i) words[i] = i;
    if (Status s = device::copy_to_device(target.data(), words.data(), target.size()); !s.ok()) {
      return s;
    }
    const device::TensorLayout layout = random_layout(seed, {60, 12, 3}, target.data());
    device::TensorMap map;
    if (Status s = device::make_tensor_map(layout, &map); !s.ok()) return s;
    if (Status s = device::launch(config_of("store_box", 1), nullptr, store_box, seed, map,
                                  box_of(layout));
        !s.ok()) {
      return s;
    }
    if (Status s = device::synchronize(); !s.ok()) return s;
    if (Status s = device::copy_to_host(words.data(), target.data(), target.size()); !s.ok()) {
      return s;
    }
    // Most words are as they were: these take no part.
    for (std::uint32_t i = 0; i < kTargetWords; ++i) {
      if (words[i] != i) checksum += mix(words[i], i, kFold);
    }
  }
  return {};
}

}  // namespace tilegate::async_model
