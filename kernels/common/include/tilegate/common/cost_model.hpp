// Cost model of FFMA kernels: the expected time of a plan, in seconds.
//
// Fitted to 884 timings of the interleaved kernels on one NVIDIA H200 (driver 580.159.04, CUDA
// 13.0), 39 shapes from 64³ to 16384³, with an error of 12 % (root mean square of the logarithm);
// then corrected by the shapes of bench/shapes.csv. Any other GPU is modelled as an H200 with its
// own number of multiprocessors: there the numbers rank plans, and are no predictions.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <tilegate/common/gpu_model.hpp>
#include <tilegate/device.hpp>
#include <tilegate/problem.hpp>
#include <tilegate/stage.hpp>

namespace tilegate::cost {

// Speed of a kernel's blocks.
struct BlockCost {
  double teraflops;     // of an H200 at full occupancy
  double microseconds;  // prologue and epilogue of the blocks that a multiprocessor runs at a time
  // The share of that speed with 1, 2, 3, 4 resident blocks; with more it is 1.
  std::array<double, 4> speed = {1.0, 1.0, 1.0, 1.0};
  double block_microseconds = 0.0;  // of each block, added to the time of its FFMA and stores
  // Blocks of a multiprocessor end together. So those of a partial last wave fill the first
  // multiprocessors that are free, while others stay idle.
  bool last_ones_share = false;
};

constexpr double kReadBandwidth = 2.2e12, kWriteBandwidth = 2.3e12;  // bytes per second
constexpr double kShareFromL2 = 0.35;  // of the time to read operands, where L2 holds them
// The reduction of partial sums: 1,062 timings of AsyncCopy and Packed; its start, since it
// overlaps the kernel before, 400. A thread has 8 loads in flight, and waits for them.
constexpr double kPartialBandwidth = 6.5e12, kPartialSeconds = 0.95e-6, kPartialLoads = 0.21e-6;
constexpr double kLoadsInFlight = 8.0;
constexpr double kNotHidden = 0.05;    // of the shorter one of multiplying and moving
constexpr double kLaunchGap = 0.5e-6;  // between kernels that do not overlap
constexpr double kWordSpeed = 0.80;    // without vectors: 2048×2048×2048/off4 against 2048³
constexpr double kWordStoreBandwidth = 4.5e12;  // bytes per second, coalesced 32-bit stores
// The share of BlockCost::microseconds that each wave after the first one adds, if several blocks
// are resident: a block of the next wave starts when a block ends, and others multiply meanwhile.
constexpr double kLaterWaves = 0.7;

// Work of one block, tile elements outside C included.
struct BlockWork {
  double flop;
  double word_bytes = 0.0;  // of C, stored by 32-bit stores
};

// Seconds of `count` blocks at an occupancy of `per_sm` blocks per multiprocessor. `follows`: they
// start when full waves end.
inline double block_seconds(double count, const BlockWork& work, const BlockCost& cost, int per_sm,
                            const Device& device, bool follows = false) {
  if (count == 0) return 0.0;
  const double on_busiest = std::ceil(count / device.multiprocessors);
  const double per_block =
      (work.flop / (cost.teraflops * 1e12) + work.word_bytes / kWordStoreBandwidth) *
      kH200.multiprocessors;
  const double full_waves = std::floor(on_busiest / per_sm);
  double rest = on_busiest - full_waves * per_sm;
  if (cost.last_ones_share && (follows || full_waves > 0) && rest > 0) rest = per_sm;
  const double later_waves = std::ceil(on_busiest / per_sm) - 1;
  double seconds =
      1e-6 * cost.microseconds * (1.0 + later_waves * (per_sm > 1 ? kLaterWaves : 1.0)) +
      1e-6 * cost.block_microseconds * on_busiest + full_waves * per_sm * per_block;
  if (rest > 0) {
    const auto index = static_cast<std::size_t>(rest) - 1;
    seconds += rest * per_block / (index < cost.speed.size() ? cost.speed[index] : 1.0);
  }
  return seconds;
}

// Whether the blocks of a launch are spread evenly although it overlaps the previous launch
// (programmatic dependent launch). Blocks that start early take the slots that the previous launch
// leaves free. If these are too few, the other blocks go to the multiprocessors that finish first,
// and fill them: 3 blocks per multiprocessor take as long as 4 where 4 fit, and 4 as long as 6
// where 6 fit (14 and 7 timings of AsyncCopy's 64x128x8 and 64x64x8 in a chain of equal launches).
inline bool spreads_evenly(std::int64_t blocks, int per_sm, const Device& device) {
  const std::int64_t on_busiest = (blocks - 1) / device.multiprocessors + 1;
  return 2 * on_busiest <= per_sm || on_busiest >= per_sm;
}

// Seconds to move each operand once between L2 or device memory and the multiprocessors.
inline double memory_seconds(const Problem& problem, const Device& device) {
  const auto [m, n, k] = problem.shape;
  const auto bytes = [&](std::int64_t rows, std::int64_t cols) {
    return 4.0 * static_cast<double>(rows) * static_cast<double>(cols) *
           static_cast<double>(problem.batch);
  };
  const double read = bytes(m, k) + bytes(k, n);
  const double written = bytes(m, n) * (problem.beta == 0.0F ? 1.0 : 2.0);
  return ((read > kH200.warm_operand_bytes ? 1.0 : kShareFromL2) * read / kReadBandwidth +
          written / kWriteBandwidth) *
         kH200.multiprocessors / device.multiprocessors;
}

// Seconds to reduce `k_splits` partial sums per element, of `partial_bytes` together.
inline double add_seconds(double partial_bytes, std::int64_t k_splits) {
  if (k_splits == 1) return 0.0;
  return kPartialSeconds + 2 * partial_bytes / kPartialBandwidth +
         kPartialLoads * std::ceil(static_cast<double>(k_splits - 1) / kLoadsInFlight);
}

// Expected times of a plan whose blocks take `block_seconds`. `vectors`: all operands allow 128-bit
// accesses. `add_seconds`: of a second kernel, which reduces partial sums.
inline Parts parts(const Problem& problem, const Device& device, double block_seconds, bool vectors,
                   double add_seconds) {
  return {.multiply = vectors ? block_seconds : block_seconds / kWordSpeed,
          .move = memory_seconds(problem, device),
          .add = add_seconds};
}

// Seconds of the whole plan. `overlaps`: the launches before and after it, by programmatic
// dependent launch.
inline double total(const Parts& parts, bool overlaps) {
  return std::max(parts.multiply, parts.move) + kNotHidden * std::min(parts.multiply, parts.move) +
         parts.add + (overlaps ? 0.0 : kLaunchGap);
}

// The share of the elements of `count` tiles that lie inside C.
inline double tile_share(const Problem& problem, double count, double block_m, double block_n) {
  return static_cast<double>(problem.shape.m) * static_cast<double>(problem.shape.n) *
         static_cast<double>(problem.batch) / (count * block_m * block_n);
}

}  // namespace tilegate::cost
