// StreamK's kernels with a condition.
#include <tilegate/common/interleaved/plan.cuh>

#include "stream_k.cuh"

namespace tilegate::stream_k {
namespace {

// The smallest tile only for whole vectors. Packed has such kernels for other operands.
template <typename Config>
constexpr auto kConditional =
    []<typename Layout>(Layout) -> interleaved::KernelOf<KernelArgs, LimitedSplit, Condition> {
  if constexpr ((Config::kBlockM >= 128 || Layout::kVector) && Config::template kTakes<Layout>) {
    return {sgemm_in_sums<Config, Layout, typename Config::Order>,
            sizeof(LimitedStorage<Config, Layout>)};
  }
  return {};
};

}  // namespace

template <typename Config>
interleaved::KernelOf<KernelArgs, LimitedSplit, Condition> Conditional<Config>::kernel(
    const Problem& problem) {
  return interleaved::with_layout(problem, kConditional<Config>);
}

template <typename Config>
AddKernel<Condition> Conditional<Config>::add(bool vectors) {
  constexpr int kMany = kPartialsInFlight;
  return vectors ? stream_k::add<Config, true, kMany, Condition>
                 : stream_k::add<Config, false, kMany, Condition>;
}

template <typename Config>
Status Conditional<Config>::setup() {
  return interleaved::allow_shared_memory(kConditional<Config>);
}

template struct Conditional<InterleavedTiles<interleaved::Tiles128x256x8>>;
template struct Conditional<InterleavedTiles<interleaved::Tiles128x256x16>>;
template struct Conditional<InterleavedTiles<interleaved::Tiles128x128x16s2>>;
template struct Conditional<InterleavedTiles<interleaved::Tiles64x128x32s4>>;

}  // namespace tilegate::stream_k
