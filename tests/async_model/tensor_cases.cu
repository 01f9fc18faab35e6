// Random boxes of random tensors, over their borders; one tensor per launch, one box per block.
#include <algorithm>

#include "cases.hpp"
#include "random.cuh"
#include "tensors.hpp"

namespace tilegate::async_model {

constexpr std::size_t kCasesPerTensor = 16;
constexpr int kAnywhere = -1000;

__global__ void copy_box(std::uint32_t first, const __grid_constant__ device::TensorMap map,
                         Box box, std::uint32_t* sums) {
#if TILEGATE_TEST_ASYNC
  auto& smem = device::shared_storage<Storage>();
  const std::uint32_t seed = first + blockIdx.x;
  fill(smem, seed);
  if (threadIdx.x == 0) {
    device::barrier_init(smem.full[0], 1);
    device::barrier_init_fence();
  }
  __syncthreads();  // all is stored, the barrier is made
  if (threadIdx.x == 0) {
    Choices choices(seed, kCopy);
    const Corner at = box.random_corner(choices, kAnywhere);
    void* const to = &smem.words[box.random_place(choices)];
    device::barrier_arrive_expect(smem.full[0], box.bytes);
    if (box.dimensions == 2) {
      device::copy_tensor(to, map, at.x, at.y, smem.full[0]);
    } else {
      device::copy_tensor(to, map, at.x, at.y, at.z, smem.full[0]);
    }
  }
  device::barrier_wait(smem.full[0], 0);
  sums[blockIdx.x * kThreads + threadIdx.x] = checksum(smem);
#endif
}

Status run_tensor(std::uint32_t first, const device::TensorLayout& layout,
                  std::vector<std::uint32_t>* checksums) {
  device::TensorMap map;
  if (Status s = device::make_tensor_map(layout, &map); !s.ok()) return s;
  const device::Buffer sums(checksums->size() * kThreads * sizeof(std::uint32_t));
  const Status launched =
      device::launch(config_of("copy_box", checksums->size()), nullptr, copy_box, first, map,
                     box_of(layout), reinterpret_cast<std::uint32_t*>(sums.data()));
  return launched.ok() ? fold(sums, checksums) : launched;
}

Status run_boxes(std::uint32_t first, std::vector<std::uint32_t>* checksums) {
  const device::Buffer source(kSourceWords * sizeof(std::uint32_t));
  if (Status s = fill_source(source); !s.ok()) return s;
  for (std::size_t i = 0; i < checksums->size(); i += kCasesPerTensor) {
    std::vector<std::uint32_t> part(std::min(kCasesPerTensor, checksums->size() - i));
    const std::uint32_t seed = first + static_cast<std::uint32_t>(i);
    if (Status s = run_tensor(seed, random_layout(seed, {200, 40, 5}, source.data()), &part);
        !s.ok())
      return s;
    std::copy(part.begin(), part.end(), checksums->begin() + static_cast<std::ptrdiff_t>(i));
  }
  return {};
}

}  // namespace tilegate::async_model
