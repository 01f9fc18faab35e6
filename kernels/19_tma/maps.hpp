// Of which operands boxes can be copied, and their tensor maps. A plan makes them; a call sets the
// addresses in its copy, on the CPU alone: neither memory nor the GPU has part in it.
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

// Rows of op(A) or op(B) of all products.
inline Status make_map(const Problem& problem, Operand operand, std::array<unsigned, 3> box,
                       device::Swizzle swizzle, device::TensorMap* map) {
  const auto bytes = [](std::int64_t words) {
    return static_cast<std::uint64_t>(words) * sizeof(float);
  };
  const auto size = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
  const Extent extent = problem.extent(operand);
  const std::int64_t ld = problem.ld(operand), stride = problem.stride(operand);
  const bool is_shared = problem.batch == 1 || stride == 0;
  constexpr std::uintptr_t kUnknown = 16;  // the address; a call's takes its place
  return device::make_tensor_map(
      {.data = reinterpret_cast<void*>(kUnknown),
       .dimensions = 3,
       .size = {size(extent.cols), size(extent.rows), is_shared ? 1 : size(problem.batch)},
       .stride_bytes = {0, bytes(ld), is_shared ? bytes(ld) : bytes(stride)},
       .box = box,
       .swizzle = swizzle},
      map);
}

// Without k nothing is copied, and A and B may be null.
template <typename Config>
Status make_maps(const Problem& problem, Maps* maps) {
  if (problem.shape.k == 0) return {};
  if (Status s = make_map(problem, Operand::kA, {Config::kBlockK, Config::kBlockM, 1},
                          SharedStorage<Config>::kSwizzleOfA, &maps->a);
      !s.ok()) {
    return s;
  }
  return make_map(problem, Operand::kB, {Config::kBlockN, Config::kBlockK, 1},
                  device::Swizzle::kNone, &maps->b);
}

// Those of a plan, of a call's operands.
inline Status set_addresses(const KernelArgs& args, Maps* maps) {
  if (args.shape.k == 0) return {};
  if (Status s = device::set_tensor_data(const_cast<float*>(args.a), &maps->a); !s.ok()) return s;
  return device::set_tensor_data(const_cast<float*>(args.b), &maps->b);
}

// Whether there are boxes of the operand: see check() in device/tensor_map.cpp.
inline bool allows_boxes(const Problem& problem, Operand operand) {
  constexpr std::int64_t kMostWords = std::int64_t{1} << 38;  // from a row to the next
  const auto fits = [](std::int64_t words) { return words % 4 == 0 && words < kMostWords; };
  return problem.offset_bytes[static_cast<std::size_t>(operand)] % 16 == 0 &&
         fits(problem.ld(operand)) && (problem.batch == 1 || fits(problem.stride(operand)));
}

}  // namespace tilegate::tma
