// How long a plan of tiles should take.
//
// Fitted to 884 timings of the interleaved kernels on one NVIDIA H200 (132 multiprocessors, 1980
// MHz, driver 580.159.04, CUDA 13.0), 39 shapes from 64³ to 16384³; the error is 12 % (root mean
// square of the logarithm). Other GPUs are taken for an H200 with another number of
// multiprocessors, so that the numbers rank plans there and no more.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include <tilegate/device.hpp>
#include <tilegate/problem.hpp>

namespace tilegate::cost {

// Of a kernel's blocks.
struct BlockCost {
  double teraflops;     // of an H200 full of such blocks
  double microseconds;  // to start and to end, of all blocks that a multiprocessor runs at a time
  // The share of that speed with 1, 2, 3, 4 blocks on a multiprocessor; where fewer fit, 1.
  std::array<double, 4> speed = {1.0, 1.0, 1.0, 1.0};
};

// Blocks alike; `flop` counts what a block multiplies outside of C too.
struct Blocks {
  double count, flop;
};

constexpr double kFittedMultiprocessors = 132.0;
constexpr double kReadBandwidth = 2.2e12, kWriteBandwidth = 2.1e12;  // bytes per second
constexpr double kL2Bytes = 45e6;
constexpr double kShareFromL2 = 0.35;  // of the time to read, for operands that L2 holds
constexpr double kPartialBandwidth = 6.4e12, kPartialSeconds = 3.8e-6;
constexpr double kLaunchGap = 0.5e-6;  // between kernels that do not overlap
constexpr double kNarrowSpeed = 0.89;  // without vectors: 4097×4095×4093 against 4096³

// The device runs them in rounds of `per_sm` blocks per multiprocessor.
inline double seconds_of(const Blocks& blocks, const BlockCost& cost, int per_sm,
                         const Device& device) {
  const double on_busiest = std::ceil(blocks.count / device.multiprocessors);
  const double per_block = blocks.flop / (cost.teraflops * 1e12 / kFittedMultiprocessors);
  const double full_rounds = std::floor(on_busiest / per_sm);
  const double start = cost.microseconds * 1e-6;
  double seconds = full_rounds * (per_sm * per_block + start);
  const double rest = on_busiest - full_rounds * per_sm;
  if (rest > 0) seconds += rest * per_block / cost.speed[static_cast<std::size_t>(rest) - 1] + start;
  return seconds;
}

// Each operand moved once.
inline double memory_seconds(const Problem& problem, const Device& device) {
  const auto [m, n, k] = problem.shape;
  const auto bytes = [&](std::int64_t rows, std::int64_t cols) {
    return 4.0 * static_cast<double>(rows) * static_cast<double>(cols) *
           static_cast<double>(problem.batch);
  };
  const double read = bytes(m, k) + bytes(k, n);
  const double written = bytes(m, n) * (problem.beta == 0.0F ? 1.0 : 2.0);
  return ((read > kL2Bytes ? 1.0 : kShareFromL2) * read / kReadBandwidth +
          written / kWriteBandwidth) *
         kFittedMultiprocessors / device.multiprocessors;
}

// Of kernels whose blocks are `groups`, one after another, and that write `partial_bytes` of partial
// sums for another kernel to add.
inline double predict(const Problem& problem, const Device& device, const BlockCost& cost,
                      int per_sm, bool vectors, std::initializer_list<Blocks> groups,
                      double partial_bytes, bool overlaps_previous) {
  double seconds = 0.0;
  for (const Blocks& blocks : groups) seconds += seconds_of(blocks, cost, per_sm, device);
  if (!vectors) seconds /= kNarrowSpeed;
  seconds = std::max(seconds, memory_seconds(problem, device));
  if (partial_bytes > 0) seconds += kPartialSeconds + 2 * partial_bytes / kPartialBandwidth;
  return seconds + (overlaps_previous ? 0.0 : kLaunchGap);
}

}  // namespace tilegate::cost
