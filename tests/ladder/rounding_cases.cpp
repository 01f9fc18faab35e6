#include <array>
#include <cstdint>
#include <vector>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"
#include "thorough.hpp"

namespace tilegate::ladder {
namespace {

// Powers of two: products with them are exact.
constexpr std::array<Factors, 5> kExactFactors = {{{1, 0}, {-2, 0}, {1, -0.5F}, {0.5F, 0}, {4, 2}}};

std::vector<Form> all_forms(const Stage& stage) {
  std::vector<Form> forms = forms_of(stage);
  forms.insert(forms.begin(), Form{});
  return forms;
}

Padded make_padded(const Shape& shape, const Form& form) {
  return {
      .shape = shape, .op_a = form.op_a, .op_b = form.op_b, .batch = form.batch, .gap = form.gap};
}

}  // namespace

// Narrow rows, wide rows, K in several tiles and parts, C in several tiles.
std::vector<Case> significand_cases(const Stage& stage) {
  CaseList list;
  std::size_t turn = 0;
  for (const Form& form : all_forms(stage)) {
    if (is_variant(stage) && turn > 0) break;  // only the plain form
    for (const Shape& shape : {Shape{5, 7, 3}, Shape{36, 68, 20}, Shape{67, 131, 35},
                               Shape{20, 12, 300}, Shape{1, 33, 129}, Shape{33, 1, 129}}) {
      for (const Inputs inputs : {Inputs::kPicksFromA, Inputs::kPicksFromB}) {
        const Factors& f = kExactFactors[turn++ % kExactFactors.size()];
        Padded padded = make_padded(shape, form);
        padded.alpha = f.alpha;
        padded.beta = f.beta;
        list.add({.problem = padded, .inputs = inputs});
      }
    }
  }
  return list.take();
}

std::vector<Case> summation_cases(const Stage& stage) {
  CaseList list;
  const auto add = [&](const Shape& shape, const Form& form) {
    Padded padded = make_padded(shape, form);
    padded.alpha = 2.0F;
    padded.beta = 1.0F;
    list.add({.problem = padded});
  };
  add({5, 12, 70}, {});
  add({6, 9, 1}, {});
  if (is_variant(stage)) return list.take();
  add({70, 140, 41}, {});
  // Long enough for a sum in several parts; slow on the executor.
  if (!TILEGATE_ON_SIMT || is_thorough()) add({5, 12, 300}, {});
  for (const Form& form : forms_of(stage)) add({6, 7, 37}, form);
  return list.take();
}

}  // namespace tilegate::ladder
