// Random boxes of random tensors, over their borders; one tensor per launch, one box per block.
#include <algorithm>
#include <array>

#include "cases.hpp"
#include "random.cuh"

namespace tilegate::async_model {

constexpr unsigned kMaxBoxBytes = 8192;
constexpr std::size_t kCasesPerTensor = 16;

struct Box {
  unsigned dimensions, bytes;
  int margin;          // how far outside a box may begin
  unsigned places[3];  // where it may begin, in each dimension
};

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
    int at[3];
    for (int i = 0; i < 3; ++i) at[i] = static_cast<int>(choices.below(box.places[i])) - box.margin;
    void* const to = &smem.words[32 * choices.below((4 * kWords - box.bytes) / 128 + 1)];
    device::barrier_arrive_expect(smem.full[0], box.bytes);
    if (box.dimensions == 2) {
      device::copy_tensor(to, map, at[0], at[1], smem.full[0]);
    } else {
      device::copy_tensor(to, map, at[0], at[1], at[2], smem.full[0]);
    }
  }
  device::barrier_wait(smem.full[0], 0);
  sums[blockIdx.x * kThreads + threadIdx.x] = checksum(smem);
#endif
}

// A tensor in `source`, with padding after its rows and its matrices, and a box of it.
device::TensorLayout random_layout(std::uint32_t seed, std::byte* source) {
  Choices choices(seed, kTensor);
  device::TensorLayout layout;
  layout.element_bytes = 1U << choices.below(3);
  layout.dimensions = 2 + choices.below(2);
  layout.swizzle = static_cast<device::Swizzle>(choices.below(4));
  const unsigned pieces = layout.swizzle == device::Swizzle::kNone
                              ? 1 + choices.below(std::min(16U, 16U * layout.element_bytes))
                              : width_of(layout.swizzle) / 16;
  layout.box[0] = 16 * pieces / layout.element_bytes;
  const unsigned rows = std::min(kMaxBoxBytes / (16 * pieces), 256U);
  layout.box[1] = 1 + choices.below(rows);
  layout.size[0] = 1 + choices.below(200);
  layout.size[1] = 1 + choices.below(40);
  layout.stride_bytes[1] =
      (layout.size[0] * layout.element_bytes + 15) / 16 * 16 + 16 * choices.below(4);
  if (layout.dimensions == 3) {
    layout.box[2] = 1 + choices.below(std::min(rows / layout.box[1], 256U));
    layout.size[2] = 1 + choices.below(5);
    layout.stride_bytes[2] = (layout.size[1] + choices.below(4)) * layout.stride_bytes[1];
  }
  layout.data = source + 16 * choices.below(64);
  return layout;
}

Status run_tensor(std::uint32_t first, const device::TensorLayout& layout,
                  std::vector<std::uint32_t>* checksums) {
  device::TensorMap map;
  if (Status s = device::make_tensor_map(layout, &map); !s.ok()) return s;
  constexpr int kMargin = 24;
  Box box{layout.dimensions,
          layout.box[0] * layout.box[1] * layout.box[2] * layout.element_bytes,
          kMargin,
          {}};
  for (unsigned i = 0; i < 3; ++i) {
    box.places[i] = static_cast<unsigned>(layout.size[i]) + 2 * kMargin;
  }
  const device::Buffer sums(checksums->size() * kThreads * sizeof(std::uint32_t));
  const Status launched =
      device::launch(config_of("copy_box", checksums->size()), nullptr, copy_box, first, map, box,
                     reinterpret_cast<std::uint32_t*>(sums.data()));
  return launched.ok() ? fold(sums, checksums) : launched;
}

Status run_boxes(std::uint32_t first, std::vector<std::uint32_t>* checksums) {
  const device::Buffer source(kSourceWords * sizeof(std::uint32_t));
  if (Status s = fill_source(source); !s.ok()) return s;
  for (std::size_t i = 0; i < checksums->size(); i += kCasesPerTensor) {
    std::vector<std::uint32_t> part(std::min(kCasesPerTensor, checksums->size() - i));
    const std::uint32_t seed = first + static_cast<std::uint32_t>(i);
    if (Status s = run_tensor(seed, random_layout(seed, source.data()), &part); !s.ok()) return s;
    std::copy(part.begin(), part.end(), checksums->begin() + static_cast<std::ptrdiff_t>(i));
  }
  return {};
}

}  // namespace tilegate::async_model
