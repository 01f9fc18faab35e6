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

// Of `matrices` matrices of floats, without address, box and swizzle. The stride of one matrix is
// not used.
inline device::TensorLayout layout_of_matrices(std::int64_t cols, std::int64_t rows,
                                               std::int64_t ld, std::int64_t matrices,
                                               std::int64_t stride) {
  const auto bytes = [](std::int64_t words) {
    return static_cast<std::uint64_t>(words) * sizeof(float);
  };
  const auto size = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
  return {.dimensions = 3,
          .size = {size(cols), size(rows), size(matrices)},
          .stride_bytes = {0, bytes(ld), bytes(matrices > 1 ? stride : ld)}};
}

// Encodes the tensor map of an operand, with all matrices of the batch; one, if they share it.
inline Status make_operand_map(const Problem& problem, Operand operand, std::array<unsigned, 3> box,
                               device::Swizzle swizzle, device::TensorMap* map) {
  const Extent extent = problem.extent(operand);
  const std::int64_t stride = problem.stride(operand);
  constexpr std::uintptr_t kUnknown = 16;  // address, replaced in each call
  device::TensorLayout layout = layout_of_matrices(extent.cols, extent.rows, problem.ld(operand),
                                                   stride == 0 ? 1 : problem.batch, stride);
  layout.data = reinterpret_cast<void*>(kUnknown);
  layout.box = box;
  layout.swizzle = swizzle;
  return device::make_tensor_map(layout, map);
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
