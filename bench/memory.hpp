// The device memory of a benchmark.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/stage.hpp>

#include "shapes.hpp"
#include "verifier/oracle.hpp"

namespace tilegate::bench {

// Equal copies of one operand, each at the problem's offset from a 256-byte boundary.
class Matrices {
 public:
  Matrices() = default;
  Matrices(const Problem& problem, Operand operand, int copies);

  float* copy(int index) const;
  std::int64_t elements() const { return elements_; }  // per copy, with padding
  const device::Buffer& buffer() const { return buffer_; }

 private:
  std::int64_t elements_ = 0;
  std::size_t offset_bytes_ = 0;
  std::size_t stride_bytes_ = 0;
  device::Buffer buffer_;
};

// A and B, shared by rung and yardstick, and a C and a workspace for each of the two.
class Memory {
 public:
  // `yardstick` may be null.
  Memory(const Problem& problem, const Plan& rung, const Plan* yardstick, int copies);

  // One call per copy.
  std::span<const Operands> rung() const { return rung_; }
  std::span<const Operands> yardstick() const { return yardstick_; }

  // Enqueues writing every copy of A and B.
  void fill(verifier::Inputs inputs, std::uint64_t seed) const;

  // Enqueues filling every copy of the rung's C before a verified launch: with inputs if C is read,
  // otherwise with NaN.
  void reset_result(verifier::Inputs inputs, std::uint64_t seed) const;

 private:
  std::vector<Operands> calls(const Matrices& c, const device::Buffer& workspace) const;

  int copies_;
  bool reads_c_;
  Matrices a_, b_, rung_c_, yardstick_c_;
  device::Buffer rung_workspace_, yardstick_workspace_;
  std::vector<Operands> rung_, yardstick_;
};

// How many copies of the problem's operands exceed `cache_bytes` several times; at least 2.
int copies_to_outrun(std::size_t cache_bytes, const Problem& problem);

}  // namespace tilegate::bench
