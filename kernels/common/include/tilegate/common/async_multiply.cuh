// The kernel that AsyncCopy and Packed share: a block's part of a tile, from the operands to C.
#pragma once

#include <cstdint>

#include <tilegate/common/async_config.cuh>
#include <tilegate/common/async_loop.cuh>
#include <tilegate/common/k_split.cuh>
#include <tilegate/common/tile_results.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

template <typename Config>
__device__ __forceinline__ void multiply_part(const KernelArgs& args, const KSplit& split) {
  const KSplit::Part part = split.part(blockIdx.x, args.workspace);
  const std::int64_t k = std::int64_t{part.first_k_tile} * Config::kBlockK;
  const std::int64_t k_end = k + std::int64_t{part.k_tiles} * Config::kBlockK;
  const auto k_left = static_cast<int>((k_end < args.shape.k ? k_end : args.shape.k) - k);
  const auto at = Config::position();

  device::wait_for_previous_kernel();  // which may still write A, B and C
  device::let_next_kernel_start();

  const CopierA<Config> a(args.a + part.product * args.stride_a, args.lda, args.shape.m, part.row, k, k_left);
  const CopierB<Config> b(args.b + part.product * args.stride_b, args.ldb, args.shape.n, part.col, k, k_left);
  RingWriter<Config> writer(a, b);
  fill_ring(writer);
  float acc[Config::kFragmentM][Config::kFragmentN]{};
  multiply_tiles<Config>(writer, part.k_tiles, at, acc);

  stage_results<Config>(at, acc);
  KernelArgs target = args;
  if (part.partial != nullptr) {  // all of the tile, whatever of it belongs to C
    target.alpha = 1.0F;
    target.beta = 0.0F;
    target.c = part.partial;
    target.ldc = Config::kBlockN;
    target.shape = {Config::kBlockM, Config::kBlockN, 0};
    store_results<Config>(target, 0, 0, true);
  } else {
    target.c += part.product * args.stride_c + part.row * args.ldc + part.col;
    target.shape.m -= part.row;
    target.shape.n -= part.col;
    store_results<Config>(target, part.own_row, part.own_col, split.vectors);
  }
}

}  // namespace tilegate
