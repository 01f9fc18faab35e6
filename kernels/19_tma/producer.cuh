// The producer's half of the main loop: one thread has boxes of A and B copied to the ring, each
// when the consumers have done with what was in its stage.
#pragma once

#include <tilegate/common/interleaved_tiles.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/stage.hpp>

#include "ring.cuh"

namespace tilegate::tma {

template <typename Config>
__device__ void produce(const device::TensorMap& a, const device::TensorMap& b,
                        const KernelArgs& args, int k_tiles, SharedStorage<Config>& smem) {
  using KTile = typename SharedStorage<Config>::KTile;
  const TileWalk::Place place = smem.place;
  const auto row = static_cast<int>(place.row) * Config::kBlockM;
  const auto col = static_cast<int>(place.col) * Config::kBlockN;
  // All products may share an operand, of which the map then has one matrix.
  const int product_a = args.stride_a == 0 ? 0 : static_cast<int>(place.product);
  const int product_b = args.stride_b == 0 ? 0 : static_cast<int>(place.product);
  Ring<Config::kStages> ring;
  // idea:begin Tma
  for (int tile = 0; tile < k_tiles; ++tile) {
    const int k = tile * Config::kBlockK;
    device::barrier_wait(smem.empty[ring.stage], ring.phase ^ 1);
    device::Barrier& full = smem.full[ring.stage];
    KTile& to = smem.ring[ring.stage];
    device::barrier_arrive_expect(full, sizeof(KTile));
    device::copy_tensor(to.a, a, k, row, product_a, full);
    device::copy_tensor(to.b, b, col, k, product_b, full);
    ring.advance();
  }
  // idea:end
}

}  // namespace tilegate::tma
