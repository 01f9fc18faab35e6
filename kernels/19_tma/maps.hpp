// Of which operands boxes can be copied, and their tensor maps. A call makes them from its
// pointers, on the CPU alone: neither memory nor the GPU has part in it.
#pragma once

#include <array>
#include <cstdint>

#include <tilegate/device/tensor_map.hpp>
#include <tilegate/stage.hpp>

#include "ring.cuh"

namespace tilegate::tma {

struct Maps {
  device::TensorMap a, b;
};

// Rows of op(A) or op(B) of all products; a row is `cols` wide.
inline Status make_map(const float* data, Extent extent, std::int64_t ld, std::int64_t stride,
                       std::int64_t batch, std::array<unsigned, 3> box, device::Swizzle swizzle,
                       device::TensorMap* map) {
  const bool is_shared = batch == 1 || stride == 0;
  const auto bytes = [](std::int64_t words) {
    return static_cast<std::uint64_t>(words) * sizeof(float);
  };
  const auto size = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
  return device::make_tensor_map(
      {.data = const_cast<float*>(data),
       .dimensions = 3,
       .size = {size(extent.cols), size(extent.rows), is_shared ? 1 : size(batch)},
       .stride_bytes = {0, bytes(ld), is_shared ? bytes(ld) : bytes(stride)},
       .box = box,
       .swizzle = swizzle},
      map);
}

// Without k nothing is copied, and A and B may be null.
template <typename Config>
Status make_maps(const KernelArgs& args, Maps* maps) {
  const auto [m, n, k] = args.shape;
  if (k == 0) return {};
  if (Status s = make_map(args.a, Extent{m, k}, args.lda, args.stride_a, args.batch,
                          {Config::kBlockK, Config::kBlockM, 1}, SharedStorage<Config>::kSwizzleOfA,
                          &maps->a);
      !s.ok()) {
    return s;
  }
  return make_map(args.b, Extent{k, n}, args.ldb, args.stride_b, args.batch,
                  {Config::kBlockN, Config::kBlockK, 1}, device::Swizzle::kNone, &maps->b);
}

// Whether there are boxes of the operand: see check() in device/tensor_map.cpp.
inline bool allows_boxes(const Problem& problem, Operand operand) {
  constexpr std::int64_t kMostWords = std::int64_t{1} << 38;  // from a row to the next
  const auto fits = [](std::int64_t words) { return words % 4 == 0 && words < kMostWords; };
  return problem.offset_bytes[static_cast<std::size_t>(operand)] % 16 == 0 &&
         fits(problem.ld(operand)) && (problem.batch == 1 || fits(problem.stride(operand)));
}

}  // namespace tilegate::tma
