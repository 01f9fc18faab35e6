// What a block with asynchronous copies does: its part of a tile, from the operands to C.
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
  auto& smem = device::shared_storage<typename Config::SharedStorage>();
  const auto at = Config::position();
  float acc[Config::kFragmentM][Config::kFragmentN]{};
  {
    const KSplit::Part part = split.part(blockIdx.x, args.workspace);
    if (threadIdx.x == 0) smem.part = part;
    const std::int64_t k = std::int64_t{part.first_k_tile} * Config::kBlockK;
    const std::int64_t k_end = k + std::int64_t{part.k_tiles} * Config::kBlockK;
    const auto k_left = static_cast<int>((k_end < args.shape.k ? k_end : args.shape.k) - k);

    device::wait_for_previous_kernel();  // which may still write A, B and C
    device::let_next_kernel_start();

    const CopierA<Config> a(args.a + part.product * args.stride_a, args.lda, args.shape.m, part.row,
                            k, k_left);
    const CopierB<Config> b(args.b + part.product * args.stride_b, args.ldb, args.shape.n, part.col,
                            k, k_left);
    RingWriter<Config> writer(a, b);
    fill_ring(writer);
    multiply_tiles<Config>(writer, part.k_tiles, at, acc);
  }
  stage_results<Config>(at, acc);

  const KSplit::Part& part = smem.part;
  if (part.partial != nullptr) {
    store_partial<Config>(part.partial);
  } else {
    KernelArgs target = args;
    target.c += part.product * args.stride_c + part.row * args.ldc + part.col;
    target.shape.m -= part.row;
    target.shape.n -= part.col;
    store_results<Config>(target, part.own_row, part.own_col, split.vectors);
  }
}

}  // namespace tilegate
