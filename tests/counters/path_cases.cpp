// Paths that the ladder's cases under the detector leave out, as only a longer K, more tiles than
// blocks or other operands take them: every configuration of every rung, with rings that go round
// more than once, and, of rungs whose device decides, every decision and every kernel that splits.
#include "counters/path_cases.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <tilegate/catalogue.hpp>
#include <tilegate/device.hpp>

#include "ladder/case_list.hpp"
#include "thorough.hpp"

namespace tilegate::ladder {
namespace {

// As many products as make every block go on to a second tile, pairs of blocks to a third.
constexpr std::int64_t kMoreThanBlocks = 5;
constexpr int kFp32 = 32, kFp64 = 64;  // of Choice::decides_on_device

// On GPUs of compute capability 9.0 kernels overlap with those before.
class PathCases {
 public:
  explicit PathCases(const Stage& stage) : stage_(stage) {}

  // In these configurations, or in all. `decision`: as in Case.
  void add(const Padded& padded, int decision = 0, const std::set<std::string>& configurations = {},
           int compute_capability = 90) {
    add_if(padded, decision, compute_capability, {}, [&](const std::string& configuration) {
      return configurations.empty() || configurations.contains(configuration);
    });
  }

  // With large elements in both operands.
  void add_outliers(const Padded& padded, int decision, const std::string& configuration) {
    const std::int64_t last = padded.shape.k - 1;
    const std::vector<verifier::Plant> outliers = {{Operand::kA, 0, 0, 1e9F},
                                                   {Operand::kA, padded.shape.m - 1, last, -2e9F},
                                                   {Operand::kB, last, 0, 1e9F},
                                                   {Operand::kB, 1, padded.shape.n - 1, 3e9F}};
    add_if(padded, decision, 90, outliers,
           [&](const std::string& other) { return other == configuration; });
  }

  // By planes of Bf16x6, with an element so small that they may lose bits; then in FP64.
  void add_small(const Padded& padded) {
    std::vector<verifier::Plant> plants = plants_for(stage_.name, 6);
    plants.push_back({Operand::kA, 1, 0, 1e-36F});
    add_if(padded, kFp64, 90, plants, [](const std::string&) { return true; });
  }

  // With an element that the sample of Bf16x6 does not show, too large for the scale of halves.
  void add_hidden(const Padded& padded) {
    add_if(padded, kFp64, 90, {{Operand::kA, 0, 32 + 20, 0x1p14F}},
           [](const std::string&) { return true; });
  }

  // In configurations whose tiles no problem before was for.
  void add_others(const Padded& padded) {
    const std::set<std::string> before = tiles_;
    add_if(padded, 0, 90, {}, [&](const std::string& configuration) {
      return !before.contains(tile_of(configuration));
    });
  }

  // In panels, in these configurations.
  void add_panels(const Padded& padded, std::size_t workspace_limit,
                  const std::set<std::string>& configurations) {
    Case test_case{.problem = padded, .compute_capability = 90, .workspace_limit = workspace_limit};
    for (const Candidate& candidate :
         stage_.panels(padded, device_of(test_case), workspace_limit)) {
      test_case.configuration = candidate.choice.configuration;
      if (configurations.contains(tile_of(test_case.configuration))) list_.add(test_case);
    }
  }

  std::vector<Case> take() { return list_.take(); }

 private:
  template <typename Select>
  void add_if(const Padded& padded, int decision, int compute_capability,
              const std::vector<verifier::Plant>& plants, Select select) {
    Case test_case{.problem = padded,
                   .plants = plants,
                   .decision = decision,
                   .compute_capability = compute_capability};
    if (plants.empty() && !is_variant(stage_)) test_case.plants = plants_for(stage_.name, decision);
    for (const Candidate& candidate : stage_.candidates(padded, device_of(test_case))) {
      test_case.configuration = candidate.choice.configuration;
      if (is_borrowed(test_case.configuration) || !select(test_case.configuration)) continue;
      tiles_.insert(tile_of(test_case.configuration));
      list_.add(test_case);
    }
  }

  const Stage& stage_;
  std::set<std::string> tiles_;
  CaseList list_;
};

// Rows and columns for both warpgroups, and for both blocks of a pair.
void add_digits(PathCases& cases) {
  cases.add({.shape = {67, 2, 288}, .batch = kMoreThanBlocks}, 6,
            {"64x128pingpong", "128x128streamk"});
  cases.add({.shape = {67, 130, 288}, .batch = kMoreThanBlocks}, 6,
            {"128x128pairs", "128x128pairsstreamk"});
  cases.add({.shape = {67, 2, 224}, .batch = kMoreThanBlocks}, 6, {"128x64"});
  cases.add({.shape = {67, 2, 128}, .batch = kMoreThanBlocks}, 6, {"128x64warps"});
  cases.add({.shape = {67, 2, 288}}, kFp64,  // in parts
            {"64x128pingpong", "128x128streamk", "128x128pairs", "128x128pairsstreamk", "128x64",
             "128x64splitk"});
  cases.add({.shape = {67, 2, 288}}, kFp32, {"128x64warps"});
  cases.add({.shape = {67, 2, 136}, .batch = kMoreThanBlocks}, kFp64, {"128x64", "128x128pairs"});
  // The other kernels that split, and a tile in three pieces.
  cases.add({.shape = {3, 5, 1060}}, 6, {"128x64", "128x64splitk"});
  cases.add({.shape = {3, 5, 1540}}, 6, {"128x128streamk"});
  cases.add({.shape = {3, 2, 12300}}, kFp64, {"128x64"});
  // Operands that TMA copies, in several groups of rows per cluster and in one.
  cases.add({.shape = {67, 4, 288}, .batch = kMoreThanBlocks}, 6, {"128x64"});
  cases.add({.shape = {3, 4, 1060}}, 6, {"128x64"});
  // Digits of A serve two panels; those of the next K add to C.
  cases.add_panels({.shape = {3, 130, 260}}, 130'000, {"128x64", "128x128pairs"});
  if (!is_thorough()) return;
  cases.add({.shape = {3, 2, 12300}}, 6, {"128x64"});
  cases.add({.shape = {3, 2, 43616}}, 6, {"128x64"});  // more than int32 holds
}

void add_fp16x3(PathCases& cases) {
  cases.add({.shape = {67, 2, 288}, .batch = kMoreThanBlocks}, 3);
  cases.add({.shape = {67, 2, 136}, .batch = kMoreThanBlocks}, kFp64);
  cases.add({.shape = {3, 5, 1060}}, 3);  // more runs than one sum has
  cases.add({.shape = {3, 5, 2060}}, 3);  // more rows of a block of the split pass
  if (is_thorough()) cases.add({.shape = {4, 4, 1024}, .batch = 64}, 3);  // long runs
}

}  // namespace

std::string tile_of(const std::string& configuration) {
  return configuration.substr(0, configuration.find('_'));
}

bool is_borrowed(const std::string& configuration) {
  return find_in_catalogue(configuration.substr(0, configuration.find(':'))) != nullptr;
}

std::vector<Case> path_cases(const Stage& stage) {
  PathCases cases(stage);
  if (stage.candidates == nullptr) return {};
  if (stage.name == "Int8x3") {
    add_digits(cases);
  } else if (stage.name == "Int8x3.eight") {
    cases.add({.shape = {3, 2, 128}}, 8);
    cases.add({.shape = {3, 2, 128}, .batch = kMoreThanBlocks}, 8,
              {"128x64", "64x128pingpong", "128x128pairs"});
    cases.add({.shape = {67, 66, 520}}, 8, {"128x64splitk"});
  } else if (stage.name == "Int8x3.ten") {
    const std::set<std::string> of_wgmma = {"64x128pingpong", "128x128streamk", "128x128pairs",
                                            "128x128pairsstreamk", "128x64"};
    cases.add({.shape = {3, 2, 160}}, 10, of_wgmma);
    cases.add({.shape = {67, 66, 288}, .batch = kMoreThanBlocks}, 10, {"128x128pairs"});
    if (is_thorough()) {
      cases.add({.shape = {67, 66, 288}, .batch = kMoreThanBlocks}, 10, {"128x64"});
    }
    cases.add({.shape = {3, 5, 1060}}, 10, {"128x64", "128x64splitk"});  // several slices of K
  } else if (stage.name == "Int8x3.fp64") {
    cases.add({.shape = {3, 2, 128}}, kFp64, {"128x64"});
  } else if (stage.name == "Int8x3.outliers") {
    cases.add_outliers({.shape = {11, 5, 292}}, 6, "128x64");
    cases.add_outliers({.shape = {11, 5, 292}, .batch = 2}, 6, "128x128pairs");
    cases.add_outliers({.shape = {70, 3, 292}}, 6, "128x64");  // more strips than blocks
    cases.add_outliers({.shape = {3, 2, 3110}}, 6, "128x64");  // strips with two parts of K
  } else if (stage.name == "Fp16x3") {
    add_fp16x3(cases);
  } else if (stage.name == "Bf16x6") {
    cases.add({.shape = {67, 66, 292}});                           // a ring that is filled again
    cases.add({.shape = {8, 12, 260}, .batch = kMoreThanBlocks});  // work tiles after each other
    cases.add({.shape = {5, 7, 1060}});                            // long runs, splits
    for (const int decision : {6, kFp64}) {
      cases.add({.shape = {67, 66, 292}}, decision);
      cases.add({.shape = {8, 12, 260}, .batch = kMoreThanBlocks}, decision);
    }
    cases.add_small({.shape = {5, 7, 132}});
    cases.add_hidden({.shape = {5, 7, 292}});   // halves that overflow
    cases.add_hidden({.shape = {5, 7, 1060}});  // before the last sum of runs
  } else {
    for (const Shape& shape : {Shape{5, 7, 292}, Shape{8, 8, 292}}) {  // some have vectors only
      cases.add({.shape = shape});
      if (stage.name != "Skinny") continue;
      // With less shared memory, and so shorter rings.
      for (const int capability : {80, 86}) cases.add({.shape = shape}, 0, {}, capability);
    }
    cases.add_others({.shape = {132, 260, 164}});
    cases.add_others({.shape = {8, 1024, 52}});  // the widest blocks of OuterProduct
    for (const std::int64_t few : {1, 3, 8, 16, 24, 32}) {
      cases.add_others({.shape = {few, 300, 164}});
      cases.add_others({.shape = {300, few, 164}});
    }
  }
  return cases.take();
}

}  // namespace tilegate::ladder
