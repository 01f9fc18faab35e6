// What other libraries may call: the GEMM alone, on digits that the caller has split, for
// kernels/distributed; and an operand whose digits are kept in memory of their own, for
// PreparedOperand.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <tilegate/stage.hpp>

namespace tilegate::int8x3 {

// Where the workspace has them: offsets in bytes, 256-byte aligned. Planes and steps as in
// layout.cuh.
struct GivenDigits {
  std::size_t planes_a = 0, steps_a = 0, planes_b = 0, steps_b = 0;
  std::size_t widths = 0;    // kNumWidths floats for op(A), then for op(B), which decide
  std::size_t partials = 0;  // of partial_bytes
  std::size_t flags = 0;     // of flag_bytes; zeros
};

struct GivenPlan {
  Status status = {};
  std::string configuration = {};
  double seconds = 0.0;
  std::size_t partial_bytes = 0, flag_bytes = 0;
  // Stores the decision in the first word of the workspace. Without digits C stays as it was.
  std::function<Status(const KernelArgs& args, const GivenDigits& given, Stream stream)> enqueue =
      {};
};

// One product, not empty; the fastest configuration. `summed`: see decide().
GivenPlan plan_given(const Problem& problem, float summed, const Device& device);

// One operand of a problem, for one device, and where its digits are. Of the problem, it is
// defined by K and by the operand's own extent, op, leading dimension and offset.
struct Prepared {
  Problem problem;
  Operand operand = Operand::kB;
  Device device;
  bool is_checked = false;  // keeps a checksum
  std::byte* memory = nullptr;

  // Of device memory, 16-byte aligned; 0 where Int8x3 would not split it.
  std::size_t bytes() const;
  Status enqueue(const float* from, Stream stream) const;
  // Compares the checksums, if it is checked. Where they differ, the device stops.
  Status enqueue_check(const float* from, Stream stream) const;
  // Configurations of a product with it. They need the floats of both operands, for FP64.
  std::vector<Candidate> candidates(const Problem& product) const;
};

}  // namespace tilegate::int8x3
