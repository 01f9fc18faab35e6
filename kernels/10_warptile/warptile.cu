// Warptile: the tile of a block is split into warp tiles, these into sub-warp tiles, these into
// thread tiles, all named in one Config (warptile.cuh).
//
// New against Swizzle: a warp covers 64×32 of C instead of two rows of threads, and the FFMA stay
// in the order in which they share operands. Several configurations are compiled; the shape of C
// decides which one keeps the device busiest. What limits it now: an eighth of the instructions
// are not FFMA, and tiles that do not divide evenly among the multiprocessors.
#include <algorithm>

#include <tilegate/sgemm.hpp>
#include <tilegate/simt/device.hpp>
#include <tilegate/simt/simt.cuh>

#include "warptile.cuh"

namespace tilegate::warptile {

// `Order` is there to be part of the symbol.
template <typename C, bool kVector, typename Order>
__global__ void __launch_bounds__(C::kNumThreads, C::kBlocksPerSm) sgemm(SgemmArgs args) {
  const auto origin = C::Grid::origin(args.shape);
  const auto at = C::position();
  float acc[C::kFragmentM][C::kFragmentN]{};
  accumulate<C, kVector>(args, origin, at, 0, 1, acc);
  store_parts<kVector>(args, origin.row + at.m, origin.col + at.n, C::kSubWarpM, C::kSubWarpN, acc);
}

template <typename C>
Status enqueue_with(const SgemmArgs& args, Stream stream) {
  const simt::LaunchConfig launch{.kernel = "warptile",
                                  .blocks = C::Grid::num_blocks(args.shape),
                                  .threads_x = C::kNumThreads,
                                  .shared_bytes = sizeof(prefetch::SharedStorage<C>)};
  using Order = typename C::Order;
  return simt::launch(launch, stream,
                      allows_vectors(args) ? sgemm<C, true, Order> : sgemm<C, false, Order>, args);
}

// A configuration and its throughput where it fills the device, relative to the best one: NVIDIA
// H200, `bench --variants --benchmark_filter='Warptile[.].*/4096x4096x4096'`.
struct Choice {
  Status (*enqueue)(const SgemmArgs& args, Stream stream);
  std::int64_t (*num_blocks)(const Shape& shape);
  double tile;  // elements of C
  double throughput;
};

template <typename C>
constexpr Choice choice(double throughput) {
  return {enqueue_with<C>, C::Grid::num_blocks, double{C::kBlockM} * C::kBlockN, throughput};
}

constexpr Choice kChoices[] = {
    choice<Config<Tiles128x128>>(1.0),
    choice<Config<Tiles128x64>>(0.95),
    choice<Config<Tiles32x64>>(0.68),
};

// About the share of its throughput that a block has while it is alone on its multiprocessor:
// Warptile.128x64 at 1024x1024x1024, 128 blocks on an H200, against 4096x4096x4096.
constexpr double kAlone = 0.88;

// The configuration whose busiest multiprocessor is done first.
Status enqueue(const SgemmArgs& args, Stream stream) {
  const auto time = [&](const Choice& c) {
    const auto rounds = ceil_div(c.num_blocks(args.shape), device::properties().multiprocessors);
    return std::max(static_cast<double>(rounds), 1.0 / kAlone) * c.tile / c.throughput;
  };
  const Choice* best = &kChoices[0];
  for (const Choice& c : kChoices) {
    if (time(c) < time(*best)) best = &c;
  }
  return best->enqueue(args, stream);
}

template <typename... Tiles>
constexpr std::int64_t kTileSizes[] = {4,
                                       Tiles::kBlockK...,
                                       Config<Tiles>::kSubWarpM...,
                                       Config<Tiles>::kSubWarpN...,
                                       Tiles::kBlockM...,
                                       Tiles::kBlockN...};

// The rung with some of its configurations.
template <typename... Tiles>
constexpr Stage make_stage(std::string_view name, Status (*enqueue_stage)(const SgemmArgs&, Stream),
                           std::span<const Stage* const> variants = {}) {
  return {
      .name = name,
      .idea = "block, warp, sub-warp and thread tiles",
      .tile_sizes = kTileSizes<Tiles...>,
      .rounding_chain = serial_rounding_chain,
      .restrictions = TileGrid<std::min({Tiles::kBlockM...}), std::min({Tiles::kBlockN...})>::fits,
      .enqueue = enqueue_stage,
      .variants = variants,
  };
}

template <typename Tiles>
constexpr Stage make_variant(std::string_view name) {
  return make_stage<Tiles>(name, enqueue_with<Config<Tiles>>);
}

// What the order of the instructions and that of the lanes are worth.
struct Tiles128x128AnyOrder : Tiles128x128 {
  using Order = AnyOrder;
};
struct Tiles128x128Dealt : Tiles128x128 {
  static constexpr bool kDealtLanes = true;
};

constexpr Stage k128x128 = make_variant<Tiles128x128>("Warptile.128x128");
constexpr Stage k128x128_any_order =
    make_variant<Tiles128x128AnyOrder>("Warptile.128x128_any_order");
constexpr Stage k128x128_dealt = make_variant<Tiles128x128Dealt>("Warptile.128x128_dealt");
constexpr Stage k128x64 = make_variant<Tiles128x64>("Warptile.128x64");
constexpr Stage k32x64 = make_variant<Tiles32x64>("Warptile.32x64");
constexpr const Stage* kVariants[] = {&k128x128, &k128x128_any_order, &k128x128_dealt, &k128x64,
                                      &k32x64};

extern const Stage stage;
const Stage stage =
    make_stage<Tiles128x128, Tiles128x64, Tiles32x64>("Warptile", enqueue, kVariants);

}  // namespace tilegate::warptile
