#include "models/fp32.hpp"

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

// K is filled up with zeros to tiles of 16.
float element(const Rows& a, std::int64_t row, const Rows& b, std::int64_t col, std::int64_t run) {
  const std::int64_t end = (a.k + 15) / 16 * 16;
  Sum sum;
  for (std::int64_t k = 0; k < end; ++k) {
    if (k < a.k) sum.rest = add(sum.rest, multiply(a.at(row, k), b.at(col, k)));
    if (a.k > run && (k + 1) % run == 0 && k + 1 < end) sum.end_run();
  }
  return sum.value();
}

}  // namespace

std::int64_t run_of(std::int64_t k, std::int64_t tiles, double summed) {
  if (k <= 512 && tiles < 16) return 4;
  std::int64_t run = 32;
  while (run < 256 && static_cast<double>(2 * run) <= summed / 4.0) run *= 2;
  return run;
}

std::vector<float> product(const Rows& a, const Rows& b, std::int64_t run,
                           const Epilogue& epilogue) {
  std::vector<float> c;
  for (std::int64_t row = 0; row < a.count; ++row) {
    for (std::int64_t col = 0; col < b.count; ++col) {
      const float scaled = multiply(epilogue.alpha, element(a, row, b, col, run));
      c.push_back(epilogue.beta == 0.0F
                      ? scaled
                      : add(scaled, multiply(epilogue.beta, epilogue.c[c.size()])));
    }
  }
  return c;
}

}  // namespace tilegate::models::fp32
