#include "models/fp32.hpp"

#include <algorithm>

#include "models/float32.hpp"

namespace tilegate::models::fp32 {
namespace {

struct Sum {
  float total = 0.0F, rest = 0.0F;  // rest: of this run

  void end_run() {
    const float sum = add(total, rest);
    rest = add(rest, -add(sum, -total));
    total = sum;
  }
  float value() const { return add(total, rest); }
};

// `count` products from `first` on. K is filled up with zeros to tiles of 16.
Sum sum_of(const Rows& a, std::int64_t row, const Rows& b, std::int64_t col, std::int64_t first,
           std::int64_t count, std::int64_t run) {
  const std::int64_t end = (count + 15) / 16 * 16;
  Sum sum;
  for (std::int64_t i = 0; i < end; ++i) {
    if (i < count) sum.rest = add(sum.rest, multiply(a.at(row, first + i), b.at(col, first + i)));
    if (count > run && (i + 1) % run == 0 && i + 1 < end) sum.end_run();
  }
  return sum;
}

float element(const Rows& a, std::int64_t row, const Rows& b, std::int64_t col,
              const Summation& summation) {
  const std::int64_t part = summation.part == 0 ? a.k : summation.part;
  std::vector<Sum> parts;
  for (std::int64_t first = 0; first < a.k; first += part) {
    parts.push_back(sum_of(a, row, b, col, first, std::min(part, a.k - first), summation.run));
  }
  Sum sum = parts.back();
  for (auto other = parts.rbegin() + 1; other != parts.rend(); ++other) {
    sum.end_run();
    sum.rest = add(sum.rest, other->value());
  }
  return sum.value();
}

}  // namespace

Summation whole(std::int64_t k, std::int64_t tiles, double summed) {
  if (k <= 512 && tiles < 16) return {.run = 4};
  Summation runs;
  while (runs.run < 256 && static_cast<double>(2 * runs.run) <= summed / 4.0) runs.run *= 2;
  return runs;
}

Summation split(std::int64_t k, std::int64_t tiles, std::int64_t blocks, double summed) {
  Summation best = whole(k, tiles, summed);
  std::int64_t least = (tiles + blocks - 1) / blocks * k;
  for (std::int64_t wanted = 2; wanted <= std::min({blocks, k / 64, std::int64_t{32}}); ++wanted) {
    const std::int64_t part = ((k + wanted - 1) / wanted + 31) / 32 * 32;
    const std::int64_t parts = (k + part - 1) / part, in_wave = blocks / parts;
    const std::int64_t waves = (tiles + in_wave - 1) / in_wave;
    const std::int64_t time = waves * (part + 32 + 12 * (parts - 1));
    if (waves <= 4 && time < least) {
      least = time;
      best.part = part;
    }
  }
  return best;
}

std::vector<float> product(const Rows& a, const Rows& b, const Summation& summation,
                           const Epilogue& epilogue) {
  std::vector<float> c;
  for (std::int64_t row = 0; row < a.count; ++row) {
    for (std::int64_t col = 0; col < b.count; ++col) {
      const float scaled = multiply(epilogue.alpha, element(a, row, b, col, summation));
      c.push_back(epilogue.beta == 0.0F
                      ? scaled
                      : add(scaled, multiply(epilogue.beta, epilogue.c[c.size()])));
    }
  }
  return c;
}

}  // namespace tilegate::models::fp32
