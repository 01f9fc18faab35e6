// Stages with planted faults, and their right twins: what the verifier must reject, and must pass.
#pragma once

#include <span>
#include <string_view>

#include <tilegate/stage.hpp>

namespace tilegate::faults {

// What it takes to see a fault reliably.
enum class Needs {
  kNothing,
  kExecutor,   // a GPU may run it right by luck; its sanitizers are for that
  kSanitizer,  // guards that cannot be read: the executor under the address sanitizer
};

struct PlantedFault {
  Stage stage;                 // its name says what is wrong
  std::string_view caught_by;  // checks that may catch it, "finite|exact"; empty: it is right
  Needs needs = Needs::kNothing;
};

std::span<const PlantedFault> element_faults();  // one thread per element
std::span<const PlantedFault> tile_faults();     // tiles in shared memory

// What takes the cases of the ladder to see, each list beginning with a right stage.
std::span<const Stage> vector_faults();
std::span<const Stage> stride_faults();
std::span<const Stage> workspace_faults();
std::span<const Stage> rounding_faults();
std::span<const Stage> plan_faults();

}  // namespace tilegate::faults
