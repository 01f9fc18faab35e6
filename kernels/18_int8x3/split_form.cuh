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

constexpr double kL2Bytes = 50e6;  // of an NVIDIA H200

// How a problem's rows are split: by which kernel, and by how many blocks for a group of rows.
struct SplitForm {
  // kAny: on any GPU, not only on those with clusters and much shared memory.
  enum class Kernel : std::uint8_t { kAny, kFew, kMany, kAhead, kLong } kernel = Kernel::kAny;
  int rows = AnyRows::kRows;  // of a group
  unsigned cluster = 1;
  bool is_once = false;  // operands need not stay in L2

  SplitForm() = default;
  // `groups`: of Long::kRows rows; `c_bytes`: of all of C.
  SplitForm(std::int64_t groups, std::int64_t k, double c_bytes, int multiprocessors)
      : kernel(kernel_for(groups, k, multiprocessors)),
        rows(kernel == Kernel::kFew ? FewRows::kRows : Long::kRows) {
    if (kernel == Kernel::kLong) cluster = kMaxSplitCluster;
    if (kernel == Kernel::kMany) cluster = 2;
    if (kernel == Kernel::kAhead) {
      for (cluster = 2; ceil_div(k, kChunkK) > cluster * Ahead::kMaxChunks;) cluster *= 2;
    }
    const double elements = static_cast<double>(groups * Long::kRows) * static_cast<double>(k);
    is_once = (kernel == Kernel::kMany || kernel == Kernel::kAhead) && k <= kOnceK &&
              elements * (kPlanes + sizeof(float)) + c_bytes > kNearlyL2Bytes &&
              elements * kPlanes <= kL2Bytes;
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

  // Multiprocessors that clusters of more than two blocks do not fill. Found on an NVIDIA H200, as
  // is what is below.
  static constexpr std::int64_t kLeftOver = 12;

 private:
  static constexpr std::int64_t kFewRowsK = 1024, kManyK = 1408, kOnceK = 2560;
  static_assert(kManyK <= 2 * Many::kMaxChunks * kChunkK);
  // Elements above which clusters go from group to group; a row costs as much as so many of them.
  static constexpr std::int64_t kManyElements = 2'500'000, kRowElements = 300;
  // What the operands, their digits and C must exceed so that some of it is lost. Where the digits
  // alone fit, they are what should stay: they are read next.
  static constexpr double kNearlyL2Bytes = 36e6;

  static Kernel kernel_for(std::int64_t groups, std::int64_t k, int multiprocessors) {
    if (k > Ahead::kMaxK) return Kernel::kLong;
    if (k > kFewRowsK) {  // kMany has twice as many clusters at a time as kAhead
      return k <= kManyK && 2 * groups > multiprocessors ? Kernel::kMany : Kernel::kAhead;
    }
    return groups * Long::kRows * (k + kRowElements) >= kManyElements ? Kernel::kMany
                                                                      : Kernel::kFew;
  }
};

}  // namespace tilegate::int8x3
