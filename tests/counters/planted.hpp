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

constexpr std::size_t kWords = 64;  // of `memory`

std::span<const Plant> plants();

}  // namespace tilegate::planted
