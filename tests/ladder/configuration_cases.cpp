#include <array>
#include <cstdint>
#include <vector>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"

namespace tilegate::ladder {
namespace {

// Several tiles of every size, and a K of several k tiles: with whole vectors, and without.
constexpr std::array<Shape, 2> kLargeShapes = {{{132, 260, 72}, {131, 259, 67}}};

}  // namespace

std::vector<Case> configuration_cases(const Stage& stage) {
  std::vector<Form> forms = forms_of(stage);
  forms.push_back({});
  if (is_variant(stage)) std::erase_if(forms, [](const Form& form) { return form.batch > 1; });
  CaseList list;
  std::size_t turn = 0;
  for (const Form& form : forms) {
    for (const Shape& shape : kLargeShapes) {
      const bool exact = (turn + turn / kLargeShapes.size()) % 2 == 0;
      const Inputs inputs = exact ? Inputs::kIntegers : Inputs::kUniform;
      const Factors& f = factors(inputs, turn++);
      Padded padded{.shape = shape,
                    .alpha = f.alpha == 0.0F ? 1.0F : f.alpha,
                    .beta = f.beta,
                    .op_a = form.op_a,
                    .op_b = form.op_b,
                    .batch = form.batch,
                    .gap = form.gap};
      if (shape.n % 4 != 0) padded.offset_bytes = {4, 8, 12};
      list.add({.problem = padded, .inputs = inputs});
    }
  }
  return list.take();
}

}  // namespace tilegate::ladder
