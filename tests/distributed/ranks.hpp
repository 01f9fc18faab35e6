// Runs a product over P ranks as threads: splits whole operands into shards and reassembles C.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>
#include <tilegate/distributed/sgemm.hpp>

#include "distributed/group.hpp"
#include "skips.hpp"
#include "verifier/case.hpp"
#include "verifier/guarded_matrix.hpp"

namespace tilegate::distributed {

// Longer than any wait in a passing test.
constexpr std::chrono::seconds kPatience{60};

constexpr Form kForms[] = {Form::kColumnParallel, Form::kRowParallel};
constexpr Schedule kSchedules[] = {Schedule::kOverlapped, Schedule::kInTurn};

struct Layout {
  Form form = Form::kColumnParallel;
  int ranks = 1;
  Schedule schedule = Schedule::kFaster;
  bool same_bits = false;
  std::uint64_t seed = 0;   // of uneven shards; 0: even ones
  int multiprocessors = 0;  // 0: the device's
  bool is_older = false;    // plan as for a GPU of compute capability 8.0; on the executor only
};

inline std::string name_of(const Layout& layout) {
  return std::string(layout.form == Form::kColumnParallel ? "column" : "row") + "-parallel, " +
         std::to_string(layout.ranks) + " ranks, " +
         (layout.schedule == Schedule::kOverlapped ? "overlapped"
          : layout.schedule == Schedule::kInTurn   ? "in turn"
                                                   : "faster") +
         ", seed " + std::to_string(layout.seed);
}

// Random sizes for all ranks; some are 0.
inline std::vector<std::int64_t> uneven(std::int64_t extent, int ranks, std::mt19937_64& random) {
  std::vector<std::int64_t> cuts{0, extent};
  for (int i = 1; i < ranks; ++i) {
    cuts.push_back(std::uniform_int_distribution<std::int64_t>(0, extent)(random));
  }
  std::ranges::sort(cuts);
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 1; i < cuts.size(); ++i) sizes.push_back(cuts[i] - cuts[i - 1]);
  return sizes;
}

// The distributed problem of `whole`, with dense shards.
inline DistributedProblem distributed(const Layout& layout, const Problem& whole) {
  DistributedProblem problem =
      DistributedProblem::even(layout.form, whole.shape, layout.ranks, /*rank=*/0);
  std::mt19937_64 random(layout.seed);
  if (layout.seed != 0) {
    problem.rows = uneven(whole.shape.m, layout.ranks, random);
    const bool by_columns = layout.form == Form::kColumnParallel;
    problem.parts = uneven(by_columns ? whole.shape.n : whole.shape.k, layout.ranks, random);
  }
  problem.alpha = whole.alpha;
  problem.beta = whole.beta;
  problem.math = whole.math;
  problem.same_bits = layout.same_bits;
  problem.schedule = layout.schedule;
  problem.op_a = whole.op_a;
  problem.op_b = whole.op_b;
  return problem;
}

// A rank's part of an operand, stored with the operand's form, padding and offset.
class Shard {
 public:
  // Rows and columns of op(operand).
  Shard(const Problem& whole, Operand operand, std::int64_t first_row, std::int64_t rows,
        std::int64_t first_col, std::int64_t cols)
      : is_transposed_((operand == Operand::kA   ? whole.op_a
                        : operand == Operand::kB ? whole.op_b
                                                 : Op::kN) == Op::kT),
        first_row_(first_row),
        first_col_(first_col),
        rows_(rows),
        cols_(cols),
        whole_ld_(whole.ld(operand)) {
    const std::int64_t padding =
        std::clamp<std::int64_t>(whole_ld_ - whole.extent(operand).cols, 0, 16);
    ld_ = (is_transposed_ ? rows : cols) + padding;
    offset_ = whole.offset_bytes[static_cast<std::size_t>(operand)];
    image_.resize(
        static_cast<std::size_t>(ld_ * (is_transposed_ ? cols : rows)),
        operand == Operand::kC ? verifier::kSentinel : std::numeric_limits<float>::quiet_NaN());
    buffer_ = device::Buffer(static_cast<std::size_t>(offset_) + bytes());
  }

  float* data() const { return reinterpret_cast<float*>(buffer_.data() + offset_); }
  std::int64_t ld() const { return ld_; }
  std::int64_t offset() const { return offset_; }
  std::size_t bytes() const { return image_.size() * sizeof(float); }

  Status copy_from(const std::vector<float>& whole) {
    for_each([&](float& element, std::size_t at) { element = whole[at]; });
    return device::copy_to_device(data(), image_.data(), bytes());
  }
  Status copy_to(std::vector<float>& whole) {
    Status status = device::copy_to_host(image_.data(), data(), bytes());
    for_each([&](float& element, std::size_t at) { whole[at] = element; });
    return status;
  }
  // Checks the padding of C after C was copied to the whole.
  bool padding_is_untouched() {
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (std::int64_t col = cols_; col < ld_; ++col) {
        if (at(row, col) != verifier::kSentinel) return false;
      }
    }
    return true;
  }

 private:
  template <typename Visit>
  void for_each(Visit visit) {
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (std::int64_t col = 0; col < cols_; ++col) {
        const std::int64_t of_row = first_row_ + row, of_col = first_col_ + col;
        visit(is_transposed_ ? at(col, row) : at(row, col),
              static_cast<std::size_t>(is_transposed_ ? of_col * whole_ld_ + of_row
                                                      : of_row * whole_ld_ + of_col));
      }
    }
  }
  // Element of the stored matrix.
  float& at(std::int64_t row, std::int64_t col) {
    return image_[static_cast<std::size_t>(row * ld_ + col)];
  }

  bool is_transposed_;
  std::int64_t first_row_, first_col_, rows_, cols_, whole_ld_;
  std::int64_t ld_ = 0, offset_ = 0;
  std::vector<float> image_;  // on the host
  device::Buffer buffer_;
};

// The shards of a rank, and its memory for the launch.
struct Rank {
  DistributedProblem problem;
  Shard a, b, c;

  static Rank make(const DistributedProblem& shared, const Problem& whole, int rank) {
    const auto size_of = [&](const std::vector<std::int64_t>& sizes) {
      return sizes[static_cast<std::size_t>(rank)];
    };
    const auto first_of = [&](const std::vector<std::int64_t>& sizes) {
      std::int64_t first = 0;
      for (int i = 0; i < rank; ++i) first += sizes[static_cast<std::size_t>(i)];
      return first;
    };
    const std::int64_t row = first_of(shared.rows), rows = size_of(shared.rows);
    const std::int64_t part = first_of(shared.parts), parts = size_of(shared.parts);
    const auto [m, n, k] = whole.shape;
    Rank made = shared.form == Form::kColumnParallel
                    ? Rank{shared, Shard(whole, Operand::kA, row, rows, 0, k),
                           Shard(whole, Operand::kB, 0, k, part, parts),
                           Shard(whole, Operand::kC, 0, m, part, parts)}
                    : Rank{shared, Shard(whole, Operand::kA, 0, m, part, parts),
                           Shard(whole, Operand::kB, part, parts, 0, n),
                           Shard(whole, Operand::kC, row, rows, 0, n)};
    made.problem.lda = made.a.ld();
    made.problem.ldb = made.b.ld();
    made.problem.ldc = made.c.ld();
    made.problem.offset_bytes = {made.a.offset(), made.b.offset(), made.c.offset()};
    return made;
  }

  Operands operands() const { return {.a = a.data(), .b = b.data(), .c = c.data()}; }
};

// Skipped where there are not enough GPUs.
class OverRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (most_ranks() >= 2) return;
    RecordProperty(kNotOnThisDevice, "needs two GPUs");
    GTEST_SKIP() << "needs two GPUs";
  }
};

// Wraps a rank's transport to plant faults; may be null.
using Wrap = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;

// Whole operands in host memory, in the problem's layout.
struct Whole {
  Problem problem;
  std::vector<float> a = {}, b = {}, c = {};
};

inline Whole random_whole(const Problem& problem, verifier::Inputs inputs, std::uint64_t seed) {
  Whole whole{.problem = problem};
  for (const auto& [operand, elements] :
       {std::pair{Operand::kA, &whole.a}, std::pair{Operand::kB, &whole.b},
        std::pair{Operand::kC, &whole.c}}) {
    elements->resize(static_cast<std::size_t>(problem.span(operand)));
    ++seed;
    for (std::size_t i = 0; i < elements->size(); ++i) {
      (*elements)[i] = verifier::input_value(inputs, seed, i);
    }
  }
  return whole;
}

// Runs one rank of multiply().
inline Status multiply_on(Transport& transport, const DistributedProblem& shared, Whole& whole,
                          const Layout& layout = {}) {
  Rank rank = Rank::make(shared, whole.problem, transport.rank());
  Status status = rank.c.copy_from(whole.c);
  if (whole.problem.reads_a_and_b()) {
    if (status.ok()) status = rank.a.copy_from(whole.a);
    if (status.ok()) status = rank.b.copy_from(whole.b);
  }
  // Neighbouring ranks run blocks and threads in opposite orders.
  verifier::set_order(transport.rank() % 2 == 0 ? verifier::Order::kForward
                                                : verifier::Order::kReverse);
  Device device = device::current();
  if (layout.multiprocessors > 0) device.multiprocessors = layout.multiprocessors;
  if (layout.is_older) {
    device.is_cuda = true;
    device.compute_capability = 80;
  }
  DistributedSgemm sgemm(transport, rank.problem, device);
  if (status.ok()) status = sgemm.launch(rank.operands());
  if (status.ok()) status = sgemm.finish(rank.operands());
  if (status.ok()) status = transport.synchronize(nullptr);
  if (status.ok()) status = rank.c.copy_to(whole.c);
  if (!status.ok() || rank.c.padding_is_untouched()) return status;
  return Status::device_error("rank " + std::to_string(transport.rank()) +
                              " wrote between rows of C");
}

// C ← alpha·op(A)·op(B) + beta·C over ranks; returns the first error of a rank.
inline Status multiply(const Layout& layout, Whole& whole, const Wrap& wrap = nullptr) {
  const DistributedProblem shared = distributed(layout, whole.problem);
  Group group(layout.ranks, kPatience);
  std::vector<Status> statuses(static_cast<std::size_t>(layout.ranks));
  for_each_rank(layout.ranks, [&](int rank) {
    std::unique_ptr<Transport> transport = group.join(rank);
    if (wrap) transport = wrap(std::move(transport));
    statuses[static_cast<std::size_t>(rank)] = multiply_on(*transport, shared, whole, layout);
  });
  for (const Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace tilegate::distributed
