#include <array>
#include <cstdint>
#include <vector>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"

namespace tilegate::ladder {
namespace {

// The lengths of these tables and of the factors are coprime, so that over the shapes every alpha
// and beta is combined with every padding and every offset.
constexpr std::array<std::array<std::int64_t, 3>, 7> kPads = {
    {{0, 0, 0}, {3, 3, 3}, {0, 1, 0}, {4, 8, 12}, {1, 0, 5}, {2, 7, 4}, {100, 65, 31}}};
constexpr std::array<std::array<std::int64_t, 3>, 5> kOffsets = {
    {{0, 0, 0}, {4, 4, 4}, {0, 8, 0}, {12, 4, 8}, {8, 0, 12}}};

// Rows are whole vectors, sizes not multiples of tiles: the 128-bit path and its edges.
constexpr std::array<Shape, 9> kVectorShapes = {{{4, 4, 4},
                                                 {1, 8, 4},
                                                 {7, 12, 20},
                                                 {36, 68, 12},
                                                 {100, 36, 44},
                                                 {132, 124, 20},
                                                 {65, 132, 36},
                                                 {130, 260, 8},
                                                 {33, 64, 100}}};

constexpr std::array<Shape, 20> kPrimeAndSkinny = {
    {{19, 23, 29},  {31, 37, 41},   {61, 67, 71},  {101, 103, 107}, {127, 131, 137},
     {149, 97, 53}, {251, 13, 127}, {11, 241, 59}, {83, 89, 211},   {223, 227, 2},
     {1, 1, 509},   {2, 3, 1031},   {1, 509, 7},   {509, 1, 7},     {1, 257, 131},
     {257, 1, 131}, {3, 1021, 5},   {1021, 3, 5},  {129, 65, 33},   {150, 150, 70}}};

constexpr std::int64_t kLargestRepeated = 128;  // several larger tiles would take seconds

constexpr std::int64_t kLargestWithBoth = 16 * 16 * 16;  // M·N·K with both kinds of inputs

// K of a problem of one tile. Large tiles are tiles of C only; their k tile is smaller.
std::int64_t depth_of(std::int64_t tile) { return tile <= kLargestRepeated ? tile : tile / 8; }

#if !TILEGATE_ON_SIMT
constexpr std::array<Shape, 6> kLarge = {{{4097, 4095, 4093},
                                          {3, 5, 65536},
                                          {33, 65, 65537},
                                          {8191, 129, 2047},
                                          {127, 8193, 1031},
                                          {1, 65537, 129}}};
#else
constexpr std::array<Shape, 1> kLarge = {{{3, 5, 2053}}};
#endif

class ShapeCases {
 public:
  // Sets the form of all later cases.
  void set_form(const Form& form) { form_ = form; }

  // Adds cases with the next factors, padding and offsets.
  void add(const Shape& shape) {
    add_both({.shape = shape,
              .pad = kPads[turn_ % kPads.size()],
              .offset_bytes = kOffsets[turn_ % kOffsets.size()]});
  }

  // Adds cases with the alignment of vector accesses.
  void add_aligned(const Shape& shape) {
    add_both({.shape = shape});
    add_both({.shape = shape, .pad = {4, 8, 12}});
  }

  std::vector<Case> take() { return list_.take(); }

 private:
  // Adds both kinds of inputs; for large shapes on the executor only one of them, in turn.
  void add_both(Padded padded) {
    const auto [m, n, k] = padded.shape;
    const bool slow = TILEGATE_ON_SIMT && m * n * k > kLargestWithBoth;
    for (const Inputs inputs : {Inputs::kIntegers, Inputs::kUniform}) {
      // Shapes come twice in a row: the second time has the other kind.
      const bool exact = (turn_ + turn_ / 2) % 2 == 0;
      if (slow && exact != (inputs == Inputs::kIntegers)) continue;
      padded.alpha = factors(inputs, turn_).alpha;
      padded.beta = factors(inputs, turn_).beta;
      padded.op_a = form_.op_a;
      padded.op_b = form_.op_b;
      padded.batch = form_.batch;
      padded.gap = form_.gap;
      list_.add({.problem = padded, .inputs = inputs});
    }
    ++turn_;
  }

  CaseList list_;
  Form form_;
  std::size_t turn_ = 0;
};

void add_small(ShapeCases& cases) {
  for (const std::int64_t m : {0, 1, 5}) {
    for (const std::int64_t n : {0, 1, 5}) {
      for (const std::int64_t k : {0, 1, 5}) cases.add({m, n, k});
    }
  }
  for (std::int64_t size = 2; size <= 17; ++size) {
    cases.add({size, size, size});
    cases.add({size, 19 - size, size / 2});
    cases.add({19 - size, size, size + 3});
    cases.add({1, size, 33 - size});
    cases.add({40 - size, 2, size});
  }
}

void add_tile_neighbours(std::int64_t tile, ShapeCases& cases) {
  for (const std::int64_t size : {tile - 1, tile, tile + 1}) {
    cases.add({size, 6, 5});
    cases.add({5, size, 6});
    cases.add({6, 5, size});
    cases.add({size, size, 9});
    cases.add({size, size, depth_of(size)});
  }
  cases.add({tile + 1, tile - 1, depth_of(tile)});
  cases.add({tile - 1, tile, depth_of(tile) + 1});
  cases.add_aligned({tile, tile, depth_of(tile)});
  if (tile > kLargestRepeated) return;
  cases.add({2 * tile + 1, 2 * tile - 1, 2 * tile + 3});
  cases.add_aligned({tile + 4, 3 * tile - 4, 2 * tile + 4});
}

// Shapes that are distributed over the forms, each in one form.
std::vector<Shape> edges_of_forms(const Stage& stage) {
  std::vector<Shape> edges(kPrimeAndSkinny.begin(), kPrimeAndSkinny.end());
  for (const std::int64_t tile : stage.tile_sizes) {
    for (const std::int64_t size : {tile - 1, tile, tile + 1}) {
      edges.insert(edges.end(), {{size, 7, 5}, {5, size, 7}, {7, 5, size}});
    }
    edges.push_back({tile + 1, tile + 1, depth_of(tile) + 1});
  }
  return edges;
}

std::vector<Case> shape_cases(const Stage& stage, Inputs inputs) {
  ShapeCases cases;
  if (!is_variant(stage)) add_small(cases);
  for (const std::int64_t tile : stage.tile_sizes) add_tile_neighbours(tile, cases);
  for (const Shape& shape : kVectorShapes) cases.add_aligned(shape);
  for (const Shape& shape : kPrimeAndSkinny) cases.add(shape);
  for (const Shape& shape : kLarge) {
    if (!is_variant(stage)) cases.add(shape);
  }
  const std::vector<Form> forms = forms_of(stage);
  const std::vector<Shape> edges = edges_of_forms(stage);
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (is_variant(stage) && forms[i].batch > 1) continue;
    cases.set_form(forms[i]);
    for (std::size_t j = i; j < edges.size(); j += forms.size()) cases.add(edges[j]);
    for (std::size_t j = i % 2; j < kVectorShapes.size(); j += 2) {
      cases.add_aligned(kVectorShapes[j]);
    }
    if (is_variant(stage)) continue;
    for (const std::int64_t tile : stage.tile_sizes) {
      if (tile <= kLargestRepeated) cases.add_aligned({tile, tile, tile});
    }
  }
  std::vector<Case> all = cases.take();
  std::erase_if(all, [&](const Case& test_case) { return test_case.inputs != inputs; });
  return all;
}

}  // namespace

std::vector<Case> integer_shape_cases(const Stage& stage) {
  return shape_cases(stage, Inputs::kIntegers);
}

std::vector<Case> uniform_shape_cases(const Stage& stage) {
  return shape_cases(stage, Inputs::kUniform);
}

}  // namespace tilegate::ladder
