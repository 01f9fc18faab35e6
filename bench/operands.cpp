#include "operands.hpp"

#include <algorithm>

#include "errors.hpp"
#include "platform.hpp"

namespace tilegate::bench {
namespace {

constexpr std::size_t kAlignment = 256;  // bytes, as device::Buffer
constexpr std::size_t kTimesCache = 4;   // total of the copies of a cold benchmark
// Preparing and verifying more would take seconds. The price: problems of less than about 40×40×40
// do not outrun the L2 cache of the largest GPUs.
constexpr std::size_t kMaxCopies = 1U << 12;

std::size_t round_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Matrices::Matrices(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t offset_bytes,
                   int copies)
    : elements_((rows - 1) * ld + cols),
      offset_bytes_(static_cast<std::size_t>(offset_bytes)),
      stride_bytes_(round_up(offset_bytes_ + static_cast<std::size_t>(elements_) * sizeof(float))),
      buffer_(stride_bytes_ * static_cast<std::size_t>(copies)) {}

float* Matrices::copy(int index) const {
  return reinterpret_cast<float*>(buffer_.data() + static_cast<std::size_t>(index) * stride_bytes_ +
                                  offset_bytes_);
}

Operands::Operands(const Problem& problem, const Stage& rung, const Stage* yardstick, int copies)
    : copies_(copies) {
  const Shape& shape = problem.shape;
  const auto result = [&] {
    return Matrices(shape.m, shape.n, problem.ldc, problem.offset_bytes, copies);
  };
  a_ = Matrices(shape.m, shape.k, problem.lda, problem.offset_bytes, copies);
  b_ = Matrices(shape.k, shape.n, problem.ldb, problem.offset_bytes, copies);
  rung_c_ = result();
  rung_workspace_ = device::Buffer(rung.workspace_bytes(shape));
  rung_ = calls(problem, rung, rung_c_, rung_workspace_);
  if (yardstick == nullptr) return;
  yardstick_c_ = result();
  yardstick_workspace_ = device::Buffer(yardstick->workspace_bytes(shape));
  yardstick_ = calls(problem, *yardstick, yardstick_c_, yardstick_workspace_);
}

std::vector<SgemmArgs> Operands::calls(const Problem& problem, const Stage& stage,
                                       const Matrices& c, const device::Buffer& workspace) const {
  std::vector<SgemmArgs> calls;
  for (int i = 0; i < copies_; ++i) {
    calls.push_back({.shape = problem.shape,
                     .alpha = 1.0F,
                     .a = a_.copy(i),
                     .lda = problem.lda,
                     .b = b_.copy(i),
                     .ldb = problem.ldb,
                     .beta = 0.0F,
                     .c = c.copy(i),
                     .ldc = problem.ldc,
                     .workspace = workspace.data(),
                     .workspace_bytes = workspace.size()});
    check(stage.supports(calls.back()));
  }
  return calls;
}

void Operands::fill(verifier::Inputs inputs, std::uint64_t seed) const {
  for (int i = 0; i < copies_; ++i) {
    check(verifier::fill(a_.copy(i), a_.elements(), inputs, 2 * seed, stream()));
    check(verifier::fill(b_.copy(i), b_.elements(), inputs, 2 * seed + 1, stream()));
  }
}

void Operands::poison_result() const { poison(rung_c_.buffer()); }

int copies_to_outrun(std::size_t cache_bytes, const Problem& problem) {
  const Shape& shape = problem.shape;
  const auto elements =
      static_cast<std::size_t>(shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
  const std::size_t copies = kTimesCache * cache_bytes / (elements * sizeof(float)) + 1;
  return static_cast<int>(std::clamp<std::size_t>(copies, 2, kMaxCopies));
}

}  // namespace tilegate::bench
