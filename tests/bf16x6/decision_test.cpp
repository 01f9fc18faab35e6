// The decision for halves, planes or FP64.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/bf16x6.hpp>

#include "split_call.hpp"

namespace tilegate::bf16x6 {
namespace {

constexpr int kByHalves = 3, kByPlanes = 6, kByFp64 = 64;

class Bf16Decision : public SplitTest<stage> {};

// Element (row, k) of an operand, multiplied by factor(row, k).
using Factor = std::function<float(std::int64_t row, std::int64_t k)>;
void scale(Operation& operation, Operand operand, const Factor& factor) {
  std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
  const models::Rows rows = operation.rows(operand, 0);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t k = 0; k < rows.k; ++k) {
      values[static_cast<std::size_t>(row * rows.next_row + k * rows.next_k)] *= factor(row, k);
    }
  }
}

void expect_decision(const Factor& of_a, const Factor& of_b, int decision) {
  for (const Op op_a : {Op::kN, Op::kT}) {
    for (const Op op_b : {Op::kN, Op::kT}) {
      Operation operation(Problem::dense({70, 40, 200}, op_a, op_b));
      scale(operation, Operand::kA, of_a);
      scale(operation, Operand::kB, of_b);
      EXPECT_EQ(run(stage, operation).decision, decision) << to_string(operation.problem);
    }
  }
}

float one(std::int64_t /*row*/, std::int64_t /*k*/) { return 1.0F; }

TEST_F(Bf16Decision, TakesHalvesForOrdinaryOperands) { expect_decision(one, one, kByHalves); }

TEST_F(Bf16Decision, TakesHalvesWhereRowsDifferLittle) {
  const auto of_a = [](float exponent) {
    return [=](std::int64_t row, std::int64_t /*k*/) {
      return std::exp2(static_cast<float>(row % 3) + exponent);
    };
  };
  expect_decision(of_a(30.0F), of_a(-40.0F), kByHalves);
  expect_decision(of_a(-90.0F), one, kByPlanes);  // too small for a scale
}

// All elements of a row are rounded down: 3001 is above 2^11, and 1 modulo 4.
TEST_F(Bf16Decision, TakesPlanesWhereHalvesHaveABias) {
  for (const std::int64_t row : {0, 33}) {
    for (const Operand operand : {Operand::kA, Operand::kB}) {
      Operation operation(Problem::dense({70, 40, 200}));
      const models::Rows rows = operation.rows(operand, 0);
      std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
      for (std::int64_t k = 0; k < rows.k; ++k) {
        float& value = values[static_cast<std::size_t>(row * rows.next_row + k * rows.next_k)];
        value = std::copysign(k % 2 == 0 ? 1.0F : 2.0F, value) * (1.0F + 3001.0F * 0x1p-23F);
      }
      EXPECT_EQ(run(stage, operation).decision, kByPlanes) << row;
    }
  }
}

// Of a k tile that is sampled each k is in the sample of some rows.
TEST_F(Bf16Decision, FindsAnElementOfKThatIsLargeInAllRows) {
  for (const std::int64_t large : {0, 13, 31, 192, 223}) {
    for (const Op op : {Op::kN, Op::kT}) {
      for (const Operand operand : {Operand::kA, Operand::kB}) {
        Operation operation(Problem::dense({128, 128, 256}, op, op));
        scale(operation, operand,
              [=](std::int64_t /*row*/, std::int64_t k) { return k == large ? 0x1p12F : 1.0F; });
        EXPECT_EQ(run(stage, operation, "128x128").decision, kByPlanes) << large;
      }
    }
  }
}

// With 64 rows of y the sample of each row has all k of both k tiles.
TEST_F(Bf16Decision, FindsALargeElementOfOneOf64Rows) {
  for (const std::int64_t large : {0, 13, 19, 31, 192, 207, 210, 223}) {
    for (const Op op : {Op::kN, Op::kT}) {
      for (const Operand operand : {Operand::kA, Operand::kB}) {
        Operation operation(Problem::dense({64, 64, 256}, op, op));
        scale(operation, operand, [=](std::int64_t row, std::int64_t k) {
          return row == large % 64 && k == large ? 0x1p16F : 1.0F;
        });
        const char* configuration = operand == Operand::kA ? "64x128" : "128x64";
        EXPECT_EQ(run(stage, operation, configuration).decision, kByPlanes) << large;
      }
    }
  }
}

constexpr std::int64_t kHidden = 32 + 20;  // a k of a k tile that is not sampled

void expect_accurate(const Operation& operation, const Result& result) {
  const auto [m, n, k] = operation.problem.shape;
  for (std::int64_t product = 0; product < operation.problem.batch; ++product) {
    const models::Rows a = operation.rows(Operand::kA, product),
                       b = operation.rows(Operand::kB, product);
    for (std::int64_t i = 0; i < m * n; ++i) {
      const Exact exact(a, i / n, b, i % n);
      const float found = result.c[static_cast<std::size_t>(product * m * n + i)];
      if (std::isinf(exact.sum)) {
        ASSERT_EQ(found, exact.sum) << product << ' ' << i;
      } else {
        ASSERT_LE(std::fabs(found - exact.sum), 0x1p-22 * exact.magnitude) << product << ' ' << i;
      }
    }
  }
}

// Work tiles whose sample does not show their largest element. They fail, and take FP64. From the
// third of a block on the others know: after halves they take planes, after planes FP64.
TEST_F(Bf16Decision, TakesFp64WhereHalvesOrPlanesFail) {
  const std::int64_t blocks = device::current().multiprocessors, count = 7 * blocks - 1;
  constexpr std::int64_t kRows = 4, kCols = 4, kK = 160;
  Operation operation(Problem::dense({kRows, kCols, kK}, Op::kN, Op::kT, count));
  const auto is_large = [&](std::int64_t product) { return product % blocks != 0; };
  const auto is_special = [&](std::int64_t product) {
    return is_large(product) && product / blocks >= 4;
  };
  for (std::int64_t product = 0; product < count; ++product) {
    if (!is_large(product)) continue;
    const auto at = static_cast<std::size_t>((product * kRows + 1) * kK + kHidden);
    operation.a[at] = is_special(product) ? std::numeric_limits<float>::infinity() : 1e6F;
    for (std::size_t col = 0; col < kCols && is_special(product); ++col) {
      operation.b[static_cast<std::size_t>(product * kCols * kK) + col * kK + kHidden] = 1.0F;
    }
  }
  const Result result = run(stage, operation, "64x128");
  for (std::int64_t product = 0; product < count; ++product) {
    // Halves fail in work tiles 0 and 1 of a block, planes in 4 and 5.
    const bool is_by_planes = product / blocks == 2 || product / blocks == 3;
    const int decision = !is_large(product) ? kByHalves : is_by_planes ? kByPlanes : kByFp64;
    ASSERT_EQ(result.workspace[static_cast<std::size_t>(product)], decision) << product;
  }
  expect_accurate(operation, result);
}

// Of the k tiles that are sampled, the other half of a row's elements is looked at, too. Where one
// is too large for halves, the work tile takes FP64 at once, and later ones of the block still
// halves.
TEST_F(Bf16Decision, TakesFp64WhereAnElementBesideTheSampleIsTooLarge) {
  const std::int64_t blocks = device::current().multiprocessors, count = 2 * blocks + 1;
  constexpr std::int64_t kK = 160;
  for (const Op op : {Op::kN, Op::kT}) {
    for (const char* configuration : {"128x128", "128x64", "64x128"}) {
      for (const Operand operand : {Operand::kA, Operand::kB}) {
        // With 64 rows it is in the sample of its row.
        const bool is_sampled =
            std::string(configuration) == (operand == Operand::kA ? "64x128" : "128x64");
        for (const std::int64_t k : {20, 3 * 32 + 20}) {
          for (const float large : {0x1p6F, 0x1p10F}) {
            Operation operation(Problem::dense({3, 5, kK}, op, op, count));
            const models::Rows rows = operation.rows(operand, 0);
            std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
            values[static_cast<std::size_t>(rows.next_row + k * rows.next_k)] = large;
            const Result result = run(stage, operation, configuration);
            SCOPED_TRACE(std::string(configuration) + " " + std::to_string(k) + " " +
                         std::to_string(large) + " " + to_string(operation.problem));
            if (!is_sampled) {
              EXPECT_EQ(result.workspace[0], large > 0x1p8F ? kByFp64 : kByHalves);
            }
            EXPECT_EQ(result.workspace[static_cast<std::size_t>(2 * blocks)], kByHalves);
            expect_accurate(operation, result);
          }
        }
      }
    }
  }
}

// Where it fails early, the rest of the work tile is skipped, and the next one is not.
TEST_F(Bf16Decision, SkipsTheRestOfAWorkTileThatFails) {
  const std::int64_t blocks = device::current().multiprocessors, count = blocks + 1;
  constexpr std::int64_t kK = 36 * 32;        // sums of six k tiles
  for (const std::int64_t offset : {0, 1}) {  // boxes, words
    for (const char* configuration : {"128x128", "128x64", "64x128"}) {
      for (const std::int64_t large : {32 + 20, 5 * 32 + 20, 14 * 32, 34 * 32 - 1, 36 * 32 - 1}) {
        for (const Operand operand : {Operand::kA, Operand::kB}) {
          Problem problem = Problem::dense({3, 5, kK}, Op::kN, Op::kT, count);
          problem.lda += offset;
          problem.stride_a = 3 * problem.lda;
          Operation operation(problem);
          const models::Rows rows = operation.rows(operand, 0);
          (operand == Operand::kA
               ? operation.a
               : operation.b)[static_cast<std::size_t>(2 * rows.next_row + large * rows.next_k)] =
              1e6F;
          const Result result = run(stage, operation, configuration);
          SCOPED_TRACE(std::string(configuration) + " " + std::to_string(large));
          EXPECT_EQ(result.workspace[0], kByFp64);
          EXPECT_EQ(result.workspace[1], kByHalves);
          EXPECT_EQ(result.workspace[static_cast<std::size_t>(blocks)], kByHalves);
          expect_accurate(operation, result);
        }
      }
    }
  }
}

// Two work tiles after each other, the last of the block among them, by halves or by planes.
TEST_F(Bf16Decision, SkipsTheRestOfTheLastWorkTiles) {
  const std::int64_t blocks = device::current().multiprocessors, count = 3 * blocks;
  constexpr std::int64_t kRows = 3, kK = 36 * 32;
  for (const bool by_planes : {false, true}) {
    for (const std::int64_t offset : {0, 1}) {  // boxes, words
      for (const char* configuration : {"128x128", "64x128"}) {
        Problem problem = Problem::dense({kRows, 5, kK}, Op::kN, Op::kT, count);
        problem.lda += offset;
        problem.stride_a = kRows * problem.lda;
        Operation operation(problem);
        for (float& a : operation.a) a *= by_planes ? 0x1p-90F : 1.0F;  // too small for a scale
        for (const std::int64_t product : {blocks, 2 * blocks}) {
          const std::int64_t at = product * problem.stride_a + problem.lda + kHidden;
          operation.a[static_cast<std::size_t>(at)] =
              by_planes ? std::numeric_limits<float>::infinity() : 1e6F;
        }
        const Result result = run(stage, operation, configuration);
        SCOPED_TRACE(std::string(configuration) + " " + to_string(problem));
        EXPECT_EQ(result.workspace[0], by_planes ? kByPlanes : kByHalves);
        EXPECT_EQ(result.workspace[static_cast<std::size_t>(blocks)], kByFp64);
        EXPECT_EQ(result.workspace[static_cast<std::size_t>(2 * blocks)], kByFp64);
        expect_accurate(operation, result);
      }
    }
  }
}

TEST_F(Bf16Decision, IgnoresTheScalesOfRows) {
  expect_decision(
      [](std::int64_t row, std::int64_t) {
        return std::exp2(static_cast<float>(row % 41) - 20.0F);
      },
      [](std::int64_t row, std::int64_t) { return std::exp2(7.0F - static_cast<float>(row % 23)); },
      kByPlanes);
}

TEST_F(Bf16Decision, TakesPlanesWhereHalfOfOneOperandIsZero) {
  expect_decision([](std::int64_t row, std::int64_t k) { return (row + k) % 2 == 0 ? 0.0F : 1.0F; },
                  one, kByPlanes);
}

TEST_F(Bf16Decision, TakesFp64WhereOneRowHasFewElements) {
  const auto one_in_100 = [](std::int64_t row, std::int64_t k) {
    return row != 33 || k % 100 == 0 ? 1.0F : 0.0F;
  };
  expect_decision(one_in_100, one, kByFp64);
  expect_decision(one, one_in_100, kByFp64);
}

// Its only element may be between those of the sample.
TEST_F(Bf16Decision, TakesFp64WhereTheSampleOfARowIsZero) {
  const auto without_row_33 = [](std::int64_t row, std::int64_t k) {
    return row != 33 || k == 50 ? 1.0F : 0.0F;
  };
  expect_decision(without_row_33, one, kByFp64);
  expect_decision(one, without_row_33, kByFp64);
}

TEST_F(Bf16Decision, TakesFp64ForWideOperands) {
  const auto wide = [](std::int64_t row, std::int64_t k) {
    return std::exp2(static_cast<float>((row * 37 + k * 59) % 81) - 40.0F);
  };
  expect_decision(wide, wide, kByFp64);
}

// Factors e^(sigma·N), from random bits of the element's place.
Factor log_normal(float sigma) {
  return [=](std::int64_t row, std::int64_t k) {
    float normal = -6.0F;  // a sum of 12 uniform numbers
    auto bits = static_cast<std::uint32_t>(row * 40'009 + k * 101 + 1);
    for (int i = 0; i < 12; ++i) {
      bits = bits * 1'664'525U + 1'013'904'223U;
      normal += static_cast<float>(bits >> 8) * 0x1p-24F;
    }
    return std::exp(sigma * normal);
  };
}

void make_positive(Operation& operation) {
  for (std::vector<float>* const values : {&operation.a, &operation.b}) {
    for (float& value : *values) value = std::fabs(value);
  }
}

// Few products count, though the mean distances of both operands are far below 23.5 octaves
// together. Where all have one sign, truncation adds up: there fewer may be small.
TEST_F(Bf16Decision, TakesFp64WhereElementsSpreadFar) {
  const auto decision = [](float of_a, float of_b, bool is_positive) {
    Operation operation(Problem::dense({70, 40, 200}));
    scale(operation, Operand::kA, log_normal(of_a));
    scale(operation, Operand::kB, log_normal(of_b));
    if (is_positive) make_positive(operation);
    return run(stage, operation, "128x128").decision;
  };
  EXPECT_EQ(decision(4.0F, 0.0F, false), kByFp64);
  EXPECT_EQ(decision(0.0F, 4.0F, false), kByFp64);
  EXPECT_EQ(decision(2.0F, 2.0F, false), kByPlanes);
  EXPECT_EQ(decision(2.8F, 0.0F, false), kByPlanes);
  EXPECT_EQ(decision(2.0F, 0.0F, true), kByFp64);
  EXPECT_EQ(decision(0.0F, 2.0F, true), kByFp64);
  EXPECT_NE(decision(1.0F, 0.0F, true), kByFp64);
}

// Exponents from -8 to 8: close to what FP64 is for, in none of 12 work tiles.
TEST_F(Bf16Decision, TakesPlanesForExponentsWithin8) {
  Operation operation(Problem::dense({384, 512, 128}));
  std::uint32_t bits = 1;
  for (std::vector<float>* const values : {&operation.a, &operation.b}) {
    for (float& value : *values) {
      bits = bits * 1'664'525U + 1'013'904'223U;
      const float mantissa = 1.0F + std::fabs(value);
      value = std::ldexp(std::copysign(mantissa, value), static_cast<int>(bits >> 16) % 17 - 8);
    }
  }
  const Result result = run(stage, operation, "128x128");
  for (std::size_t tile = 0; tile < 12; ++tile) EXPECT_EQ(result.workspace[tile], kByPlanes);
}

// The last products are the largest, so few count: FP32 rounds small sums before. Where the first
// are the largest FP32 rounds large sums to the end.
TEST_F(Bf16Decision, TakesFp64WhereProductsGrowAlongK) {
  for (const Op op : {Op::kN, Op::kT}) {
    for (const Operand operand : {Operand::kA, Operand::kB}) {
      const auto decision = [&](float octaves, std::int64_t k_all) {
        Operation operation(Problem::dense({70, 40, k_all}, op, op));
        scale(operation, operand, [=](std::int64_t /*row*/, std::int64_t k) {
          return std::exp2(octaves * static_cast<float>(k) / static_cast<float>(k_all));
        });
        return run(stage, operation, "128x128").decision;
      };
      EXPECT_EQ(decision(3.0F, 200), kByFp64);
      EXPECT_NE(decision(0.5F, 200), kByFp64);
      EXPECT_NE(decision(-3.0F, 200), kByFp64);
      EXPECT_NE(decision(3.0F, 1600), kByFp64);
      EXPECT_EQ(decision(6.0F, 1600), kByFp64);
    }
  }
}

// Their roundings do not average. Numbers of 11 bits are not rounded.
TEST_F(Bf16Decision, TakesPlanesForFewValues) {
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    for (const int count : {16, 64}) {
      for (const bool are_short : {false, true}) {
        Operation operation(Problem::dense({128, 128, 200}));
        std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
        std::vector<float> table(values.begin(), values.begin() + count);
        if (are_short) {
          for (float& value : table) value = std::rint(value * 1024.0F) + 1.0F;
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
          const auto hash = static_cast<std::uint32_t>(i) * 2'654'435'761U;
          const std::uint32_t place = (hash ^ hash >> 15) * 2'246'822'519U >> 16;
          values[i] = table[place % static_cast<std::uint32_t>(count)];
        }
        EXPECT_EQ(run(stage, operation, "128x128").decision, are_short ? kByHalves : kByPlanes)
            << count;
      }
    }
  }
}

// In both operands. The values are 1, but for the last bits.
TEST_F(Bf16Decision, TakesFp64WhereAllElementsAreAlmostEqual) {
  Operation operation(Problem::dense({70, 40, 200}));
  for (float& a : operation.a) a = 1.0F + a * 1e-6F;
  EXPECT_NE(run(stage, operation).decision, kByFp64);
  for (float& b : operation.b) b = 1.0F + b * 1e-6F;
  EXPECT_EQ(run(stage, operation).decision, kByFp64);
}

// Each tile by itself: here the last one, of the last product of a batch.
TEST_F(Bf16Decision, IsOfATile) {
  Operation operation(Problem::dense({70, 40, 200}, Op::kN, Op::kN, 3));
  const std::size_t last_row = operation.a.size() - 200;
  for (std::size_t k = 1; k < 200; ++k) operation.a[last_row + k] = 0.0F;
  const Result result = run(stage, operation, "64x128");
  const std::vector<std::int32_t> decisions(result.workspace.begin(), result.workspace.begin() + 6);
  EXPECT_EQ(decisions, (std::vector<std::int32_t>{kByHalves, kByHalves, kByHalves, kByHalves,
                                                  kByHalves, kByFp64}));
}

// Blocks have four work tiles, every other of them in FP64.
TEST_F(Bf16Decision, ChangesFromWorkTileToWorkTile) {
  const std::int64_t blocks = device::current().multiprocessors, count = 4 * blocks;
  constexpr std::int64_t kRows = 8, kCols = 8, kK = 128;
  Operation operation(Problem::dense({kRows, kCols, kK}, Op::kN, Op::kN, count));
  const auto is_in_fp64 = [&](std::int64_t product) { return product / blocks % 2 == 1; };
  for (std::size_t i = 0; i < operation.a.size(); ++i) {  // but for the first k all are 0
    const auto at = static_cast<std::int64_t>(i);
    if (is_in_fp64(at / (kRows * kK)) && at % kK != 0) operation.a[i] = 0.0F;
  }
  const Result result = run(stage, operation, "64x128");
  for (std::int64_t product = 0; product < count; ++product) {
    ASSERT_EQ(result.workspace[static_cast<std::size_t>(product)],
              is_in_fp64(product) ? kByFp64 : kByHalves)
        << product;
    if (!is_in_fp64(product)) continue;
    const auto c = static_cast<std::size_t>(product * kRows * kCols);
    const float a = operation.a[static_cast<std::size_t>(product * kRows * kK)],
                b = operation.b[static_cast<std::size_t>(product * kK * kCols)];
    ASSERT_EQ(result.c[c], a * b) << product;
  }
}

// With FP64 an element has one rounding, and one for each split.
TEST_F(Bf16Decision, RoundsFp64Once) {
  for (const Op op_a : {Op::kN, Op::kT}) {
    for (const Op op_b : {Op::kN, Op::kT}) {
      for (const char* const tile : {"128x128", "128x64", "64x128"}) {
        Operation operation(Problem::dense({131, 137, 150}, op_a, op_b));
        const auto wide = [](std::int64_t row, std::int64_t k) {
          return std::exp2(static_cast<float>((row * 37 + k * 59) % 81) - 40.0F);
        };
        scale(operation, Operand::kA, wide);
        scale(operation, Operand::kB, wide);
        const Result result = run(stage, operation, tile);
        ASSERT_EQ(result.decision, kByFp64) << to_string(operation.problem) << ' ' << tile;
        const models::Rows a = operation.rows(Operand::kA, 0), b = operation.rows(Operand::kB, 0);
        for (std::int64_t row = 0; row < a.count; ++row) {
          for (std::int64_t col = 0; col < b.count; ++col) {
            const Exact exact(a, row, b, col);
            const float found = result.c[static_cast<std::size_t>(row * b.count + col)];
            ASSERT_LE(std::fabs(found - exact.sum),
                      0x1p-24 * std::fabs(exact.sum) + 0x1p-44 * exact.magnitude)
                << to_string(operation.problem) << ' ' << tile << ": " << row << ", " << col;
          }
        }
      }
    }
  }
}

// Elements from value(i) on; small ones are for planes, because they have no scale for halves.
Operation operation_of(const Shape& shape, const std::function<float(std::size_t)>& value,
                       bool by_planes) {
  Operation operation(Problem::dense(shape));
  for (std::size_t i = 0; i < operation.a.size(); ++i) {
    operation.a[i] = value(i) * (by_planes ? 0x1p-90F : 1.0F);
  }
  for (std::size_t i = 0; i < operation.b.size(); ++i) operation.b[i] = value(i + 17);
  return operation;
}

// The mean error, relative to results that are sums of one sign, in units of 2^-24. Of what
// truncation took, planes get back half. In the first row and column nothing is truncated: a thread
// that sampled only these does not know of the others. So are 8 bits in the last row: halves get
// back half, too.
TEST_F(Bf16Decision, GivesBackWhatTruncationTook) {
  const auto value = [](std::size_t i) {
    return static_cast<float>((i * 2'654'435'761U) % 16'777'213U) * 0x1p-24F;
  };
  for (const int kind : {0, 1, 2}) {
    const bool by_planes = kind == 1, has_few = kind == 2;
    Operation operation = operation_of({48, 40, 1024}, value, by_planes);
    for (std::size_t k = 0; k < 1024; ++k) {
      const float of_11_bits = static_cast<float>(1025 + k * 37 % 1022);
      operation.a[k] = of_11_bits * (by_planes ? 0x1p-90F : 0x1p-11F);
      operation.b[k * 40] = of_11_bits * 0x1p-11F;
      if (has_few) operation.a[47 * 1024 + k] = 1.0F;
    }
    const models::Rows a = operation.rows(Operand::kA, 0), b = operation.rows(Operand::kB, 0);
    for (const char* const configuration : {"128x128", "128x64", "64x128"}) {
      const Result result = run(stage, operation, configuration);
      ASSERT_EQ(result.decision, by_planes ? kByPlanes : kByHalves);
      double sum = 0.0;
      for (std::size_t i = 0; i < result.c.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        sum += result.c[i] / Exact(a, at / b.count, b, at % b.count).sum - 1;
      }
      const double mean = sum / static_cast<double>(result.c.size()) * 0x1p24;
      EXPECT_GT(mean, has_few ? -1.1 : -0.6) << configuration;
      EXPECT_LT(mean, has_few ? -0.6 : 0.2) << configuration;
    }
  }
}

// Nothing is truncated, so nothing is given back: sums are exact, as in FP32.
TEST_F(Bf16Decision, IsExactForFewBits) {
  for (const int most : {1, 9, 255}) {
    const auto value = [&](std::size_t i) {
      return static_cast<float>(static_cast<int>(i * 2'654'435'761U % 65'521U) % (most + 1) *
                                (i % 3 == 0 ? -1 : 1));
    };
    for (const bool by_planes : {false, true}) {
      const Operation operation = operation_of({48, 40, 200}, value, by_planes);
      const models::Rows a = operation.rows(Operand::kA, 0), b = operation.rows(Operand::kB, 0);
      for (const char* const configuration : {"128x128", "128x64", "64x128"}) {
        const Result result = run(stage, operation, configuration);
        for (std::size_t i = 0; i < result.c.size(); ++i) {
          const auto at = static_cast<std::int64_t>(i);
          ASSERT_EQ(result.c[i], Exact(a, at / b.count, b, at % b.count).sum)
              << most << ' ' << configuration << ' ' << i << ' ' << result.decision;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilegate::bf16x6
