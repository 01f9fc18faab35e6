// Coalesced: as Naive, but threadIdx.x walks along a row of C.
//
// The 32 lanes of a warp now read one element of A (one sector, broadcast) and 32 neighbours in B
// (4 sectors): 160 bytes per FMA of a warp, where Naive moves 1056. Also new: blocks of 32×32
// threads, and the unrolled loop. What limits it now: every multiply-add still takes two loads from
// the caches.
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::coalesced {

struct Config {
  static constexpr int kBlockM = 32;
  static constexpr int kBlockN = 32;
  using Grid = TileGrid<kBlockM, kBlockN>;
};

__global__ void sgemm(KernelArgs args) {
  const auto origin = Config::Grid::origin(args.shape);
  // idea:begin Coalesced
  const std::int64_t row = origin.row + threadIdx.y;
  const std::int64_t col = origin.col + threadIdx.x;
  if (row >= args.shape.m || col >= args.shape.n) return;

  float sum = 0.0F;
  // Unrolled, the loads of a row of A are adjacent, while the sectors that they share are in L1.
#pragma unroll 32
  for (std::int64_t k = 0; k < args.shape.k; ++k) {
    sum += args.a[row * args.lda + k] * args.b[k * args.ldb + col];
  }
  // idea:end
  store_element(args, row, col, sum);
}

Status enqueue(const KernelArgs& args, Stream stream) {
  const device::LaunchConfig launch{.kernel = "coalesced",
                                    .blocks = Config::Grid::num_blocks(args.shape),
                                    .threads_x = Config::kBlockN,
                                    .threads_y = Config::kBlockM};
  return device::launch(launch, stream, sgemm, args);
}

Choice choose(const Problem& problem, const Device& /*device*/) {
  return serial_choice<Config::Grid>(problem, enqueue);
}

constexpr std::int64_t kTileSizes[] = {Config::kBlockM};

extern const Stage stage;
const Stage stage{
    .name = "Coalesced",
    .idea = "neighbouring threads read neighbouring columns",
    .tile_sizes = kTileSizes,
    .choose = choose,
};

}  // namespace tilegate::coalesced
