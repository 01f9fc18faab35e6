// What is computed, all but the addresses and the values:
//
//   C ← alpha·op(A)·op(B) + beta·C, row-major float32: op(A) is M×K, op(B) is K×N, C is M×N,
//
// for each product of a batch. A problem has one text form, which benchmarks, tests, the counted
// kernels and the commands print and read.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <tilegate/status.hpp>

namespace tilegate {

// Extents of one product, in elements; each is >= 0.
struct Shape {
  std::int64_t m = 0;  // rows of op(A) and C
  std::int64_t n = 0;  // columns of op(B) and C
  std::int64_t k = 0;  // columns of op(A), rows of op(B)

  friend bool operator==(const Shape&, const Shape&) = default;
};

// What may be done to the operands on the way. Only Sgemm asks: every other stage is a choice of
// its own.
//
//   fp32        nothing: products and sums of float32.
//   fp32_split  they may be split into short parts for tensor cores, several times as fast where C
//               and K are large. Plan::rounding_chain() and Plan::operand_error() give the error
//               bound (see Choice). Where the operands turn out to be too wide for that to be as
//               accurate as FP32, or not finite, the device multiplies in FP32 after all, and says
//               so: Plan::decides_on_device(). Needs compute capability 7.5, and was timed on 9.0
//               alone; elsewhere, and where FP32 should be quicker, the plan is as with fp32.
//               Plan::configuration() names what was chosen.
enum class Math : std::uint8_t { fp32, fp32_split };

// How an operand is stored: as it is used, or transposed.
enum class Op : std::uint8_t { kN, kT };

// The operands, and the index of each in arrays of three.
enum class Operand : std::uint8_t { kA, kB, kC };
inline constexpr std::array kOperandNames = {"a", "b", "c"};

// An operand as it is stored.
struct Extent {
  std::int64_t rows, cols;
};

// Leading dimensions count elements from a row to the next. With `batch` products, stride_x counts
// elements from the x of one product to the x of the next; 0 shares an input. Inputs may overlap.
// Results may not: they lie one after another, or side by side in rows of C that hold all of them.
struct Problem {
  Shape shape;
  Op op_a = Op::kN, op_b = Op::kN;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  // Of A, B and C past a 256-byte boundary; multiples of 4. What matters is what they promise: a
  // pointer at 0, 16, 32, … is 16-byte aligned, at 8 it is 8-byte aligned, at 4 4-byte aligned.
  std::array<std::int64_t, 3> offset_bytes = {0, 0, 0};
  float alpha = 1.0F;  // 0: A and B are not read
  float beta = 0.0F;   // 0: C is not read
  Math math = Math::fp32;

  // Without padding, aligned, alpha 1 and beta 0.
  static Problem dense(const Shape& shape, Op op_a = Op::kN, Op op_b = Op::kN,
                       std::int64_t batch = 1);

  Extent extent(Operand operand) const;
  std::int64_t ld(Operand operand) const;
  std::int64_t stride(Operand operand) const;
  // Elements from the first to one past the last of the whole batch, which is not empty.
  std::int64_t span(Operand operand) const;
  bool reads_a_and_b() const { return alpha != 0.0F && shape.k != 0; }
  bool is_empty() const { return shape.m == 0 || shape.n == 0 || batch == 0; }

  // Ok, or which field is wrong: negative sizes, short leading dimensions, results of a batch that
  // overlap, extents past the address space, offsets that no float has.
  Status check() const;

  friend bool operator==(const Problem&, const Problem&) = default;
};

// True if every row of the operand consists of whole vectors: four elements, 16-byte aligned.
bool allows_vectors(const Problem& problem, Operand operand);

// What a tuned choice goes by: extents to the nearest power of two, the operands' forms, which of
// A, B and C allow vectors, and the size of a batch: "12x12x6/NT/vv-/b3" is about 4096×4096×64, C
// is without vectors, and there are about eight products.
std::string problem_class(const Problem& problem);

// What parse_problem reads, for messages.
inline constexpr std::string_view kProblemForm =
    "MxNxK[/<opA><opB>][/ld<lda>x<ldb>x<ldc>][/batch<count>[s<a>x<b>x<c>]]"
    "[/off<bytes>[x<bytes>x<bytes>]][/alpha<value>][/beta<value>][/split]";

// "1024x1024x1024/TN/ld1025x1027x1029/off4/beta0.5": each part only where it is not the default,
// which is that of Problem::dense. "/split" is Math::fp32_split.
std::string to_string(const Problem& problem);

// The inverse of to_string. Parts may be spelt out although they are the default, but not out of
// order. What is read is well-formed, not yet valid: Problem::check judges that.
Status parse_problem(std::string_view text, Problem* problem);

// "Warptile/1024x1024x1024": a problem of a stage, as benchmarks are called; of one of its
// configurations, "StreamK@128x256x8/1024x1024x1024".
struct NamedProblem {
  std::string stage;
  std::string configuration = {};  // empty: the stage's own choice
  Problem problem = {};
};
std::string to_string(const NamedProblem& named);
Status parse_named_problem(std::string_view text, NamedProblem* named);

}  // namespace tilegate
