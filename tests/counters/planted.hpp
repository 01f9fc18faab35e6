// Kernels with a hazard each, and their clean twins.
#pragma once

#include <span>
#include <string>

#include <tilegate/stage.hpp>

namespace tilegate::planted {

struct Plant {
  const char* name;
  Status (*faulty)(float* memory);
  Status (*clean)(float* memory);
  const char* message;  // what the finding must say; ECMAScript
};

constexpr std::size_t kWords = 128;  // of `memory`

std::span<const Plant> plants();

// Calls of a stage, as Plan::launch makes them.
struct PlantedCall {
  const char* name;
  Problem problem;
  Status (*faulty)(const KernelArgs& args, Stream stream);
  Status (*clean)(const KernelArgs& args, Stream stream);
  const char* message;
};

std::span<const PlantedCall> planted_calls();

}  // namespace tilegate::planted
