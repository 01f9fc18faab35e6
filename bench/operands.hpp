// The device memory that a benchmark works on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tilegate/sgemm.hpp>
#include <tilegate/simt/device.hpp>

#include "shapes.hpp"
#include "verifier/oracle.hpp"

namespace tilegate::bench {

// Equal copies of one matrix, each at the problem's offset from a 256-byte boundary.
class Matrices {
 public:
  Matrices() = default;
  Matrices(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t offset_bytes,
           int copies);

  float* copy(int index) const;
  std::int64_t elements() const { return elements_; }  // of a copy, padding included
  const device::Buffer& buffer() const { return buffer_; }

 private:
  std::int64_t elements_ = 0;
  std::size_t offset_bytes_ = 0;
  std::size_t stride_bytes_ = 0;
  device::Buffer buffer_;
};

// A and B, which rung and yardstick share, and a C and a workspace for each of the two. alpha is 1
// and beta 0.
class Operands {
 public:
  // `yardstick` may be null.
  Operands(const Problem& problem, const Stage& rung, const Stage* yardstick, int copies);

  // One call a copy.
  std::span<const SgemmArgs> rung() const { return rung_; }
  std::span<const SgemmArgs> yardstick() const { return yardstick_; }

  // Enqueues writing every copy of A and B.
  void fill(verifier::Inputs inputs, std::uint64_t seed) const;

  // Enqueues NaN in every copy of the rung's C.
  void poison_result() const;

 private:
  std::vector<SgemmArgs> calls(const Problem& problem, const Stage& stage, const Matrices& c,
                               const device::Buffer& workspace) const;

  int copies_;
  Matrices a_, b_, rung_c_, yardstick_c_;
  device::Buffer rung_workspace_, yardstick_workspace_;
  std::vector<SgemmArgs> rung_, yardstick_;
};

// How many copies of the problem's operands are several times `cache_bytes` together; at least 2.
int copies_to_outrun(std::size_t cache_bytes, const Problem& problem);

}  // namespace tilegate::bench
