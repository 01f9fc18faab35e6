// TMA tensor maps of the operands of a problem.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tilegate/device/tensor_map.hpp>
#include <tilegate/problem.hpp>
#include <tilegate/stage.hpp>
#include <tilegate/status.hpp>

namespace tilegate {

// Whether TMA can load the operand: see check() in device/tensor_map.cpp.
inline bool allows_boxes(const Problem& problem, Operand operand) {
  constexpr std::int64_t kMostWords = std::int64_t{1} << 38;  // stride limit
  const auto fits = [](std::int64_t words) { return words % 4 == 0 && words < kMostWords; };
  return problem.offset_bytes[static_cast<std::size_t>(operand)] % 16 == 0 &&
         fits(problem.ld(operand)) && (problem.batch == 1 || fits(problem.stride(operand)));
}

// Encodes the tensor map of an operand, with all matrices of the batch; one, if they share it.
inline Status make_operand_map(const Problem& problem, Operand operand, std::array<unsigned, 3> box,
                               device::Swizzle swizzle, device::TensorMap* map) {
  const auto bytes = [](std::int64_t words) {
    return static_cast<std::uint64_t>(words) * sizeof(float);
  };
  const auto size = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
  const Extent extent = problem.extent(operand);
  const std::int64_t ld = problem.ld(operand), stride = problem.stride(operand);
  const bool is_shared = problem.batch == 1 || stride == 0;
  constexpr std::uintptr_t kUnknown = 16;  // address, replaced in each call
  return device::make_tensor_map(
      {.data = reinterpret_cast<void*>(kUnknown),
       .dimensions = 3,
       .size = {size(extent.cols), size(extent.rows), is_shared ? 1 : size(problem.batch)},
       .stride_bytes = {0, bytes(ld), is_shared ? bytes(ld) : bytes(stride)},
       .box = box,
       .swizzle = swizzle},
      map);
}

// A plan encodes them; a call sets the addresses in its copy, on the host.
struct OperandMaps {
  device::TensorMap a, b;
};

// Sets the addresses of a call's operands.
inline Status set_addresses(const KernelArgs& args, OperandMaps* maps) {
  if (args.shape.k == 0) return {};
  if (Status s = device::set_tensor_data(const_cast<float*>(args.a), &maps->a); !s.ok()) return s;
  return device::set_tensor_data(const_cast<float*>(args.b), &maps->b);
}

}  // namespace tilegate
