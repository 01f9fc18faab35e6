#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tilegate::device {

// The configuration of a kernel launch. Our own kernels have one-dimensional grids: see
// common/tile_scheduler.cuh.
struct LaunchConfig {
  const char* kernel;            // what errors call it
  std::int64_t blocks;           // in [1, 2^31)
  unsigned threads_x;            // threads of a block along x, which varies fastest in a warp
  unsigned threads_y = 1;        // threads along y
  std::size_t shared_bytes = 0;  // dynamic shared memory of a block
  // Programmatic dependent launch: blocks may start while the previous kernel drains; the kernel
  // calls wait_for_previous_kernel(). Compute capability 9.0.
  bool overlaps_previous = false;
  // Blocks per cluster, up to 8; `blocks` is a multiple. Compute capability 9.0.
  unsigned cluster = 1;
  // The kernel adds to elements of C that earlier kernels of the call have stored, also with beta
  // 0. Otherwise each element of C is stored once per call.
  bool adds_to_c = false;
  // Further dimensions, of kernels that were written without this header; see plain.cuh.
  unsigned blocks_y = 1, blocks_z = 1;  // up to 65535 each; `blocks` are those along x
  unsigned threads_z = 1;
  // The kernel declares __shared__ variables, besides its dynamic shared memory.
  bool has_shared_variables = false;

  std::int64_t all_blocks() const { return blocks * blocks_y * blocks_z; }
  unsigned block_threads() const { return threads_x * threads_y * threads_z; }
};

// While one lives, launch() of this thread loads the kernel and does not run it.
class OnlyLoad {
 public:
  OnlyLoad() { is_active_ = true; }
  ~OnlyLoad() { is_active_ = false; }
  OnlyLoad(const OnlyLoad&) = delete;
  OnlyLoad& operator=(const OnlyLoad&) = delete;

  static bool is_active() { return is_active_; }

 private:
  static inline thread_local bool is_active_ = false;
};

// While one lives, the first launch() of this thread starts when the previous kernel has ended,
// also with `overlaps_previous`.
class StartsAlone {
 public:
  StartsAlone() { is_next_ = true; }
  ~StartsAlone() { is_next_ = false; }
  StartsAlone(const StartsAlone&) = delete;
  StartsAlone& operator=(const StartsAlone&) = delete;

  // Whether that launch is the next one; from then on it is not.
  static bool take() { return std::exchange(is_next_, false); }

 private:
  static inline thread_local bool is_next_ = false;
};

}  // namespace tilegate::device
