// Kernels of fp32_split with same_bits, besides the GEMM of Int8x3: split, decision, exact sums.
// Rows of op(A) and columns of op(B) are both called rows. Ranks combine only integers, by sums,
// maxima and bitwise or, so the bits do not depend on the number of ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tilegate/device.hpp>
#include <tilegate/problem.hpp>
#include <tilegate/status.hpp>

namespace tilegate::distributed {

// Digits of an operand in the layout of Int8x3: chunks of 128 rows × 32 k, then a step per row.
std::size_t plane_bytes(std::int64_t rows, std::int64_t k);
std::size_t step_bytes(std::int64_t rows);

// The Choice::operand_error of digits.
double error_of_digits();

// Statistics of the magnitudes in a row, as bits: the largest (a NaN counts as larger), and the
// bitwise or of all.
struct RowBits {
  std::uint32_t largest = 0, all = 0;
};

// bits[row] ← statistics of op(operand)'s rows, which have problem.shape.k elements on this rank.
Status enqueue_row_bits(const Problem& problem, Operand operand, const float* from, RowBits* bits,
                        Stream stream);

// Splits an operand. The scale of a row follows from the elements of all ranks.
struct SplitArgs {
  const RowBits* bits = nullptr;  // `sets` sets: one per rank that has elements of these rows
  int sets = 1;
  std::int64_t next_set = 0;
  std::byte* planes = nullptr;
  float* steps = nullptr;
  std::uint64_t* sums = nullptr;  // Σ|x| of this rank's integers; the largest value: no scale
};
Status enqueue_split(const Problem& problem, Operand operand, const float* from,
                     const SplitArgs& args, Stream stream);

// Splits both operands where this rank has all K of their rows; reads an element once, up to
// K = 16384.
struct WholeRows {
  struct Of {
    const float* from = nullptr;
    std::byte* planes = nullptr;
    float* steps = nullptr;
    std::uint64_t* sums = nullptr;  // as in SplitArgs, `cluster` sets: of parts of K
  };
  std::array<Of, 2> of;  // op(A), op(B)
  std::int64_t next_set = 0;
  int cluster = 1;
};
// Blocks that share a row; 0: this device lacks the kernel.
int whole_rows_cluster(std::int64_t k, const Device& device);
Status enqueue_split_whole_rows(const Problem& problem, const WholeRows& rows, Stream stream);

// Sums of the rows' widths, in units of 2^-16; saturating: the largest value means infinity.
struct Totals {
  std::uint64_t a = 0, b = 0;
};
struct WeighArgs {
  const std::uint64_t* sums = nullptr;  // per rank: of op(A)'s rows, then of op(B)'s
  int sets = 1;
  std::int64_t next_set = 0;
  std::int64_t rows_a = 0, rows_b = 0, k = 0;  // k: over all ranks
  Totals* totals = nullptr;
};
Status enqueue_weigh(const WeighArgs& args, Stream stream);

// Decisions from here on are for FP32 or FP64; see Choice::decides_on_device.
constexpr std::int32_t kWithoutDigits = 32;

// summed_in_fp32 for dense operands, so that it does not depend on the shards or their storage.
float summed_by_cublas(const Shape& shape);

// widths ← the widths of each operand, in the format of the split kernels; decision ← Int8x3's
// decision; flags ← 0.
struct DecideArgs {
  const Totals* totals = nullptr;
  int sets = 1;
  std::int64_t rows_a = 0, rows_b = 0;
  float summed = 0.0F;
  float* widths = nullptr;
  std::int32_t* decision = nullptr;
  unsigned* flags = nullptr;
  std::int64_t num_flags = 0;
};
Status enqueue_decide(const DecideArgs& args, Stream stream);

// Partial sums of a row-parallel product: exact integers in units of mid·lo.
struct MultiplySumsArgs {
  Shape shape = {};
  const std::byte *planes_a = nullptr, *planes_b = nullptr;
  std::int32_t* decision = nullptr;  // read only
  std::int64_t* sums = nullptr;      // m × n, dense
};
constexpr std::int64_t kMostTerms = std::int64_t{1} << 25;  // K of all ranks; each is below 2^38
Status prepare_digits(const Device& device);                // before the first launch
Status enqueue_multiply_sums(const MultiplySumsArgs& args, const Device& device, Stream stream);

// C ← alpha·(the ranks' sums, scaled) + beta·C, unless the decision is FP32.
struct ScaleSumsArgs {
  const std::int64_t* own = nullptr;  // nullptr: none
  const std::int64_t* others = nullptr;
  int num_others = 0;
  std::int64_t rows = 0, n = 0;
  const float *steps_a = nullptr, *steps_b = nullptr;
  const std::int32_t* decision = nullptr;
  float alpha = 1.0F, beta = 0.0F;
  float* c = nullptr;
  std::int64_t ldc = 0;
};
Status enqueue_scale_sums(const ScaleSumsArgs& args, Stream stream);

}  // namespace tilegate::distributed
