#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"

namespace tilegate::ladder {
namespace {

// Those of an NVIDIA H200: one tile is split along K among many blocks.
constexpr int kManyMultiprocessors = 132;

// A batch of one-tile matrices, one more than the executor has multiprocessors, so that only the
// last one is split along K.
constexpr std::int64_t kOneTooMany = 5;

class ConfigurationCases {
 public:
  // Adds a case with the next factors; alpha is not 0.
  void add(Padded padded, int multiprocessors = 0) {
    const bool exact = (turn_ + turn_ / 2) % 2 == 0;
    const Inputs inputs = exact ? Inputs::kIntegers : Inputs::kUniform;
    const Factors& f = factors(inputs, turn_++);
    padded.alpha = f.alpha == 0.0F ? 1.0F : f.alpha;
    padded.beta = f.beta;
    list_.add({.problem = padded, .inputs = inputs, .multiprocessors = multiprocessors});
  }
  void add(Case test_case) { list_.add(std::move(test_case)); }

  std::vector<Case> take() { return list_.take(); }

 private:
  CaseList list_;
  std::size_t turn_ = 0;
};

Padded in_form(const Shape& shape, const Form& form) {
  return {
      .shape = shape, .op_a = form.op_a, .op_b = form.op_b, .batch = form.batch, .gap = form.gap};
}

// Several tiles of every size (for a batch only along one side) and several k tiles: with whole
// vectors, and without.
void add_large(const Form& form, std::size_t turn, ConfigurationCases& cases) {
  Shape vectors{132, 260, 72}, words{131, 259, 67};
  if (form.batch > 1) (turn % 2 == 0 ? vectors.m : vectors.n) = 36;
  if (form.batch > 1) (turn % 2 == 0 ? words.n : words.m) = 35;
  cases.add(in_form(vectors, form));
  Padded narrow = in_form(words, form);
  narrow.offset_bytes = {4, 8, 12};
  cases.add(narrow);
}

// All sizes suit vectors except one extent: the width of rows of A, of B, or of B and C, in every
// form, with the larger of A and B affected or not. C has whole tiles.
void add_ragged_rows(const Form& form, ConfigurationCases& cases) {
  for (const Shape& shape :
       {Shape{75, 68, 36}, Shape{68, 74, 36}, Shape{76, 68, 33}, Shape{68, 76, 35}}) {
    cases.add(padded_to_vectors(in_form(shape, form)));
  }
}

// One k past a multiple of every k tile, with leading dimensions of whole vectors; K is split.
void add_last_k(const Form& form, ConfigurationCases& cases) {
  cases.add(padded_to_vectors(in_form({20, 36, 129}, form)));
}

// K in dozens of parts; the last one is shorter.
void add_many_splits(const Form& form, ConfigurationCases& cases) {
  cases.add(padded_to_vectors(in_form({12, 20, 1409}, form)), kManyMultiprocessors);
}

// More rows of tiles than the scheduler has in a group, a smaller last group, and several columns.
void add_tall(const Stage& stage, ConfigurationCases& cases) {
  cases.add({.shape = {1668, 260, 4}});
  if (stage.candidates == nullptr) return;  // the second case would have the same tiles
  cases.add({.shape = {1667, 259, 3}, .offset_bytes = {4, 8, 12}});
}

// Infinities in each part of a K that several blocks share.
void add_infinities(ConfigurationCases& cases) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Padded padded = padded_to_vectors({.shape = {5, 7, 259}, .beta = 1.0F});
  for (const std::int64_t k : {0, 130, -1}) {
    cases.add(Case{.problem = padded,
                   .inputs = Inputs::kIntegers,
                   .plants = {{Operand::kA, 2, k, kInfinity}, {Operand::kB, -1, 3, -kInfinity}},
                   .multiprocessors = kManyMultiprocessors});
  }
}

}  // namespace

std::vector<Case> configuration_cases(const Stage& stage) {
  std::vector<Form> forms = forms_of(stage);
  forms.push_back({});
  if (is_variant(stage)) std::erase_if(forms, [](const Form& form) { return form.batch > 1; });
  ConfigurationCases cases;
  for (std::size_t turn = 0; turn < forms.size(); ++turn) add_large(forms[turn], turn, cases);
  add_tall(stage, cases);
  if (is_variant(stage)) return cases.take();  // the rung's plans
  // On tensor cores a K of more than one chunk is slow on the executor.
  const bool is_slow = TILEGATE_ON_SIMT && stage.math == Math::fp32_split;
  for (const Form& form : forms) {
    if (form.batch == 1) add_ragged_rows(form, cases);
    if (form.batch <= 2 || !is_slow) add_last_k(form, cases);
  }
  add_infinities(cases);
  add_many_splits({}, cases);
  if (is_slow) return cases.take();
  if (stage.takes_transposed) add_many_splits({Op::kT, Op::kT}, cases);
  if (stage.takes_batches) {  // whole vectors; A is transposed if possible: its rows lie across k
    const Op op_a = stage.takes_transposed ? Op::kT : Op::kN;
    add_last_k({.op_a = op_a, .batch = kOneTooMany}, cases);
    add_many_splits({.op_a = op_a, .batch = 2, .gap = 1}, cases);
  }
  return cases.take();
}

}  // namespace tilegate::ladder
