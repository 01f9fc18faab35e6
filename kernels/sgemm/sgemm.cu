// Sgemm: the rung that suits the problem, and of it the configuration.
//
// Each of the stages in kChoices (kernels/CMakeLists.txt: CHOOSES_FROM) offers its configurations
// with the time that it expects each to take; a plan is the quickest of all, or what table.csv has
// for such problems on this GPU model, from measurements. Three tiles of Sgemm's own are among
// them, for devices and problems that no other takes. Stages that split operands are asked only
// where the problem allows it (Math::fp32_split).
#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tilegate/choices/sgemm.hpp>
#include <tilegate/stage.hpp>
#include <tilegate/tuned/sgemm.hpp>

#include "tiles.cuh"

namespace tilegate::sgemm {

constexpr auto kStages = [] {
  std::array<const Stage*, kChoices.size() + 1> stages{&kTiles};
  std::copy(kChoices.begin(), kChoices.end(), stages.begin() + 1);
  return stages;
}();

// Whether the configuration is of the family: the same, but for the number that a '*' stands for.
bool is_of_family(std::string_view configuration, std::string_view family) {
  if (!family.ends_with('*')) return configuration == family;
  family.remove_suffix(1);
  return configuration.starts_with(family) &&
         configuration.find_first_not_of("0123456789", family.size()) == std::string_view::npos;
}

// Marks what was measured to be the quickest of such problems on such a device, operands not split.
void mark_tuned(const Problem& problem, const Device& device, std::vector<Candidate>& all) {
  if (problem.math != Math::fp32) return;
  for (const TunedCell& cell : kTuned) {
    if (cell.gpu != device.name || cell.problem_class != problem_class(problem)) continue;
    for (Candidate& candidate : all) {
      candidate.is_tuned = is_of_family(candidate.choice.configuration, cell.family);
    }
  }
}

// Ok if the stage can be asked.
Status check(const Stage& stage, const Problem& problem, const Device& device) {
  if (stage.math == Math::fp32_split && problem.math == Math::fp32) {
    return Status::unsupported("splits operands, which needs Math::fp32_split");
  }
  Status status = check_device(stage.requirements, device);
  return status.ok() ? stage.takes(problem) : status;
}

// Named "StreamK:128x256x8": configuration 128x256x8 of StreamK.
std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  std::vector<Candidate> all;
  std::string reasons;  // of those who cannot do it
  const auto add_reason = [&](const Stage* stage, const Status& status) {
    reasons += "; " + std::string(stage->name) + ": " + status.message();
  };
  for (const Stage* stage : kStages) {
    if (const Status status = check(*stage, problem, device); !status.ok()) {
      add_reason(stage, status);
      continue;
    }
    for (Candidate& candidate : stage->candidates(problem, device)) {
      Choice& choice = candidate.choice;
      if (!choice.status.ok()) {
        add_reason(stage, choice.status);
        continue;
      }
      choice.configuration = std::string(stage->name) + ":" + choice.configuration;
      all.push_back(std::move(candidate));
    }
  }
  if (all.empty()) {
    all.push_back({.choice = {.status = Status::unsupported("no rung can do it" + reasons)}});
  }
  mark_tuned(problem, device, all);
  return all;
}

// Of the stages that the current device can run.
Status setup() {
  for (const Stage* stage : kStages) {
    if (!check_device(stage->requirements, device::current()).ok()) continue;
    if (Status status = stage->prepare(); !status.ok()) return status;
  }
  return {};
}

// Of all stages, each once.
std::span<const std::int64_t> tile_sizes() {
  static const auto kSizes = [] {
    std::set<std::int64_t> sizes;
    for (const Stage* stage : kStages) {
      sizes.insert(stage->tile_sizes.begin(), stage->tile_sizes.end());
    }
    return std::vector(sizes.begin(), sizes.end());
  }();
  return kSizes;
}

extern const Stage stage;
const Stage stage{
    .name = "Sgemm",
    .idea = "the rung that suits the problem",
    .takes_transposed = true,
    .takes_batches = true,
    .tile_sizes = tile_sizes(),
    .candidates = candidates,
    .setup = setup,
};

}  // namespace tilegate::sgemm
