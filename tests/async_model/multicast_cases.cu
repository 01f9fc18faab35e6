// Random boxes of random tensors, and bulk copies, each to some blocks of a cluster; one tensor and
// one size of cluster per launch, one cluster per case.
#include <algorithm>

#include "cases.hpp"
#include "random.cuh"
#include "tensors.hpp"

namespace tilegate::async_model {

constexpr std::size_t kCasesPerTensor = 16;
constexpr unsigned kBulkWords = 2048;  // at the end of shared memory; boxes lie before them
constexpr int kAnywhere = -1000;

#if TILEGATE_TEST_ASYNC

// Of a box and of a bulk copy: by which block, to which. All blocks make the same choices; each
// expects what comes to it.
struct Multicast {
  unsigned by, bytes;
  std::uint16_t to;

  __device__ Multicast(Choices& choices, unsigned blocks, unsigned size)
      : by(choices.below(blocks)),
        bytes(size),
        to(static_cast<std::uint16_t>(1 + choices.below((1U << blocks) - 1))) {}
  __device__ bool reaches(unsigned rank) const { return (to >> rank & 1) != 0; }
};

// By one thread of each block.
__device__ void start_multicasts(Storage& smem, const device::TensorMap& map, const Box& box,
                                 const std::uint32_t* source, const Multicast (&copies)[2],
                                 Choices& choices) {
  const unsigned rank = device::cluster_rank();
  for (unsigned i = 0; i < 2; ++i) {
    if (copies[i].reaches(rank)) device::barrier_arrive_expect(smem.full[i], copies[i].bytes);
  }
  const Corner at = box.random_corner(choices, kAnywhere);
  void* const to = &smem.words[box.random_place(choices, kWords - kBulkWords)];
  const unsigned from = choices.below((kSourceWords - kBulkWords) / 4) * 4;
  if (copies[0].by == rank && box.dimensions == 2) {
    device::copy_tensor_multicast(to, map, at.x, at.y, smem.full[0], copies[0].to);
  } else if (copies[0].by == rank) {
    device::copy_tensor_multicast(to, map, at.x, at.y, at.z, smem.full[0], copies[0].to);
  }
  if (copies[1].by == rank) {
    device::copy_bulk_multicast(&smem.words[kWords - kBulkWords], source + from, copies[1].bytes,
                                smem.full[1], copies[1].to);
  }
}

#endif

// sums[case][block][thread]
__global__ void copy_to_cluster(std::uint32_t first, unsigned blocks,
                                const __grid_constant__ device::TensorMap map, Box box,
                                const std::uint32_t* source, std::uint32_t* sums) {
#if TILEGATE_TEST_ASYNC
  auto& smem = device::shared_storage<Storage>();
  const std::uint32_t seed = first + blockIdx.x / blocks;
  const unsigned rank = device::cluster_rank();
  fill(smem, seed ^ rank << 24);
  if (threadIdx.x == 0) {
    for (device::Barrier& barrier : smem.full) device::barrier_init(barrier, 1);
    device::barrier_init_fence();
  }
  device::cluster_sync();  // all is stored, all barriers are made
  Choices choices(seed, kCopy);
  const unsigned bulk_bytes = 16 * (1 + choices.below(kBulkWords / 4));
  const Multicast copies[2] = {{choices, blocks, box.bytes}, {choices, blocks, bulk_bytes}};
  if (threadIdx.x == 0) start_multicasts(smem, map, box, source, copies, choices);
  for (unsigned i = 0; i < 2; ++i) {
    if (copies[i].reaches(rank)) device::barrier_wait(smem.full[i], 0);
  }
  sums[blockIdx.x * kThreads + threadIdx.x] = checksum(smem);
  device::cluster_sync();  // no block ends while another's copies reach it
#endif
}

Status run_clusters(std::uint32_t first, unsigned blocks, const device::TensorLayout& layout,
                    const std::uint32_t* source, std::vector<std::uint32_t>* checksums) {
  device::TensorMap map;
  if (Status s = device::make_tensor_map(layout, &map); !s.ok()) return s;
  std::vector<std::uint32_t> of_blocks(checksums->size() * blocks);
  const device::Buffer sums(of_blocks.size() * kThreads * sizeof(std::uint32_t));
  device::LaunchConfig config = config_of("copy_to_cluster", of_blocks.size());
  config.cluster = blocks;
  if (Status s =
          device::launch(config, nullptr, copy_to_cluster, first, blocks, map, box_of(layout),
                         source, reinterpret_cast<std::uint32_t*>(sums.data()));
      !s.ok()) {
    return s;
  }
  if (Status s = fold(sums, &of_blocks); !s.ok()) return s;
  for (std::uint32_t i = 0; i < of_blocks.size(); ++i) {
    (*checksums)[i / blocks] += (i % blocks + 1) * of_blocks[i];
  }
  return {};
}

Status run_multicasts(std::uint32_t first, std::vector<std::uint32_t>* checksums) {
  constexpr unsigned kSizes[] = {2, 3, 4, 8};  // of clusters
  const device::Buffer source(kSourceWords * sizeof(std::uint32_t));
  if (Status s = fill_source(source); !s.ok()) return s;
  const auto* const words = reinterpret_cast<const std::uint32_t*>(source.data());
  for (std::size_t i = 0; i < checksums->size(); i += kCasesPerTensor) {
    std::vector<std::uint32_t> part(std::min(kCasesPerTensor, checksums->size() - i));
    const std::uint32_t seed = first + static_cast<std::uint32_t>(i);
    const unsigned blocks = kSizes[mix(seed, 0, kMulticast) % 4];
    const device::TensorLayout layout = random_layout(seed, {200, 40, 5}, source.data());
    if (Status s = run_clusters(seed, blocks, layout, words, &part); !s.ok()) return s;
    std::copy(part.begin(), part.end(), checksums->begin() + static_cast<std::ptrdiff_t>(i));
  }
  return {};
}

}  // namespace tilegate::async_model
