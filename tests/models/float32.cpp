#include "models/float32.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace tilegate::models {
namespace {

using Wide = unsigned __int128;

int width_of(Wide magnitude) {
  const auto high = static_cast<std::uint64_t>(magnitude >> 64);
  const auto low = static_cast<std::uint64_t>(magnitude);
  return static_cast<int>(high != 0 ? 64 + std::bit_width(high) : std::bit_width(low));
}

// magnitude / 2^places to the nearest integer, to the even one of two; `more`: the exact magnitude
// is larger, by less than 1.
Wide shifted(Wide magnitude, int places, bool more) {
  if (places <= 0) return magnitude << -places;
  if (places > width_of(magnitude)) return 0;  // less than a half
  const Wide kept = magnitude >> (places - 1) >> 1, rest = magnitude - (kept << (places - 1) << 1);
  const Wide half = Wide{1} << (places - 1);
  const bool is_tie = rest == half && !more;
  return kept + (is_tie ? kept % 2 : rest >= half ? 1 : 0);
}

float rounded(bool negative, Wide magnitude, int exponent, bool more = false) {
  constexpr int kBits = 24, kLeastExponent = -149;
  const int dropped = std::max(width_of(magnitude) - kBits, kLeastExponent - exponent);
  const auto kept = static_cast<float>(shifted(magnitude, dropped, more));
  return std::ldexp(negative ? -kept : kept, exponent + dropped);
}

}  // namespace

Exact exact(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t fraction = bits & 0x7FFFFF, field = bits >> 23 & 0xFF;
  const std::uint32_t magnitude = field == 0 ? fraction : fraction + 0x800000;
  return {bits >> 31 != 0, magnitude, field == 0 ? -149 : static_cast<int>(field) - 150};
}

float multiply(float a, float b) {
  const Exact x = exact(a), y = exact(b);
  return rounded(x.negative != y.negative, Wide{x.magnitude} * y.magnitude,
                 x.exponent + y.exponent);
}

float divide(float a, float b) {
  const Exact x = exact(a), y = exact(b);
  const Wide scaled = Wide{x.magnitude} << 80;
  return rounded(x.negative != y.negative, scaled / y.magnitude, x.exponent - 80 - y.exponent,
                 scaled % y.magnitude != 0);
}

float add(float a, float b) {
  Exact large = exact(a), small = exact(b);
  if (large.magnitude == 0 && small.magnitude == 0) {
    return large.negative && small.negative ? -0.0F : 0.0F;
  }
  if (large.magnitude == 0) return b;
  if (small.magnitude == 0) return a;
  if (large.exponent < small.exponent) std::swap(large, small);
  const int apart = large.exponent - small.exponent;
  constexpr int kMost = 60;  // beyond, any number that small rounds like any other
  const int shift = std::min(apart, kMost);
  const auto of_large = static_cast<__int128>(Wide{large.magnitude} << shift);
  const auto of_small = static_cast<__int128>(apart > kMost ? 1 : small.magnitude);
  const __int128 sum = of_large + (large.negative == small.negative ? of_small : -of_small);
  if (sum == 0) return 0.0F;
  return rounded(large.negative != (sum < 0), static_cast<Wide>(sum < 0 ? -sum : sum),
                 large.exponent - shift);
}

float sum_in_batches(std::span<const float> values, std::size_t in_batch) {
  float sum = values.front();
  for (values = values.subspan(1); !values.empty();
       values = values.subspan(std::min(in_batch, values.size()))) {
    // Of the values from `first` on, `apart` apart.
    const auto of_batch = [&](const auto& self, std::size_t first, std::size_t apart) -> float {
      if (apart == in_batch) return first < values.size() ? values[first] : 0.0F;
      return add(self(self, first, 2 * apart), self(self, first + apart, 2 * apart));
    };
    sum = add(sum, of_batch(of_batch, 0, 1));
  }
  return sum;
}

float of_integer(std::int64_t value) {
  return rounded(value < 0, static_cast<Wide>(std::abs(value)), 0);
}

std::int64_t nearest_multiple(float value, int exponent) {
  const Exact x = exact(value);
  const auto magnitude =
      static_cast<std::int64_t>(shifted(x.magnitude, exponent - x.exponent, false));
  return x.negative ? -magnitude : magnitude;
}

std::int64_t nearest_integer(float value) { return nearest_multiple(value, 0); }

}  // namespace tilegate::models
