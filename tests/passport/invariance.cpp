// Batch invariance: whether a row's bits depend on what is computed beside it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "call.hpp"
#include "verifier/case.hpp"

namespace tilegate::passport {
namespace {

constexpr Shape kShape = {70, 52, 300};
constexpr std::int64_t kRow = 5;

float element_of_a(std::int64_t row, std::int64_t k) {
  return uniform(31, static_cast<std::uint64_t>(row * kShape.k + k));
}

// Column j of B is the same for every N.
float element_of_b(std::int64_t k, std::int64_t col) {
  return uniform(32, static_cast<std::uint64_t>(col * kShape.k + k));
}

// The row whose bits are looked at, as row `at` of m; `others` is a seed for the other rows.
std::vector<float> row_of(const Stage& stage, std::int64_t m, std::int64_t n, std::int64_t at,
                          std::int64_t others = 0) {
  const Shape shape = {m, n, kShape.k};
  Inputs inputs = inputs_for(shape);
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t k = 0; k < shape.k; ++k) {
      inputs.a[static_cast<std::size_t>(row * shape.k + k)] =
          element_of_a(row == at ? kRow : row + 1000 * (others + 1), k);
    }
  }
  for (std::int64_t k = 0; k < shape.k; ++k) {
    for (std::int64_t col = 0; col < n; ++col) {
      inputs.b[static_cast<std::size_t>(k * n + col)] = element_of_b(k, col);
    }
  }
  const auto c = call(stage, Problem::dense(shape), inputs);
  const auto begin = c.begin() + static_cast<std::ptrdiff_t>(at * n);
  return {begin, begin + static_cast<std::ptrdiff_t>(n)};
}

// The columns that both have.
bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return std::memcmp(x.data(), y.data(), std::min(x.size(), y.size()) * sizeof(float)) == 0;
}

}  // namespace

std::string invariance_json(const Stage& stage) {
  const std::vector<float> usual = row_of(stage, kShape.m, kShape.n, kRow);
  const auto first_other = [&](const auto& extents, const auto& row) -> std::string {
    for (const std::int64_t extent : extents) {
      if (!same_bits(usual, row(extent))) return std::to_string(extent);
    }
    return "none";
  };
  constexpr std::array<std::int64_t, 7> kExtents = {1, 4, 8, 33, 64, 129, 300};
  constexpr std::array<std::int64_t, 3> kPlaces = {0, 31, 69};
  bool repeats = true;
  for (const auto order :
       {verifier::Order::kReverse, verifier::Order::kShuffled, verifier::Order::kForward}) {
    verifier::set_order(order);
    repeats = same_bits(usual, row_of(stage, kShape.m, kShape.n, kRow)) && repeats;
  }
  Object object;
  object.add_text("problem", to_string(Problem::dense(kShape)));
  object.add_text("other_m", first_other(kExtents, [&](std::int64_t m) {
                    return row_of(stage, m, kShape.n, std::min(m - 1, kRow));
                  }));
  object.add_text("other_n", first_other(kExtents, [&](std::int64_t n) {
                    return row_of(stage, kShape.m, n, kRow);
                  }));
  object.add_text("other_place", first_other(kPlaces, [&](std::int64_t at) {
                    return row_of(stage, kShape.m, kShape.n, at);
                  }));
  object.add_flag("other_rows", !same_bits(usual, row_of(stage, kShape.m, kShape.n, kRow, 1)));
  return object.add_flag("repeats", repeats).json();
}

}  // namespace tilegate::passport
