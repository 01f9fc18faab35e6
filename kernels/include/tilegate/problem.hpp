// A GEMM problem without addresses and values:
//
//   C ← alpha·op(A)·op(B) + beta·C, row-major float32: op(A) is M×K, op(B) is K×N, C is M×N,
//
// for each product of a batch. Its text form is the same in benchmarks, tests and commands.
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

// Arithmetic. Only Sgemm reads it: every other stage has one arithmetic.
//
//   fp32        products and sums of float32.
//   fp32_split  operands may be split into low-precision planes for tensor cores, several times as
//               fast for large C and K. Plan::rounding_chain() and Plan::operand_error() give the
//               error bound (see Choice). Where parts would be less accurate than FP32, as for
//               operands of a wide dynamic range, or that are not finite, the device multiplies in
//               FP64 (compute capability 9.0) or FP32, and reports it: Plan::decides_on_device().
//               Needs compute capability 7.5, and was timed on 9.0 only; on other devices, and
//               where FP32 is expected to be faster, the plan is as with fp32.
//               Plan::configuration() names the choice.
enum class Math : std::uint8_t { fp32, fp32_split };

// Whether an operand is stored transposed.
enum class Op : std::uint8_t { kN, kT };

// The operands, and the index of each in arrays of three.
enum class Operand : std::uint8_t { kA, kB, kC };
inline constexpr std::array kOperandNames = {"a", "b", "c"};

// An operand as it is stored.
struct Extent {
  std::int64_t rows, cols;
};

// Leading dimensions and strides are in elements: from row to row, and from one product of the
// batch to the next. A stride of 0 shares an input. Inputs may overlap. Results may not: they are
// one after another, or interleaved by rows with an ldc that holds all of them.
struct Problem {
  Shape shape;
  Op op_a = Op::kN, op_b = Op::kN;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  // Offsets of A, B and C from a 256-byte boundary, in bytes; multiples of 4. They promise
  // alignment: with 0, 16, 32, … a pointer is 16-byte aligned, with 8 8-byte aligned, with 4 4-byte
  // aligned.
  std::array<std::int64_t, 3> offset_bytes = {0, 0, 0};
  float alpha = 1.0F;  // 0: A and B are not read
  float beta = 0.0F;   // 0: C is not read
  Math math = Math::fp32;

  // No padding, aligned, alpha 1, beta 0.
  static Problem dense(const Shape& shape, Op op_a = Op::kN, Op op_b = Op::kN,
                       std::int64_t batch = 1);

  Extent extent(Operand operand) const;
  std::int64_t ld(Operand operand) const;
  std::int64_t stride(Operand operand) const;
  // Elements from the first to one past the last, over the whole batch; the problem is not empty.
  std::int64_t span(Operand operand) const;
  bool reads_a_and_b() const { return alpha != 0.0F && shape.k != 0; }
  bool is_empty() const { return shape.m == 0 || shape.n == 0 || batch == 0; }

  // Ok, or the wrong field: negative sizes, short leading dimensions, overlapping results of a
  // batch, extents beyond the address space, offsets that are no multiple of 4.
  Status check() const;

  friend bool operator==(const Problem&, const Problem&) = default;
};

// Whether each row of the operand consists of aligned 16-byte vectors.
bool allows_vectors(const Problem& problem, Operand operand);

// Key of a tuned choice: log2 of the extents, rounded, op(A) and op(B), which of A, B and C allow
// vectors, and log2 of the batch: "12x12x6/NT/vv-/b3" is about 4096×4096×64, C allows no vectors,
// and there are about eight products.
std::string problem_class(const Problem& problem);

// The text form, for messages.
inline constexpr std::string_view kProblemForm =
    "MxNxK[/<opA><opB>][/ld<lda>x<ldb>x<ldc>][/batch<count>[s<a>x<b>x<c>]]"
    "[/off<bytes>[x<bytes>x<bytes>]][/alpha<value>][/beta<value>][/split]";

// "1024x1024x1024/TN/ld1025x1027x1029/off4/beta0.5": fields that differ from Problem::dense.
// "/split" is Math::fp32_split.
std::string to_string(const Problem& problem);

// The inverse of to_string. Fields may be given although they are the default, but in that order.
// The result is well-formed; Problem::check says whether it is valid.
Status parse_problem(std::string_view text, Problem* problem);

// The name of a benchmark: "Warptile/1024x1024x1024", a stage and a problem, or with a
// configuration "StreamK@128x256x8/1024x1024x1024".
struct NamedProblem {
  std::string stage;
  std::string configuration = {};  // empty: the stage's choice
  Problem problem = {};
};
std::string to_string(const NamedProblem& named);
Status parse_named_problem(std::string_view text, NamedProblem* named);

}  // namespace tilegate
