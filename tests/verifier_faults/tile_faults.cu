// Tiles in shared memory, each stage but the first with a fault of synchronisation.
#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier_faults/faults.hpp"
#include "verifier_faults/planted_stage.cuh"

namespace tilegate::faults {

enum class TileFault {
  kNone,
  kNoBarrierAfterLoad,      // multiplies what others have not yet loaded
  kNoBarrierAfterMultiply,  // loads over what others still multiply
  kDivergentBarrier,        // threads outside C leave before the barrier
  kSumsInAnyOrder,          // right within the bound, but the last writer decides the order
};

struct TileStorage {
  float a[kTile][kTile];
  float b[kTile][kTile];
  int last_writer;
};

template <TileFault kFault>
__global__ void tiled_sgemm(KernelArgs args) {
  auto& shared = device::shared_storage<TileStorage>();
  const auto [m, n, k_end] = args.shape;
  const auto tiles_n = static_cast<unsigned>((n - 1) / kTile + 1);
  const auto x = static_cast<int>(threadIdx.x);
  const auto y = static_cast<int>(threadIdx.y);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x / tiles_n) * kTile + y;
  const std::int64_t col = static_cast<std::int64_t>(blockIdx.x % tiles_n) * kTile + x;
  const bool in_c = row < m && col < n;
  if (kFault == TileFault::kDivergentBarrier && !in_c) return;

  shared.last_writer = y * kTile + x;
  __syncthreads();  // a decided order, unless the fault wants it undecided
  const bool backwards = kFault == TileFault::kSumsInAnyOrder && shared.last_writer == 0;

  float sum = 0.0F;
  for (std::int64_t first = 0; first < k_end; first += kTile) {
    shared.a[y][x] = row < m && first + x < k_end ? args.a[row * args.lda + first + x] : 0.0F;
    shared.b[y][x] = first + y < k_end && col < n ? args.b[(first + y) * args.ldb + col] : 0.0F;
    if (kFault != TileFault::kNoBarrierAfterLoad) __syncthreads();  // tile is complete
    for (int i = 0; i < kTile; ++i) {
      const int k = backwards ? kTile - 1 - i : i;
      sum += shared.a[y][k] * shared.b[k][x];
    }
    if (kFault != TileFault::kNoBarrierAfterMultiply) __syncthreads();  // tile is read
  }
  if (!in_c) return;
  float* c = args.c + row * args.ldc + col;
  *c = args.beta == 0.0F ? args.alpha * sum : args.alpha * sum + args.beta * *c;
}

template <TileFault kFault>
Status enqueue_tiled(const KernelArgs& args, Stream stream) {
  const auto [m, n, k] = args.shape;
  const device::LaunchConfig launch{.kernel = "planted tile fault",
                                    .blocks = ((m - 1) / kTile + 1) * ((n - 1) / kTile + 1),
                                    .threads_x = kTile,
                                    .threads_y = kTile,
                                    .shared_bytes = sizeof(TileStorage)};
  return device::launch(launch, stream, tiled_sgemm<kFault>, args);
}

std::span<const PlantedFault> tile_faults() {
  using enum TileFault;
  static constexpr PlantedFault kFaults[] = {
      {make_stage<enqueue_tiled<kNone>>("RightTiles"), ""},
      {make_stage<enqueue_tiled<kNoBarrierAfterLoad>>("NoBarrierAfterLoad"),
       "finite|exact|bound|repeat", Needs::kExecutor},
      {make_stage<enqueue_tiled<kNoBarrierAfterMultiply>>("NoBarrierAfterMultiply"),
       "finite|exact|bound", Needs::kExecutor},
      {make_stage<enqueue_tiled<kDivergentBarrier>>("DivergentBarrier"), "status",
       Needs::kExecutor},
      {make_stage<enqueue_tiled<kSumsInAnyOrder>>("SumsInAnyOrder"), "repeat", Needs::kExecutor},
  };
  return kFaults;
}

}  // namespace tilegate::faults
