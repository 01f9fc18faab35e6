// Sgemm: chooses the rung and its configuration for each problem.
//
// The stages in kChoices (kernels/CMakeLists.txt: CHOOSES_FROM) offer their configurations with
// expected times. A plan takes the fastest one, or the one that table.csv has for the problem class
// on this GPU, from measurements. Sgemm has three tiles of its own, for some small K and for very
// large extents. Stages that split operands take part only with Math::fp32_split.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
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
#include "two_parts.hpp"

namespace tilegate::sgemm {

constexpr auto kStages = [] {
  std::array<const Stage*, kChoices.size() + 1> stages{&kTiles};
  std::copy(kChoices.begin(), kChoices.end(), stages.begin() + 1);
  return stages;
}();

// Whether the configuration belongs to the family, in which a '*' at the end stands for a number.
bool is_of_family(std::string_view configuration, std::string_view family) {
  if (!family.ends_with('*')) return configuration == family;
  family.remove_suffix(1);
  return configuration.starts_with(family) &&
         configuration.find_first_not_of("0123456789", family.size()) == std::string_view::npos;
}

// Marks the candidates of the tuned table: the fastest measured for the problem class on this GPU.
// The table is of FP32. It is not read where the models expect split operands to be fastest.
void mark_tuned(const Problem& problem, const Device& device, std::vector<Candidate>& all) {
  const auto fastest = std::ranges::min_element(all, {}, &Candidate::seconds);
  if (fastest->choice.decides_on_device) return;
  for (const TunedCell& cell : kTuned) {
    if (cell.gpu != device.name || cell.problem_class != problem_class(problem)) continue;
    for (Candidate& candidate : all) {
      candidate.is_tuned = is_of_family(candidate.choice.configuration, cell.family);
    }
  }
}

// Ok if the stage supports the device and the problem.
Status check(const Stage& stage, const Problem& problem, const Device& device) {
  if (stage.math == Math::fp32_split && problem.math == Math::fp32) {
    return Status::unsupported("splits operands, which needs Math::fp32_split");
  }
  Status status = check_device(stage.requirements, device);
  return status.ok() ? stage.takes(problem) : status;
}

// The expected time of the fastest candidate in FP32.
double fp32_seconds(const std::vector<Candidate>& all) {
  double seconds = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : all) {
    if (!candidate.choice.decides_on_device) seconds = std::min(seconds, candidate.seconds);
  }
  return seconds;
}

// Weighs what candidates that split operands take where their parts do not serve and they multiply
// in FP64. README.md says how long that may be: 3 % longer than FP32, and what a look at the
// operands takes. Above, a candidate comes after FP32, and so does one that is hardly faster than
// FP32. Digits (Int8x3) may take longer in FP64, because they gain more with other data. Where
// Bf16x6 is hardly faster than digits it comes after them: digits have the time that normal
// operands need, and many need less.
void rank_split(const Problem& problem, std::vector<Candidate>& all) {
  constexpr double kSlower = 1.03, kSeconds = 3e-6, kBandwidth = 4e12;  // of an NVIDIA H200
  constexpr double kSlowerDigits = 1.03, kMostOfDigits = 1.3, kCost = 1.2;
  constexpr double kFaster = 0.9, kFasterThanFp32 = 0.95;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const auto is_bf16x6 = [](const Candidate& of) {
    return of.choice.configuration.starts_with("Bf16x6:");
  };
  const double fp32 = fp32_seconds(all);
  const auto [m, n, k] = problem.shape;
  const double bytes = sizeof(float) * static_cast<double>(problem.batch) *
                       static_cast<double>(m + n) * static_cast<double>(k);
  const double most = kSlower * fp32 + kSeconds + bytes / kBandwidth;
  double digits = kNone;
  for (Candidate& of : all) {
    if (!of.choice.decides_on_device) continue;
    if (of.seconds > kFasterThanFp32 * fp32 ||
        of.fallback_seconds > (is_bf16x6(of) ? 1.0 : kMostOfDigits) * most) {
      of.seconds += fp32;
    } else if (of.fallback_seconds > kSlowerDigits * most) {
      of.seconds *= kCost;
    }
    if (!is_bf16x6(of)) digits = std::min(digits, of.seconds);
  }
  for (Candidate& of : all) {
    if (is_bf16x6(of) && of.seconds > kFaster * digits) of.seconds /= kFaster;
  }
}

// Candidates of all stages, named like "StreamK:128x256x8": configuration 128x256x8 of StreamK.
// Appends to `reasons` why stages are unsupported.
std::vector<Candidate> of_all_stages(const Problem& problem, const Device& device,
                                     std::string& reasons) {
  std::vector<Candidate> all;
  const auto add_reason = [&](const Stage* stage, const Status& status) {
    reasons += "; " + std::string(stage->name) + ": " + status.message();
  };
  // idea:begin Sgemm
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
      if (stage->math == Math::fp32_split && !choice.decides_on_device) continue;  // in FP32 anyway
      choice.configuration = std::string(stage->name) + ":" + choice.configuration;
      all.push_back(std::move(candidate));
    }
  }
  // idea:end
  return all;
}

std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  std::string reasons;
  std::vector<Candidate> all = of_all_stages(problem, device, reasons);
  if (all.empty()) {
    return {
        {.choice = {.status = Status::unsupported("no kernel supports this problem" + reasons)}}};
  }
  const auto fastest_of_part = [&](const Problem& part) -> std::optional<Candidate> {
    std::vector<Candidate> of_part = of_all_stages(part, device, reasons);
    if (of_part.empty()) return {};
    return std::move(*std::ranges::min_element(of_part, {}, &Candidate::seconds));
  };
  std::ranges::move(in_two_parts(problem, device, fp32_seconds(all), fastest_of_part),
                    std::back_inserter(all));
  rank_split(problem, all);
  mark_tuned(problem, device, all);
  return all;
}

// Those of all stages that compute in panels.
std::vector<Candidate> panels(const Problem& problem, const Device& device,
                              std::size_t workspace_limit) {
  std::vector<Candidate> all;
  for (const Stage* stage : kStages) {
    if (stage->panels == nullptr || !check(*stage, problem, device).ok()) continue;
    for (Candidate& candidate : stage->panels(problem, device, workspace_limit)) {
      Choice& choice = candidate.choice;
      choice.configuration = std::string(stage->name) + ":" + choice.configuration;
      all.push_back(std::move(candidate));
    }
  }
  return all;
}

// Prepares the stages that the current device can run.
Status setup() {
  for (const Stage* stage : kStages) {
    if (!check_device(stage->requirements, device::current()).ok()) continue;
    if (Status status = stage->prepare(); !status.ok()) return status;
  }
  return {};
}

// Union over all stages.
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
    .idea = "the fastest rung for each problem",
    .takes_transposed = true,
    .takes_batches = true,
    .tile_sizes = tile_sizes(),
    .candidates = candidates,
    .panels = panels,
    .setup = setup,
};

}  // namespace tilegate::sgemm
