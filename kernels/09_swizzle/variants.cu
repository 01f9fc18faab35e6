// Swizzle with one of its two ideas alone, and with the source's instruction order, for comparison.
#include <tilegate/common/instruction_order.cuh>

#include "swizzle.cuh"

namespace tilegate::swizzle {

// Swizzled stores; row-major lane layout as in Prefetch.
struct StoresOnly : Tiles {
  static __device__ double_buffered::Position position() {
    constexpr int kThreadsN = kBlockN / kFragmentN;
    const int thread = static_cast<int>(threadIdx.x);
    return {thread / kThreadsN * 4, thread % kThreadsN * 4};
  }
};

constexpr Stage kStoresOnly = make_stage<StoresOnly, CompilerOrder>("Swizzle.stores_only");
constexpr Stage kSourceOrder = make_stage<DealtLanes, SourceOrder>("Swizzle.source_order");
constexpr const Stage* kVariants[] = {&kStoresOnly, &kSourceOrder};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::swizzle
