// Stages with planted faults, and their right twins: what the verifier must reject, and must pass.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <tilegate/stage.hpp>

namespace tilegate::faults {

// What it takes to see a fault reliably.
enum class Needs {
  kNothing,
  kSchedule,   // the executor; a GPU may run it right by luck, and racecheck is for that
  kSanitizer,  // guards that cannot be read: the executor under the address sanitizer
};

struct PlantedFault {
  Stage stage;                 // its name says what is wrong
  std::string_view caught_by;  // checks that may catch it, "finite|exact"; empty: it is right
  Needs needs = Needs::kNothing;
};

// A stage around `kEnqueue`, for tiles of 16.
template <Status (*kEnqueue)(const KernelArgs& args, Stream stream)>
Choice choose(const Problem& problem, const Device& /*device*/) {
  return {.rounding_chain = problem.shape.k + 2, .enqueue = kEnqueue};
}
inline constexpr std::int64_t kTileSizes[] = {16};
template <Status (*kEnqueue)(const KernelArgs& args, Stream stream)>
constexpr Stage make_stage(std::string_view name) {
  return {.name = name,
          .idea = "a planted fault",
          .tile_sizes = kTileSizes,
          .choose = choose<kEnqueue>};
}

std::span<const PlantedFault> element_faults();  // one thread per element
std::span<const PlantedFault> tile_faults();     // tiles in shared memory

}  // namespace tilegate::faults
