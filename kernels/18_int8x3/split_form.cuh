// Which kernel splits a problem's rows, and how many of its blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tilegate/common/grid.cuh>

#include "split_ahead.cuh"
#include "split_long.cuh"
#include "split_short.cuh"

namespace tilegate::int8x3 {

using Long = LongConfig<256, 2>;
using Ahead = AheadConfig<16, 6, 1>;
using Many = AheadConfig<8, 6, 2>;

// How a problem's rows are split: by which kernel, and by how many blocks for a group of rows.
struct SplitForm {
  // kAny: on any GPU, not only on those with clusters and much shared memory.
  enum class Kernel : std::uint8_t { kAny, kFew, kMany, kAhead, kLong } kernel = Kernel::kAny;
  int rows = AnyRows::kRows;  // of a group
  unsigned cluster = 1;
  bool is_once = false;  // neither operands nor C need stay in L2

  SplitForm() = default;
  SplitForm(std::int64_t groups, std::int64_t k, int multiprocessors)
      : kernel(k > Ahead::kMaxK                          ? Kernel::kLong
               : k > kFewRowsK                           ? Kernel::kAhead
               : groups >= kManyGroups * multiprocessors ? Kernel::kMany
                                                         : Kernel::kFew),
        rows(kernel == Kernel::kFew ? FewRows::kRows : Long::kRows),
        is_once(kernel == Kernel::kAhead && k <= kOnceK &&
                groups * Long::kRows * k * (kPlanes + 4) > kL2Bytes) {
    if (kernel == Kernel::kLong) cluster = kMaxSplitCluster;
    if (kernel == Kernel::kMany) cluster = 2;
    if (kernel == Kernel::kAhead) {
      for (cluster = 2; ceil_div(k, kChunkK) > cluster * Ahead::kMaxChunks;) cluster *= 2;
    }
  }

  // Of the kernel, for so many groups. Those that go from group to group all run at once, and have
  // as many of them.
  std::int64_t blocks(std::int64_t groups, int multiprocessors) const {
    if (kernel != Kernel::kAhead && kernel != Kernel::kMany) return groups * cluster;
    const std::int64_t places = kernel == Kernel::kMany
                                    ? multiprocessors * Many::kBlocksPerSm
                                    : multiprocessors - (cluster > 2 ? kLeftOver : 0);
    const std::int64_t clusters = std::max<std::int64_t>(places / cluster, 1);
    return ceil_div(groups, ceil_div(groups, clusters)) * cluster;
  }

  // Found on an NVIDIA H200, as is what is below.
  static constexpr std::int64_t kFewRowsK = 1024, kOnceK = 2048;
  // Multiprocessors that clusters of more than two blocks do not fill.
  static constexpr std::int64_t kLeftOver = 12;
  static_assert(kFewRowsK <= 2 * Many::kMaxChunks * kChunkK);
  static constexpr std::int64_t kManyGroups = 16;  // per multiprocessor
  // Where operands and digits exceed this, of 50 MB, the digits should stay: they are read next.
  static constexpr std::int64_t kL2Bytes = 40'000'000;
};

}  // namespace tilegate::int8x3
