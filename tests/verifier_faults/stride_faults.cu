// Several tiles, two reads of a thread in each, and an offset or an extent that is computed in 32
// bits: right as long as it does not pass 2^31.
#include <cstdint>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier_faults/faults.hpp"
#include "verifier_faults/planted_stage.cuh"

namespace tilegate::faults {

enum class StrideFault {
  kNone,
  kFirstRow,       // of a tile of A
  kSecondReadOfA,  // of a thread in a tile
  kSecondReadOfB,
  kNextTile,         // of B
  kOrigin,           // of a block's tile of C
  kBlockIndex,       // past 2^16
  kClip,             // rows or columns that are left from there on
  kLeavesOutBlocks,  // three of a large grid
};

constexpr int kReads = 2;
constexpr int kTileM = kReads * kTile, kTileN = kTile, kTileK = kReads * kTile;
using StridedGrid = TileGrid<kTileM, kTileN>;
constexpr std::int64_t kStridedTileSizes[] = {kTileM, kTileN};

constexpr unsigned kLargeGrid = 60000;  // blocks
constexpr unsigned kLeftOut = 113;  // 1, 2 and 3 times as many; the executor's samples have them

struct StrideStorage {
  float a[kTileM][kTileK];
  float b[kTileK][kTileN];
};

template <bool kIn32Bits>
__device__ std::int64_t narrow(std::int64_t value) {
  return kIn32Bits ? static_cast<int>(value) : value;
}

template <StrideFault kFault>
__global__ void strided_sgemm(KernelArgs args) {
  constexpr bool kClips = kFault == StrideFault::kClip;
  auto& shared = device::shared_storage<StrideStorage>();
  const auto [m, n, k_end] = args.shape;
  const auto x = static_cast<int>(threadIdx.x);
  const auto y = static_cast<int>(threadIdx.y);
  if (kFault == StrideFault::kLeavesOutBlocks && gridDim.x > kLargeGrid &&
      blockIdx.x % kLeftOut == 0 && blockIdx.x / kLeftOut >= 1 && blockIdx.x / kLeftOut <= 3) {
    return;
  }
  constexpr unsigned kSeen = kFault == StrideFault::kBlockIndex ? 0xFFFF : 0xFFFFFFFF;
  const auto tile = StridedGrid::origin(args.shape, blockIdx.x & kSeen);
  const std::int64_t row = narrow<kFault == StrideFault::kOrigin>(tile.row);
  const std::int64_t col = narrow<kFault == StrideFault::kOrigin>(tile.col);
  const std::int64_t rows = narrow<kClips>(m - row);
  const bool has_column = x < narrow<kClips>(n - col);

  const float* a = args.a + narrow<kFault == StrideFault::kFirstRow>(row * args.lda);
  const float* b = args.b + y * args.ldb + col + x;
  float sum[kReads] = {};
  for (std::int64_t k = 0; k < k_end; k += kTileK) {
    for (int i = 0; i < kReads; ++i) {
      for (int j = 0; j < kReads; ++j) {
        const std::int64_t a_col = k + x + j * kTile;
        const std::int64_t at =
            y * args.lda + narrow<kFault == StrideFault::kSecondReadOfA>(i * kTile * args.lda);
        const bool in_a = y + i * kTile < rows && a_col < k_end;
        shared.a[y + i * kTile][x + j * kTile] = in_a ? a[at + a_col] : 0.0F;
      }
      const std::int64_t at = narrow<kFault == StrideFault::kSecondReadOfB>(i * kTile * args.ldb);
      const bool in_b = k + y + i * kTile < k_end && has_column;
      shared.b[y + i * kTile][x] = in_b ? b[at] : 0.0F;
    }
    b += narrow<kFault == StrideFault::kNextTile>(kTileK * args.ldb);
    __syncthreads();  // the tile is complete before a thread reads it
    for (int i = 0; i < kReads; ++i) {
      for (int l = 0; l < kTileK; ++l) sum[i] += shared.a[y + i * kTile][l] * shared.b[l][x];
    }
    __syncthreads();  // all threads have read the tile before the next one overwrites it
  }
  for (int i = 0; i < kReads; ++i) {
    if (y + i * kTile < rows && has_column) {
      store_element(args, row + y + i * kTile, col + x, sum[i]);
    }
  }
}

template <StrideFault kFault>
Status enqueue_strided(const KernelArgs& args, Stream stream) {
  const device::LaunchConfig launch{.kernel = "planted strides",
                                    .blocks = StridedGrid::num_blocks(args.shape),
                                    .threads_x = kTile,
                                    .threads_y = kTile,
                                    .shared_bytes = sizeof(StrideStorage)};
  return device::launch(launch, stream, strided_sgemm<kFault>, args);
}

template <StrideFault kFault>
Choice choose_strided(const Problem& problem, const Device& /*device*/) {
  return serial_choice<StridedGrid>(problem, enqueue_strided<kFault>);
}

template <StrideFault kFault>
constexpr Stage make_strided(std::string_view name) {
  return make_stage(name, kStridedTileSizes, choose_strided<kFault>);
}

// Of a grid that takes `kMore` blocks more than there are.
template <std::int64_t kMore>
Choice choose_beyond(const Problem& problem, const Device& /*device*/) {
  const double blocks = static_cast<double>(ceil_div(problem.shape.m, kTileM)) *
                        static_cast<double>(ceil_div(problem.shape.n, kTileN));
  if (blocks > static_cast<double>(kMaxBlocks + kMore)) {
    return {.status = Status::unsupported("more blocks than a grid has")};
  }
  return {.rounding_chain = serial_rounding_chain(problem.shape),
          .enqueue = enqueue_strided<StrideFault::kNone>};
}

std::span<const Stage> stride_faults() {
  using enum StrideFault;
  static constexpr Stage kStages[] = {
      make_strided<kNone>("RightStrides"),
      make_strided<kFirstRow>("FirstRowIn32Bits"),
      make_strided<kSecondReadOfA>("SecondReadOfAIn32Bits"),
      make_strided<kSecondReadOfB>("SecondReadOfBIn32Bits"),
      make_strided<kNextTile>("NextTileIn32Bits"),
      make_strided<kOrigin>("OriginIn32Bits"),
      make_strided<kClip>("ClipIn32Bits"),
      make_strided<kBlockIndex>("BlockIndexIn16Bits"),
      make_strided<kLeavesOutBlocks>("LeavesOutThreeBlocks"),
      make_stage("OneBlockTooMany", kStridedTileSizes, choose_beyond<1>),
      make_stage("OneBlockTooFew", kStridedTileSizes, choose_beyond<-1>),
  };
  return kStages;
}

}  // namespace tilegate::faults
