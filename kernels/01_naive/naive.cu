// Naive: one thread per element of C.
//
// threadIdx.x walks down the rows of C, so the 32 lanes of a warp access 32 different rows: every
// load of A and every store of C touches 32 sectors, 1024 bytes, of which 128 bytes are used. That
// limits it.
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::naive {

struct Config {
  static constexpr int kBlockM = 32;
  static constexpr int kBlockN = 4;  // small blocks: fewer idle threads in the last ones
  using Grid = TileGrid<kBlockM, kBlockN>;
};

__global__ void sgemm(KernelArgs args) {
  const auto origin = Config::Grid::origin(args.shape);
  // idea:begin Naive
  const std::int64_t row = origin.row + threadIdx.x;
  const std::int64_t col = origin.col + threadIdx.y;
  if (row >= args.shape.m || col >= args.shape.n) return;

  float sum = 0.0F;
  for (std::int64_t k = 0; k < args.shape.k; ++k) {
    sum += args.a[row * args.lda + k] * args.b[k * args.ldb + col];
  }
  store_element(args, row, col, sum);
  // idea:end
}

Status enqueue(const KernelArgs& args, Stream stream) {
  const device::LaunchConfig launch{.kernel = "naive",
                                    .blocks = Config::Grid::num_blocks(args.shape),
                                    .threads_x = Config::kBlockM,
                                    .threads_y = Config::kBlockN};
  return device::launch(launch, stream, sgemm, args);
}

Choice choose(const Problem& problem, const Device& /*device*/) {
  return serial_choice<Config::Grid>(problem, enqueue);
}

constexpr std::int64_t kTileSizes[] = {Config::kBlockN, Config::kBlockM};

extern const Stage stage;
const Stage stage{
    .name = "Naive",
    .idea = "one thread per element of C",
    .tile_sizes = kTileSizes,
    .choose = choose,
};

}  // namespace tilegate::naive
