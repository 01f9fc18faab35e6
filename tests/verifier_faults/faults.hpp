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

// In device memory: flips the bits of the mask in a word; has 64 threads store their numbers to it,
// so that the last one stays.
Status flip_bits(float* word, std::uint32_t mask, Stream stream);
Status store_by_all_threads(float* word, Stream stream);

}  // namespace tilegate::faults
