// Warptile: the tile of a block is split into warp tiles, these into sub-warp tiles, these into
// thread tiles, all named in one Config (warptile.cuh).
//
// New against Swizzle: a warp covers a square part of C (64×64) instead of two rows of threads, and
// a thread holds 16×8 results, so that a k step costs 16 instructions beside its 128 FFMA instead
// of 8 beside 64. Where C has too few such tiles for the device, smaller ones take over. What
// limits it now: one block of 256 threads an SM, so that every barrier and every load waits in the
// open.
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/device.hpp>
#include <tilegate/simt/simt.cuh>

#include "warptile.cuh"

namespace tilegate::warptile {

template <typename C, bool kVector>
__global__ void __launch_bounds__(C::kNumThreads, C::kBlocksPerSm) sgemm(SgemmArgs args) {
  const auto origin = C::Grid::origin(args.shape);
  const Position<C> at;
  float acc[C::kFragmentM][C::kFragmentN]{};
  accumulate<C, kVector>(args, origin, at, 0, 1, acc);
  store_parts<kVector>(args, origin.row + at.m, origin.col + at.n, C::kSubWarpM, C::kSubWarpN, acc);
}

template <typename C>
Status enqueue_with(const SgemmArgs& args, Stream stream) {
  const simt::LaunchConfig launch{.kernel = "warptile",
                                  .blocks = C::Grid::num_blocks(args.shape),
                                  .threads_x = C::kNumThreads,
                                  .shared_bytes = sizeof(SharedStorage<C>)};
  return simt::launch(launch, stream, allows_vectors(args) ? sgemm<C, true> : sgemm<C, false>,
                      args);
}

using Large = Config<Tiles128x256>;
using Medium = Config<Tiles128x128>;
using Small = Config<Tiles64x64>;

// The large tile if its grid keeps nearly every multiprocessor busy, else the small one.
Status enqueue(const SgemmArgs& args, Stream stream) {
  const bool fills_device =
      10 * Large::Grid::num_blocks(args.shape) >= 9 * device::properties().multiprocessors;
  return fills_device ? enqueue_with<Large>(args, stream) : enqueue_with<Small>(args, stream);
}

constexpr std::int64_t kTileSizes[] = {4, 16, 32, 64, 128, 256};

extern const Stage stage;
const Stage stage{
    .name = "Warptile",
    .idea = "block, warp, sub-warp and thread tiles",
    .tile_sizes = kTileSizes,
    .rounding_chain = serial_rounding_chain,
    .restrictions = Small::Grid::fits,
    .enqueue = enqueue,
};

}  // namespace tilegate::warptile
