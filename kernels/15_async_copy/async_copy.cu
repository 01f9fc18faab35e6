// AsyncCopy: asynchronous copies (cp.async) to shared memory, several k tiles ahead.
//
// New against StreamK: tiles in flight take no registers. So a block can have several k tiles in
// flight, which hides latency in small problems; and operands that allow no vectors, or are
// transposed, are copied word by word at little cost. In small tiles, warps multiply different
// slices of K (sliced-K). Supports transposed operands and batches. What limits it: a copy of 4
// bytes takes as many instructions as one of 16.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <tilegate/common/async/mainloop.cuh>
#include <tilegate/common/async/plan.cuh>
#include <tilegate/common/instruction_order.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::async_copy {

// The word costs were fitted to 81 to 277 timings each on an NVIDIA H200 (driver 580.159.04, CUDA
// 13.0), with errors of 3 to 9 % (root mean square of the logarithm). Fitted to two thirds of the
// problems, these costs and those of Packed had an error of 5 % on the others. The vector costs
// were fitted to 43 timings of 32x32x32s4, with an error of 14 %, and to 89 to 96 timings of
// kernels with the loop of 64x64x32s4. Forms of 64x64x8 other than NN have not been timed: they
// have its cost. Since blocks compute their first addresses before they wait for the previous
// kernel, the constants are corrected by the mean errors of 1,000 further timings; those of whole
// vectors by a few shapes. Those of 64x64x8 and 64x128x8 were then fitted to 150 timings each, half
// of them of K from 36 to 158: errors of 6 and 4 %. Blocks of 64x64x8 that store vectors have a
// cost of their own: cost::BlockWork does not count their stores.

// For operands that allow vectors: the fewest copies, four blocks per multiprocessor.
struct Tiles32x32s4 {
  static constexpr const char* kName = "32x32x32s4";
  static constexpr int kBlockM = 32, kBlockN = 32, kBlockK = 32;
  static constexpr int kWarpM = 32, kWarpN = 32, kSlices = 4;
  static constexpr int kStages = 4, kVectorBatches = 1, kWordBatches = 1;
  static constexpr int kBlocksPerSm = 4;
  static constexpr std::size_t kLeastSharedBytes = 0;
  static constexpr bool kPermutedLanes = true, kChecksEdges = true, kSwapsNeighbours = true;
  using Order = CompilerOrder;
  static constexpr cost::BlockCost kVectorCost = {39.0, 0.9, {0.8, 0.98, 1.0, 1.0}, 0.3};
  static constexpr cost::BlockCost kWordCost = {35.7, 0.78, {0.92, 1.0, 1.0, 1.0}, 0.6};
};

// For all operands: eight warps per tile, to issue the copies of words.
struct Tiles32x32s8 : Tiles32x32s4 {
  static constexpr const char* kName = "32x32x32s8";
  static constexpr int kSlices = 8;
  static constexpr int kBlocksPerSm = 2;
  using Order = SourceOrder;
};

struct Tiles32x64s4 : Tiles32x32s4 {
  static constexpr const char* kName = "32x64x32s4";
  static constexpr int kBlockN = 64;
  static constexpr int kStages = 3, kVectorBatches = 2, kWordBatches = 4;
  static constexpr int kBlocksPerSm = 2;
  using Order = SourceOrder;
  static constexpr cost::BlockCost kWordCost = {
      .teraflops = 36.5, .microseconds = 1.05, .block_microseconds = 0.36};
};

// 8×8 results per thread.
struct Tiles64x64s4 : Tiles32x64s4 {
  static constexpr const char* kName = "64x64x32s4";
  static constexpr int kBlockM = 64, kWarpM = 64;
  static constexpr bool kChecksEdges = false;
  static constexpr cost::BlockCost kVectorCost = {51.5, 1.05};
  static constexpr cost::BlockCost kWordCost = {
      .teraflops = 49.4, .microseconds = 1.35, .block_microseconds = 0.62};
};

// For N with much waste in tiles of 64 columns; 4×12 results per thread.
struct Tiles64x48s4 : Tiles64x64s4 {
  static constexpr const char* kName = "64x48x32s4";
  static constexpr int kBlockN = 48, kWarpM = 32, kWarpN = 48;
  static constexpr bool kChecksEdges = true;
  static constexpr cost::BlockCost kWordCost = {
      .teraflops = 45.2, .microseconds = 1.03, .block_microseconds = 0.7};
};

// For M with much waste in tiles of 64 rows; 12×8 results per thread.
struct Tiles96x64s2 : Tiles64x64s4 {
  static constexpr const char* kName = "96x64x32s2";
  static constexpr int kBlockM = 96, kWarpM = 96, kWarpN = 32, kSlices = 2;
  static constexpr bool kChecksEdges = true;
  // So that two blocks fit on a multiprocessor of compute capability 9.0. Three would crowd on some
  // when a launch overlaps the previous one (cost::spreads_evenly).
  static constexpr std::size_t kLeastSharedBytes = 76 * 1024;
  static constexpr cost::BlockCost kWordCost = {
      .teraflops = 49.9, .microseconds = 3.34, .block_microseconds = 0.62, .last_ones_share = true};
};

// 16×8 results per thread.
struct Tiles128x256 : Tiles64x64s4 {
  static constexpr const char* kName = "128x256x16";
  static constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 16;
  static constexpr int kWarpM = 128, kSlices = 1;
  static constexpr int kBlocksPerSm = 1;
  static constexpr cost::BlockCost kWordCost = {56.1, 5.0};
};

// For small K, where the stores of C take longer than the FFMA: small blocks, of which some store
// while others multiply.
struct Tiles64x64x8 : Tiles32x64s4 {
  static constexpr const char* kName = "64x64x8";
  static constexpr int kBlockM = 64, kBlockN = 64, kBlockK = 8;
  static constexpr int kWarpM = 32, kWarpN = 32, kSlices = 1;
  static constexpr int kBlocksPerSm = 6;
  static constexpr bool kPermutedLanes = true;
  using Order = CompilerOrder;
  static constexpr cost::BlockCost kWordCost = {45.5, 1.63, {0.83, 1.0, 1.0, 1.0}},
                                   kVectorStoreCost = {41.5, 2.1};
};

// For a transposed B, whose copies take more registers.
struct Tiles64x64x8Bt : Tiles64x64x8 {
  static constexpr int kWordBatches = 1;
  static constexpr int kBlocksPerSm = 5;
};

// For somewhat larger K.
struct Tiles64x128x8 : Tiles64x64x8 {
  static constexpr const char* kName = "64x128x8";
  static constexpr int kBlockN = 128;
  static constexpr int kWarpM = 64, kWarpN = 32;
  static constexpr int kBlocksPerSm = 4;
  static constexpr cost::BlockCost kWordCost = {49.4, 3.55, {0.88, 1.0, 1.0, 1.0}},
                                   kVectorStoreCost = kWordCost;
};

// `Order` becomes part of the symbol.
template <typename Config, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args, SplitK split_k) {
  compute_block<Config>(args, split_k);
}

template <typename Tiles, Feed kFeedA, Feed kFeedB>
constexpr AsyncKernel kernel() {
  using Config = AsyncConfig<Tiles, kFeedA, kFeedB>;
  AsyncKernel kernel = async_kernel<Config>(sgemm<Config, typename Tiles::Order>);
  kernel.shared_bytes = std::max(kernel.shared_bytes, Tiles::kLeastSharedBytes);
  return kernel;
}

constexpr auto kVectors = Feed::kVectors, kWords = Feed::kWords, kTransposed = Feed::kTransposed,
               kKept = Feed::kKept;

constexpr AsyncKernel kKernels[] = {
    kernel<Tiles32x32s4, kKept, kVectors>(),
    kernel<Tiles32x32s4, kVectors, kVectors>(),
    kernel<Tiles32x32s8, kTransposed, kWords>(),
    kernel<Tiles32x32s8, kTransposed, kTransposed>(),
    kernel<Tiles32x32s8, kWords, kWords>(),
    kernel<Tiles32x32s8, kWords, kTransposed>(),
    kernel<Tiles32x64s4, kTransposed, kVectors>(),
    kernel<Tiles32x64s4, kTransposed, kWords>(),
    kernel<Tiles64x64s4, kTransposed, kVectors>(),
    kernel<Tiles64x64s4, kTransposed, kWords>(),
    kernel<Tiles64x64s4, kTransposed, kTransposed>(),
    kernel<Tiles64x64s4, kVectors, kVectors>(),
    kernel<Tiles64x64s4, kWords, kWords>(),
    kernel<Tiles64x64s4, kWords, kTransposed>(),
    kernel<Tiles64x48s4, kTransposed, kWords>(),
    kernel<Tiles96x64s2, kTransposed, kVectors>(),
    kernel<Tiles96x64s2, kTransposed, kWords>(),
    kernel<Tiles96x64s2, kTransposed, kTransposed>(),
    kernel<Tiles128x256, kTransposed, kWords>(),
    kernel<Tiles64x64x8, kTransposed, kWords>(),
    kernel<Tiles64x64x8Bt, kTransposed, kTransposed>(),
    kernel<Tiles64x64x8, kWords, kWords>(),
    kernel<Tiles64x64x8Bt, kWords, kTransposed>(),
    kernel<Tiles64x128x8, kTransposed, kWords>(),
};

std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  return async_plan::candidates(kKernels, problem, device);
}

Status setup() { return async_plan::allow_shared_memory(kKernels); }

constexpr std::int64_t kTileSizes[] = {4, 32, 64, 96, 128};

extern const Stage stage;
const Stage stage{
    .name = "AsyncCopy",
    .idea = "asynchronous copies, several k tiles ahead, by words where there are no vectors",
    .requirements = {.compute_capability = 80, .not_on_simt = {}},
    .takes_transposed = true,
    .takes_batches = true,
    .tile_sizes = kTileSizes,
    .candidates = candidates,
    .setup = setup,
};

}  // namespace tilegate::async_copy
