#include "memory.hpp"

#include <algorithm>

#include "errors.hpp"
#include "platform.hpp"

namespace tilegate::bench {
namespace {

constexpr std::size_t kAlignment = 256;  // bytes, as device::Buffer
constexpr std::size_t kTimesCache = 4;   // all copies of a cold benchmark, in cache sizes
// More copies would take seconds to prepare and verify. With this limit, problems of less than
// about 40×40×40 do not exceed the L2 cache of the largest GPUs.
constexpr std::size_t kMaxCopies = 1U << 12;

std::size_t round_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Matrices::Matrices(const Problem& problem, Operand operand, int copies)
    : elements_(problem.span(operand)),
      offset_bytes_(
          static_cast<std::size_t>(problem.offset_bytes[static_cast<std::size_t>(operand)])),
      stride_bytes_(round_up(offset_bytes_ + static_cast<std::size_t>(elements_) * sizeof(float))),
      buffer_(stride_bytes_ * static_cast<std::size_t>(copies)) {}

float* Matrices::copy(int index) const {
  return reinterpret_cast<float*>(buffer_.data() + static_cast<std::size_t>(index) * stride_bytes_ +
                                  offset_bytes_);
}

Memory::Memory(const Problem& problem, const Plan& rung, const Plan* yardstick, int copies)
    : copies_(copies),
      reads_c_(problem.beta != 0.0F),
      a_(problem, Operand::kA, copies),
      b_(problem, Operand::kB, copies),
      rung_c_(problem, Operand::kC, copies),
      rung_workspace_(rung.workspace_bytes()),
      rung_(calls(rung_c_, rung_workspace_)) {
  if (yardstick == nullptr) return;
  yardstick_c_ = Matrices(problem, Operand::kC, copies);
  yardstick_workspace_ = device::Buffer(yardstick->workspace_bytes());
  yardstick_ = calls(yardstick_c_, yardstick_workspace_);
}

std::vector<Operands> Memory::calls(const Matrices& c, const device::Buffer& workspace) const {
  std::vector<Operands> calls;
  calls.reserve(static_cast<std::size_t>(copies_));
  for (int i = 0; i < copies_; ++i) {
    calls.push_back({.a = a_.copy(i),
                     .b = b_.copy(i),
                     .c = c.copy(i),
                     .workspace = workspace.data(),
                     .workspace_bytes = workspace.size()});
  }
  return calls;
}

void Memory::fill(verifier::Inputs inputs, std::uint64_t seed) const {
  for (int i = 0; i < copies_; ++i) {
    check(verifier::fill(a_.copy(i), a_.elements(), inputs, 3 * seed, stream()));
    check(verifier::fill(b_.copy(i), b_.elements(), inputs, 3 * seed + 1, stream()));
  }
}

void Memory::reset_result(verifier::Inputs inputs, std::uint64_t seed) const {
  if (!reads_c_) return poison(rung_c_.buffer());
  for (int i = 0; i < copies_; ++i) {
    check(verifier::fill(rung_c_.copy(i), rung_c_.elements(), inputs, 3 * seed + 2, stream()));
  }
}

int copies_to_outrun(std::size_t cache_bytes, const Problem& problem) {
  const Shape& shape = problem.shape;
  const auto elements =
      static_cast<std::size_t>(shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
  const std::size_t copies = kTimesCache * cache_bytes / (elements * sizeof(float)) + 1;
  return static_cast<int>(std::clamp<std::size_t>(copies, 2, kMaxCopies));
}

}  // namespace tilegate::bench
