// PreparedOperand: its products have the bits of Int8x3, and each wrong use is an error.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/prepared.hpp>
#include <tilegate/sgemm.hpp>

#include "int8x3/prepared_stage.hpp"
#include "int8x3/run.hpp"
#include "verifier/case.hpp"

namespace tilegate::int8x3 {
namespace {

class Int8Prepared : public SplitTest<stage> {};

const Stage* const kBoth[] = {&kPreparedA, &kPreparedB};

// Every configuration with a prepared operand: M and N of one tile and of more, K with a rest, all
// forms.
TEST_F(Int8Prepared, MatchesIntegerModel) {
  const std::pair<const Stage*, Problem> cases[] = {
      {&kPreparedA, Problem::dense({1, 140, 160}, Op::kN, Op::kT)},
      {&kPreparedB, Problem::dense({16, 70, 129})},
      {&kPreparedA, Problem::dense({9, 5, 1090}, Op::kT, Op::kN)},
      {&kPreparedB, Problem::dense({130, 9, 160}, Op::kT, Op::kT)}};
  for (auto [by, problem] : cases) {
    set_alpha_and_beta(problem);
    const Operation operation(problem);
    const std::vector<Candidate> all = by->candidates(problem, device::current());
    EXPECT_GE(all.size(), device::current().is_cuda ? 1U : 6U);
    for (const Candidate& candidate : all) {
      expect_model(*by, operation, 6, candidate.choice.configuration);
    }
  }
}

// Eight products, and ten, although the call is short; FP32 has the bits of Int8x3's.
TEST_F(Int8Prepared, DecidesAsInt8x3Does) {
  const auto each_100th = [](std::vector<float>& values, float value) {
    for (std::size_t i = 0; i < values.size(); i += 100) values[i] = value;
  };
  const struct {
    int decision;
    std::function<void(Operation&)> change;
  } cases[] = {
      {8, [&](Operation& o) { each_100th(o.a, 2.5F); }},
      {8, [&](Operation& o) { each_100th(o.b, 1.75F); }},
      {kNoDigits, [&](Operation& o) { each_100th(o.a, 1e6F), each_100th(o.b, 1e6F); }},
      {kNoDigits, [](Operation& o) { o.a[77] = 0x1p61F; }},
      {kNoDigits, [](Operation& o) { o.b[77] = std::numeric_limits<float>::infinity(); }},
      {kNoDigits, [](Operation& o) { o.b[77] = std::nanf(""); }},
  };
  const auto expect_same = [](const Operation& operation, const char* configuration, int decision) {
    const Result expected = run(stage, operation, configuration);
    EXPECT_EQ(expected.decision, decision);
    for (const Stage* by : kBoth) {
      const Result result = run(*by, operation, configuration);
      EXPECT_EQ(result.decision, decision) << by->name;
      expect_same_bits(result.c, expected.c);
    }
  };
  for (const auto& [decision, change] : cases) {
    Operation operation(Problem::dense({9, 8, 400}, Op::kN, Op::kT));
    for (float& x : operation.a) x = std::copysign(0.75F + x * x / 4.0F, x);
    change(operation);
    expect_same(operation, "128x64", decision);
  }
  if (device::current().is_cuda) return;
  // The kernels that split the two operands have groups of 16 rows and of 8.
  Operation operation(Problem::dense({9, 8, 1100}, Op::kN, Op::kT));
  each_100th(operation.a, 1.5F);
  expect_same(operation, "128x64warps", 8);
}

// More statistics than a block of copy_widths has threads, the last of a whole chunk.
TEST_F(Int8Prepared, DecidesByEachOfManyRows) {
  Operation rows(Problem::dense({3200, 1, 128}));
  rows.a.back() = 0x1p61F;
  EXPECT_EQ(run(kPreparedA, rows, "128x64").decision, kNoDigits);
  Operation cols(Problem::dense({1, 3200, 128}, Op::kN, Op::kT));
  cols.b.back() = 0x1p61F;
  EXPECT_EQ(run(kPreparedB, cols, "128x64").decision, kNoDigits);
}

// Ten products need no 90 µs, because the tails are prepared, too.
TEST_F(Int8Prepared, TakesTenProductsInSmallCalls) {
  for (const Op op : {Op::kN, Op::kT}) {
    Problem problem = Problem::dense({9, 140, 400}, op, op);
    set_alpha_and_beta(problem);
    Operation operation(problem);
    for (std::size_t i = 0; i < operation.a.size(); i += 100) operation.a[i] = 8.0F;
    for (std::size_t i = 0; i < operation.b.size(); i += 100) operation.b[i] = 8.0F;
    EXPECT_EQ(run(stage, operation, "128x64").decision, kNoDigits);
    for (const Stage* by : kBoth) expect_model(*by, operation, 10, "128x64");
  }
}

// So many statistics that they would overlap the tails if the workspace had less room for them.
TEST_F(Int8Prepared, HasRoomForTheStatisticsOfManyRows) {
  Operation operation(Problem::dense({9, 1500, 160}, Op::kN, Op::kT));
  for (std::size_t i = 0; i < operation.a.size(); i += 100) operation.a[i] = 8.0F;
  for (std::size_t i = 0; i < operation.b.size(); i += 100) operation.b[i] = 8.0F;
  expect_model(kPreparedB, operation, 10, "128x64");
}

// Digits take 3 bytes per element, tails one; a group of 8 rows or more has 16 bytes of statistics,
// and a row has a scale of 4.
TEST_F(Int8Prepared, NeedsNoMoreMemoryThanDigits) {
  const PreparedOperand weights(Problem::dense({1, 4096, 4096}), Operand::kB, device::current(),
                                false);
  const std::size_t elements = std::size_t{4096} * 4096;
  EXPECT_GE(weights.bytes(), 3 * elements);
  EXPECT_LE(weights.bytes(), 4 * elements + 4096 * 8);
}

// Padding, guards, alignment, scalars, in both orders of blocks and threads.
TEST_F(Int8Prepared, KeepsTheContractOfACall) {
  using verifier::Padded;
  const Problem problems[] = {
      Padded{.shape = {37, 45, 131}, .pad = {1, 2, 3}, .alpha = 1.1F, .beta = -0.7F},
      Padded{.shape = {20, 134, 200}, .offset_bytes = {4, 8, 12}, .op_b = Op::kT},
      Padded{.shape = {130, 12, 256}, .pad = {4, 4, 4}, .beta = 1.0F, .op_a = Op::kT}};
  for (const Problem& problem : problems) {
    for (const Stage* by : kBoth) {
      for (const int capability : {0, 80}) {  // 80: without warpgroups
        if (capability != 0 && (device::current().is_cuda || problem.op_b == Op::kT)) continue;
        const verifier::Verdict verdict =
            verifier::verify(*by, {.problem = problem, .compute_capability = capability});
        EXPECT_TRUE(verdict.ok) << verdict.report;
      }
    }
  }
}

// A prepared B with its operands on the device.
struct Weights {
  Operation operation;
  PreparedOperand prepared;
  DeviceArray<float> b;
  DeviceArray<std::int32_t> memory;

  explicit Weights(const Problem& problem, bool is_checked = false)
      : operation(problem),
        prepared(problem, Operand::kB, device::current(), is_checked),
        b(operation.b),
        memory(prepared.bytes() / sizeof(std::int32_t)) {
    EXPECT_TRUE(is_ok(prepare()));
  }
  Status prepare() {
    EXPECT_TRUE(is_ok(sgemm::stage.prepare()));
    return prepared.prepare(b.data(), memory.data(), prepared.bytes());
  }

  // The product with other rows of A.
  Status multiply(const Operation& of, const std::string& configuration, std::vector<float>* c) {
    const Plan plan = prepared.plan(of.problem, configuration);
    EXPECT_TRUE(is_ok(plan.status()));
    const DeviceArray<float> a(of.a), on_device(of.c);
    const DeviceArray<std::int32_t> workspace(plan.workspace_bytes() / sizeof(std::int32_t) + 1);
    Status status = plan.launch({.a = a.data(),
                                 .b = b.data(),
                                 .c = on_device.data(),
                                 .workspace = workspace.data(),
                                 .workspace_bytes = plan.workspace_bytes()});
    if (status.ok()) status = device::synchronize();
    if (status.ok()) *c = on_device.to_host();
    return status;
  }
};

TEST_F(Int8Prepared, ServesAnyNumberOfRows) {
  Weights weights(Problem::dense({1, 72, 260}, Op::kN, Op::kT));
  for (const std::int64_t m : {1, 2, 64, 129}) {
    for (const char* configuration : {"128x64", "128x128streamk"}) {
      Problem problem = Problem::dense({m, 72, 260}, Op::kN, Op::kT);
      if (m == 2) problem.ldc = 80;
      problem.alpha = static_cast<float>(m);
      Operation operation(problem);
      operation.b = weights.operation.b;
      for (float& x : operation.a) x *= static_cast<float>(m + 1);
      std::vector<float> c;
      EXPECT_TRUE(is_ok(weights.multiply(operation, "Prepared:" + std::string(configuration), &c)));
      expect_same_bits(c, run(stage, operation, configuration).c);
    }
  }
}

TEST_F(Int8Prepared, TakesTheFasterOfDigitsAndFp32) {
  Device h200 = device::current();
  h200.is_cuda = true;
  h200.name = "NVIDIA H200";
  h200.compute_capability = 90;
  h200.multiprocessors = 132;
  const Problem problem = Problem::dense({1, 2048, 512});
  PreparedOperand weights(problem, Operand::kB, h200);
  const DeviceArray<float> b(2048 * 512);
  const DeviceArray<std::int32_t> memory(weights.bytes() / sizeof(std::int32_t));
  EXPECT_TRUE(is_ok(sgemm::stage.prepare()));
  EXPECT_TRUE(is_ok(weights.prepare(b.data(), memory.data(), weights.bytes())));
  EXPECT_EQ(weights.plan(problem).configuration(),
            sgemm::stage.plan(problem, h200).configuration());
  EXPECT_EQ(weights.plan(Problem::dense({256, 2048, 512})).configuration(), "Prepared:128x64");
}

TEST_F(Int8Prepared, IsOfNoUseForSmallK) {
  PreparedOperand weights(Problem::dense({3, 5, 127}), Operand::kB);
  EXPECT_EQ(weights.bytes(), 0U);
  EXPECT_TRUE(is_ok(weights.prepare(nullptr, nullptr, 0)));
  const Plan plan = weights.plan(Problem::dense({3, 5, 127}));
  EXPECT_TRUE(is_ok(plan.status()));
  EXPECT_FALSE(plan.decides_on_device());
}

TEST_F(Int8Prepared, PlansEmptyProductsAndThoseThatReadNothing) {
  const Weights weights(Problem::dense({1, 72, 260}));
  Problem problem = Problem::dense({4, 72, 260});
  problem.alpha = 0.0F;
  EXPECT_TRUE(is_ok(weights.prepared.plan(problem).status()));
  problem.shape.m = 0;
  EXPECT_TRUE(is_ok(weights.prepared.plan(problem).launch({})));
}

void expect_error(const Status& status, Status::Code code, const std::string& message) {
  EXPECT_EQ(status.code(), code);
  EXPECT_EQ(status.message(), message);
}

constexpr auto kInvalid = Status::Code::kInvalidArgument, kUnsupported = Status::Code::kUnsupported;

TEST_F(Int8Prepared, RefusesWrongDescriptions) {
  const Problem problem = Problem::dense({4, 72, 260});
  expect_error(PreparedOperand().status(), kInvalid, "operand: this PreparedOperand is empty");
  PreparedOperand empty;
  expect_error(empty.prepare(nullptr, nullptr, 0), kInvalid, empty.status().message());
  expect_error(empty.plan(problem).status(), kInvalid, empty.status().message());
  expect_error(PreparedOperand(problem, Operand::kC).status(), kInvalid,
               "operand is neither A nor B");
  expect_error(
      PreparedOperand(Problem::dense({4, 72, 260}, Op::kN, Op::kN, 2), Operand::kB).status(),
      kUnsupported, "prepared operands have no batch");
  Problem short_rows = problem;
  short_rows.ldb = 71;
  EXPECT_EQ(PreparedOperand(short_rows, Operand::kB).status().argument(), "ldb");
}

TEST_F(Int8Prepared, RefusesWrongMemory) {
  Weights weights(Problem::dense({4, 72, 260}));
  const std::size_t bytes = weights.prepared.bytes();
  const float* const b = weights.b.data();
  std::int32_t* const memory = weights.memory.data();
  expect_error(weights.prepared.prepare(nullptr, memory, bytes), kInvalid, "b is a null pointer");
  EXPECT_EQ(weights.prepared.prepare(b + 1, memory, bytes).argument(), "b");
  expect_error(weights.prepared.prepare(b, nullptr, bytes), kInvalid, "memory is a null pointer");
  expect_error(weights.prepared.prepare(b, memory, bytes - 1), kInvalid,
               "memory of " + std::to_string(bytes - 1) + " bytes; the operand needs " +
                   std::to_string(bytes));
  expect_error(weights.prepared.prepare(reinterpret_cast<const float*>(memory), memory, bytes),
               kInvalid, "memory overlaps b");
  expect_error(weights.prepared.prepare(b, memory + 1, bytes), kInvalid,
               "memory is not 16-byte aligned");
}

// Such as memory that was freed since.
TEST_F(Int8Prepared, IgnoresAWorkspaceThatItDoesNotNeed) {
  const Problem problem = Problem::dense({1, 72, 260});
  const Weights weights(problem);
  const Plan plan = weights.prepared.plan(problem, {}, 0);
  ASSERT_TRUE(is_ok(plan.status()));
  ASSERT_EQ(plan.workspace_bytes(), 0U);
  const DeviceArray<float> a(random_values(problem.span(Operand::kA), 1)),
      c(random_values(problem.span(Operand::kC), 3));
  EXPECT_TRUE(is_ok(plan.launch({.a = a.data(),
                                 .b = weights.b.data(),
                                 .c = c.data(),
                                 .workspace = weights.memory.data() + 4})));
}

TEST_F(Int8Prepared, RefusesOtherOperands) {
  const Problem problem = Problem::dense({4, 72, 260});
  expect_error(PreparedOperand(problem, Operand::kB).plan(problem).status(), kInvalid,
               "b has not been prepared");
  const Weights weights(problem);
  const auto plan = [&](const Problem& other) { return weights.prepared.plan(other).status(); };
  expect_error(plan(Problem::dense({4, 70, 260})), kInvalid,
               "b is 260x70, ld 70; prepared was 260x72, ld 72");
  EXPECT_EQ(plan(Problem::dense({4, 72, 256})).argument(), "b");
  expect_error(plan(Problem::dense({4, 72, 260}, Op::kN, Op::kT)), kInvalid,
               "b is 72x260, ld 260, transposed; prepared was 260x72, ld 72");
  Problem longer = problem;
  longer.ldb = 73;
  EXPECT_EQ(plan(longer).argument(), "b");
  expect_error(plan(Problem::dense({4, 72, 260}, Op::kN, Op::kN, 2)), kUnsupported,
               "prepared operands have no batch");
  Problem wrong = problem;
  wrong.lda = 259;
  EXPECT_EQ(plan(wrong).argument(), "lda");
  expect_error(weights.prepared.plan(problem, "Prepared:1x1").status(), kUnsupported,
               "PreparedOperand has no configuration 'Prepared:1x1' for this problem");
}

TEST_F(Int8Prepared, KeepsToItsDevice) {
  const Problem problem = Problem::dense({4, 72, 260});
  Device other = device::current();
  ++other.ordinal;
  PreparedOperand weights(problem, Operand::kB, other);
  const std::string current = std::to_string(device::current().ordinal);
  expect_error(weights.prepare(nullptr, nullptr, 0), kUnsupported,
               "prepared for device " + std::to_string(other.ordinal) + ", and device " + current +
                   " is current");
}

TEST_F(Int8Prepared, ObeysWorkspaceLimits) {
  const Problem problem = Problem::dense({64, 72, 260});
  const Weights weights(problem);
  const std::string name = "Prepared:128x64";
  const std::size_t bytes = weights.prepared.plan(problem, name).workspace_bytes();
  EXPECT_GT(bytes, 0U);
  EXPECT_TRUE(is_ok(weights.prepared.plan(problem, name, bytes).status()));
  EXPECT_EQ(weights.prepared.plan(problem, name, bytes - 1).status().code(), kUnsupported);
  const Plan plan = weights.prepared.plan(problem, {}, 0);
  EXPECT_TRUE(is_ok(plan.status()));
  EXPECT_EQ(plan.workspace_bytes(), 0U);
}

#if TILEGATE_ON_SIMT  // on a GPU no later test could run
// In products of digits, and in FP32, which would be right.
TEST_F(Int8Prepared, FindsAnOperandThatHasChanged) {
  for (const Problem& problem : {Problem::dense({4, 72, 260}), Problem::dense({4, 300, 512})}) {
    Weights weights(problem, true);
    const Operation& operation = weights.operation;
    const std::string in_fp32 = sgemm::stage.plan(problem).configuration();
    std::vector<float> c;
    for (const std::int64_t at : {std::int64_t{0}, problem.span(Operand::kB) - 1}) {
      for (const std::string& configuration : {std::string("Prepared:128x64"), in_fp32}) {
        EXPECT_TRUE(is_ok(weights.multiply(operation, configuration, &c)));
        weights.b.data()[at] += 0.5F;
        const Status status = weights.multiply(operation, configuration, &c);
        EXPECT_EQ(status.code(), Status::Code::kDeviceError);
        EXPECT_NE(status.message().find("an operand has changed since PreparedOperand::prepare"),
                  std::string::npos)
            << status.message();
        EXPECT_TRUE(is_ok(weights.prepare()));
      }
    }
  }
}
#endif

}  // namespace
}  // namespace tilegate::int8x3
