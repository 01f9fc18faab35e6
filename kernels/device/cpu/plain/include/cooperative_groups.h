// Groups that the executor supports: the block, and tiles of 1 to 32 lanes of a warp.
#pragma once
#include <tilegate/device/cpu/plain.hpp>

namespace cooperative_groups {

using tilegate::simt::Site;

class thread_block {
 public:
  static void sync(Site site = Site::current()) { __syncthreads(site); }
  static unsigned thread_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned num_threads() { return size(); }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_index() { return blockIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};

inline thread_block this_thread_block() { return {}; }

template <unsigned kSize, typename Parent = thread_block>
class thread_block_tile {
  static_assert(kSize <= 32 && (kSize & (kSize - 1)) == 0, "a tile of a warp: 1, 2, 4, … 32 lanes");

 public:
  thread_block_tile() = default;
  template <typename Other>
  thread_block_tile(const thread_block_tile<kSize, Other>& /*tile*/) {
  }  // its parent is a type only
  static void sync(Site site = Site::current()) { __syncwarp(mask(), site); }
  static unsigned thread_rank() { return tilegate::simt::executor::lane() % kSize; }
  static constexpr unsigned size() { return kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  static unsigned meta_group_rank() { return thread_block::thread_rank() / kSize; }
  static unsigned meta_group_size() { return (thread_block::size() + kSize - 1) / kSize; }

  template <typename T>
  static T shfl(T value, int lane, Site site = Site::current()) {
    return __shfl_sync(mask(), value, lane, int{kSize}, site);
  }
  template <typename T>
  static T shfl_up(T value, unsigned delta, Site site = Site::current()) {
    return __shfl_up_sync(mask(), value, delta, int{kSize}, site);
  }
  template <typename T>
  static T shfl_down(T value, unsigned delta, Site site = Site::current()) {
    return __shfl_down_sync(mask(), value, delta, int{kSize}, site);
  }
  template <typename T>
  static T shfl_xor(T value, unsigned lanes, Site site = Site::current()) {
    return __shfl_xor_sync(mask(), value, static_cast<int>(lanes), int{kSize}, site);
  }
  static unsigned ballot(int predicate, Site site = Site::current()) {
    return __ballot_sync(mask(), predicate, site) >> first();
  }
  static int any(int predicate, Site site = Site::current()) {
    return __any_sync(mask(), predicate, site);
  }
  static int all(int predicate, Site site = Site::current()) {
    return __all_sync(mask(), predicate, site);
  }

 private:
  static unsigned first() { return tilegate::simt::executor::lane() / kSize * kSize; }
  static unsigned mask() { return ~0U >> (32 - kSize) << first(); }
};

template <unsigned kSize, typename Parent>
thread_block_tile<kSize, Parent> tiled_partition(const Parent& /*parent*/) {
  return {};
}

template <typename Group>
void sync(const Group& group, Site site = Site::current()) {
  group.sync(site);
}

}  // namespace cooperative_groups
