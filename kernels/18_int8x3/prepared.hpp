// Int8x3 with an operand whose digits are kept in memory of their own: for PreparedOperand.
#pragma once

#include <cstddef>
#include <vector>

#include <tilegate/stage.hpp>

namespace tilegate::int8x3 {

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
  // Configurations of a product with it. They need the floats of both operands, for FP32.
  std::vector<Candidate> candidates(const Problem& product) const;
};

}  // namespace tilegate::int8x3
