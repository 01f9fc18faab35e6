// Plans for the plain FP32 product.
#pragma once

#include <cmath>
#include <cstdint>

#include <tilegate/common/plain_product.cuh>
#include <tilegate/common/tile_order.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

inline bool is_along_k(const Problem& problem, Operand operand) {
  return operand == Operand::kA ? problem.op_a == Op::kN : problem.op_b == Op::kT;
}

inline Fp32Args fp32_args(const Problem& problem) {
  const TileOrder order(problem.shape, kFp32Rows, kFp32Cols);
  const std::int64_t wide_tiles = TileOrder(problem.shape, kFp32Rows, 2 * kFp32Cols).count;
  const bool is_short =
      problem.shape.k <= kFp32ShortK && problem.batch * wide_tiles < kFp32FewTiles;
  return {is_along_k(problem, Operand::kA), is_along_k(problem, Operand::kB),
          is_short ? kFp32ShortRun : kFp32Run, order};
}

// `overlaps`: with the kernel before, which compute capability 9.0 can.
inline Candidate plain_candidate(const Problem& problem, bool overlaps = true) {
  constexpr double kFlopPerSecond = 30e12, kMultiprocessors = 132.0;  // of an NVIDIA H200
  const Fp32Args more = fp32_args(problem);
  const double rounds =
      std::ceil(static_cast<double>(problem.batch * more.order.count) / kMultiprocessors);
  const double flop = 2.0 * kFp32Rows * kFp32Cols * static_cast<double>(problem.shape.k);
  return {{.configuration = "fp32",
           .rounding_chain = fp32_rounding_chain(problem.shape.k, more.run),
           .enqueue =
               [more, overlaps](const KernelArgs& args, Stream stream) {
                 return device::launch({.kernel = "plain product",
                                        .blocks = args.batch * more.order.count,
                                        .threads_x = kFp32Threads,
                                        .shared_bytes = sizeof(Fp32Storage),
                                        .overlaps_previous = overlaps},
                                       stream, plain, args, more);
               }},
          rounds * flop * kMultiprocessors / kFlopPerSecond + 4e-6};
}

}  // namespace tilegate
