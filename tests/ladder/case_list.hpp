// Helpers for the tables of cases.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tilegate/stage.hpp>

#include "verifier/case.hpp"

namespace tilegate::ladder {

using verifier::Case;
using verifier::Inputs;
using verifier::Padded;

// Another configuration of a rung, `<Rung>.<word>`. Slow cases leave variants out.
inline bool is_variant(const Stage& stage) {
  return stage.name.find('.') != std::string_view::npos;
}

// Elements that make the device come to `decision` (see Choice::decides_on_device).
inline std::vector<verifier::Plant> plants_for(std::string_view stage, int decision) {
  constexpr int kSix = 6, kFp32 = 32, kFp64 = 64;
  if (decision == kFp32 || decision == kFp64) {  // Inf has no parts
    return {{Operand::kA, 0, 0, std::numeric_limits<float>::infinity()}};
  }
  // Too large for the scale that the halves of the others need.
  if (stage == "Bf16x6" && decision == kSix) return {{Operand::kA, 0, 0, 0x1p11F}};
  return {};
}

// Collects cases without duplicates, so that names stay unique.
class CaseList {
 public:
  void add(Case test_case) {
    if (names_.insert(name_of(test_case)).second) cases_.push_back(std::move(test_case));
  }

  std::vector<Case> take() { return std::move(cases_); }

 private:
  std::set<std::string> names_;
  std::vector<Case> cases_;
};

// How the operands of a problem are stored: transposed, or in a batch.
struct Form {
  Op op_a = Op::kN, op_b = Op::kN;
  std::int64_t batch = 1, gap = 0;  // as in Padded
};

// Forms that the stage takes besides the plain one; empty for most stages.
inline std::vector<Form> forms_of(const Stage& stage) {
  std::vector<Form> forms;
  if (stage.takes_transposed) {
    forms.insert(forms.end(), {{Op::kT, Op::kN}, {Op::kN, Op::kT}, {Op::kT, Op::kT}});
  }
  if (stage.takes_batches) {
    forms.insert(forms.end(), {{.batch = 3}, {.batch = 2, .gap = 2}, {.batch = 4, .gap = -1}});
  }
  if (stage.takes_transposed && stage.takes_batches) {
    forms.insert(forms.end(), {{Op::kT, Op::kN, 2, 1}, {Op::kN, Op::kT, 3, -1}});
  }
  return forms;
}

// Pads leading dimensions to whole vectors.
inline Padded padded_to_vectors(Padded padded) {
  const Problem problem = padded;
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    padded.pad[static_cast<std::size_t>(operand)] = -problem.extent(operand).cols & 3;
  }
  return padded;
}

struct Factors {
  float alpha, beta;
};

// Integers, so that integer inputs give integer results.
inline constexpr std::array<Factors, 8> kWholeFactors = {
    {{1, 0}, {1, 1}, {-1, 2}, {2, -1}, {1, -3}, {0, 2}, {3, 0}, {-2, 1}}};
inline constexpr std::array<Factors, 8> kFactors = {
    {{1, 0}, {1, 1}, {-1, 0.5F}, {2, -1}, {0.7F, -3}, {0, 2}, {1.0F / 3.0F, 0}, {-1e-3F, 1}}};

inline const Factors& factors(Inputs inputs, std::size_t turn) {
  const auto& table = inputs == Inputs::kIntegers ? kWholeFactors : kFactors;
  return table[turn % table.size()];
}

}  // namespace tilegate::ladder
