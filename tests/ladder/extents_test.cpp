// More than 2^31 rows or columns. On the CPU only the first and last blocks run, and the memory
// between the ends of the operands is never touched; on a GPU all blocks run.
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/catalogue.hpp>
#include <tilegate/device.hpp>

#include "ladder/case_list.hpp"
#include "ladder/memory_turn.hpp"
#include "ladder/stage_test.hpp"
#include "skips.hpp"

namespace tilegate::ladder {
namespace {

constexpr std::int64_t kLongExtent = (std::int64_t{1} << 31) + 1204;  // a multiple of 4
constexpr std::int64_t kEnd = 1024;  // rows or columns that are checked at each end
constexpr float kNeverStored = -77.0F;

// Without variants on a GPU, because the operands take gigabytes.
std::vector<const Stage*> stages_with_huge_extents() {
  std::vector<const Stage*> stages = catalogue_stages();
  if (!TILEGATE_ON_SIMT)
    std::erase_if(stages, [](const Stage* stage) { return is_variant(*stage); });
  return stages;
}

// Element (i, j) of an operand: an integer from 1 to 7.
float value_at(std::int64_t i, std::int64_t j) {
  return static_cast<float>((i * 3 + j * 5) % 7 + 1);
}

// An operand, of which only the first and last kEnd rows are used, or all if there are fewer; the
// same for columns.
class Ends {
 public:
  Ends(std::int64_t rows, std::int64_t cols, std::int64_t offset)
      : rows_(rows),
        cols_(cols),
        buffer_(static_cast<std::size_t>(rows * cols + offset) * sizeof(float)),
        data_(reinterpret_cast<float*>(buffer_.data()) + offset) {}

  float* data() const { return data_; }

  void fill(float (*value)(std::int64_t row, std::int64_t col)) const {
    for_each_run([&](std::int64_t row, std::int64_t col, std::vector<float>& run) {
      for (std::size_t i = 0; i < run.size(); ++i) {
        run[i] = value(row, col + static_cast<std::int64_t>(i));
      }
      ASSERT_TRUE(
          device::copy_to_device(at(row, col), run.data(), run.size() * sizeof(float)).ok());
    });
  }

  template <typename Visit>
  void read(Visit visit) const {
    for_each_run([&](std::int64_t row, std::int64_t col, std::vector<float>& run) {
      ASSERT_TRUE(device::copy_to_host(run.data(), at(row, col), run.size() * sizeof(float)).ok());
      for (std::size_t i = 0; i < run.size(); ++i) {
        visit(row, col + static_cast<std::int64_t>(i), run[i]);
      }
    });
  }

 private:
  float* at(std::int64_t row, std::int64_t col) const { return data_ + row * cols_ + col; }

  // Calls visit(row, first column, elements) for each part of a row that is used.
  template <typename Visit>
  void for_each_run(Visit visit) const {
    std::vector<float> run(static_cast<std::size_t>(cols_ > 2 * kEnd ? kEnd : cols_));
    for (std::int64_t row = 0; row < rows_; ++row) {
      if (row == kEnd && rows_ > 2 * kEnd) row = rows_ - kEnd;
      visit(row, 0, run);
      if (cols_ > 2 * kEnd) visit(row, cols_ - kEnd, run);
    }
  }

  std::int64_t rows_, cols_;
  device::Buffer buffer_;
  float* data_;
};

class HugeExtents : public testing::TestWithParam<const Stage*> {
 protected:
  void SetUp() override {
    if (const std::string why = record_cannot_run(stage()); !why.empty()) GTEST_SKIP() << why;
    if (device::current().is_cuda) turn_.emplace();
    ASSERT_TRUE(stage().prepare().ok());
  }

  const Stage& stage() const { return *GetParam(); }

  // `offset`: 0 for operands aligned for vectors, 1 for operands one element off.
  void expect_right(const Shape& shape, std::int64_t offset) try {
    Problem problem = Problem::dense(shape);
    if (const Status taken = stage().restrictions.check(problem); !taken.ok()) {
      GTEST_SKIP() << record_not_applicable(taken);
    }
    const std::int64_t bytes = offset * static_cast<std::int64_t>(sizeof(float));
    problem.offset_bytes = {bytes, bytes, bytes};
    const Plan plan = stage().plan(problem);
    if (plan.status().code() == Status::Code::kUnsupported) {  // the message must name a limit
      ASSERT_NE(plan.status().message().find(" above "), std::string::npos)
          << plan.status().message();
      return;
    }
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    if (TILEGATE_ON_SIMT && plan.workspace_bytes() > 0) {
      const char* why = "the executor runs a part of so large a grid, but kernels need all blocks";
      RecordProperty(kNotOnThisDevice, why);
      GTEST_SKIP() << why;
    }
    if (const std::string why = more_than_the_device_has(shape, plan); !why.empty()) {
      RecordProperty(kNotOnThisDevice, why);
      GTEST_SKIP() << why;
    }
    const device::Buffer workspace(plan.workspace_bytes());
    const Ends a(shape.m, shape.k, offset), b(shape.k, shape.n, offset),
        c(shape.m, shape.n, offset);
    a.fill(value_at);
    b.fill(value_at);
    c.fill([](std::int64_t, std::int64_t) { return kNeverStored; });
    verifier::set_order(verifier::Order::kEnds);
    const Status launched = plan.launch({.a = a.data(),
                                         .b = b.data(),
                                         .c = c.data(),
                                         .workspace = workspace.data(),
                                         .workspace_bytes = workspace.size()});
    const Status finished = device::synchronize();
    verifier::set_order(verifier::Order::kForward);
    if (verifier::blocks_run().run == 0.0) GTEST_SKIP() << launched.message();
    ASSERT_TRUE(launched.ok()) << launched.message();
    ASSERT_TRUE(finished.ok()) << finished.message();
    c.read([&](std::int64_t row, std::int64_t col, float found) {
      if (HasFailure()) return;  // report only the first wrong element
      const bool is_end = (row == 0 && col == 0) || (row == shape.m - 1 && col == shape.n - 1);
      if (TILEGATE_ON_SIMT && found == kNeverStored && !is_end) return;  // its block did not run
      float expected = 0.0F;
      for (std::int64_t k = 0; k < shape.k; ++k) expected += value_at(row, k) * value_at(k, col);
      ASSERT_EQ(found, expected) << "row " << row << ", column " << col;
    });
  } catch (const std::bad_alloc&) {
    if (!device::current().is_cuda) throw;
    GTEST_SKIP() << "other programs use the memory that it needs";
  }

 private:
  // Empty where the operands and the workspace fit in the memory of a GPU.
  static std::string more_than_the_device_has(const Shape& shape, const Plan& plan) {
    const std::int64_t elements = shape.m * shape.k + shape.k * shape.n + shape.m * shape.n;
    const std::size_t needed =
        static_cast<std::size_t>(elements) * sizeof(float) + plan.workspace_bytes();
    const std::size_t there = device::current().total_memory;
    if (!device::current().is_cuda || needed <= there) return {};
    return "needs " + std::to_string(needed) + " bytes of device memory, there are " +
           std::to_string(there);
  }

  std::optional<MemoryTurn> turn_;  // only on a GPU
};

TEST_P(HugeExtents, Rows) {
  for (const std::int64_t offset : {0, 1}) expect_right({kLongExtent, 4, 4}, offset);
}

TEST_P(HugeExtents, Columns) {
  for (const std::int64_t offset : {0, 1}) expect_right({4, kLongExtent, 4}, offset);
}

INSTANTIATE_TEST_SUITE_P(Ladder, HugeExtents, testing::ValuesIn(stages_with_huge_extents()),
                         name_stage);

}  // namespace
}  // namespace tilegate::ladder
