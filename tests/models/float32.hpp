// FP32 arithmetic in exact integers: each result is the float nearest to the exact one, the even
// one of two (IEEE 754). Of finite numbers; results may be infinite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tilegate::models {

// ±magnitude · 2^exponent.
struct Exact {
  bool negative = false;
  std::uint64_t magnitude = 0;
  int exponent = 0;
};
Exact exact(float value);

float multiply(float a, float b);
float add(float a, float b);
// The first value, and then one batch after another of n = `in_batch` values, a power of two.
// Within a batch value i is added to value i + n / 2, then such sums i to i + n / 4, and so on.
float sum_in_batches(std::span<const float> values, std::size_t in_batch);
float divide(float a, float b);
float of_integer(std::int64_t value);

// To the nearest integer, to the even one of two; at most 2^62.
std::int64_t nearest_integer(float value);
// To the nearest multiple of 2^exponent, in units of it, to the even one of two; at most 2^62.
std::int64_t nearest_multiple(float value, int exponent);

}  // namespace tilegate::models
