// Sgemm: the rung that suits the problem, and of it the configuration.
//
// Each of the stages in kChoices (kernels/CMakeLists.txt: CHOOSES_FROM) offers its configurations
// with the time that it expects each to take; a plan is the quickest of all. Three tiles of Sgemm's
// own are among them, for devices and problems that no other takes.
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/choices/sgemm.hpp>
#include <tilegate/stage.hpp>

#include "tiles.cuh"

namespace tilegate::sgemm {

// f(stage) for every stage to choose from.
template <typename F>
void for_each_stage(F f) {
  for (const Stage* stage : kChoices) f(*stage);
  f(kTiles);
}

// "StreamK:128x256x8": configuration 128x256x8 of StreamK.
std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  std::vector<Candidate> all;
  std::string reasons;  // of who cannot do it
  const auto is_ok = [&](const Stage& stage, const Status& status) {
    if (!status.ok()) reasons += "; " + std::string(stage.name) + ": " + status.message();
    return status.ok();
  };
  for_each_stage([&](const Stage& stage) {
    if (!is_ok(stage, check_device(stage.requirements, device))) return;
    if (!is_ok(stage, stage.takes(problem))) return;
    for (Candidate& candidate : stage.candidates(problem, device)) {
      Choice& choice = candidate.choice;
      if (!is_ok(stage, choice.status)) continue;
      choice.configuration = std::string(stage.name) + ":" + choice.configuration;
      all.push_back(std::move(candidate));
    }
  });
  if (all.empty()) {
    all.push_back({.choice = {.status = Status::unsupported("no rung can do it" + reasons)}});
  }
  return all;
}

// Of the stages that the current device can run.
Status setup() {
  Status status;
  for_each_stage([&](const Stage& stage) {
    if (!status.ok() || !check_device(stage.requirements, device::current()).ok()) return;
    status = stage.prepare();
  });
  return status;
}

std::span<const std::int64_t> tile_sizes() {
  static const auto kSizes = [] {
    std::set<std::int64_t> sizes;
    for_each_stage([&](const Stage& stage) {
      sizes.insert(stage.tile_sizes.begin(), stage.tile_sizes.end());
    });
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
