// Kernels with a hazard each, and their clean twins.
#pragma once

#include <span>
#include <string>

#include <tilegate/stage.hpp>

namespace tilegate::planted {

// How the same kernel, compiled without counters, shows its hazard.
enum class Shows {
  kNowhere,
  kStops,         // under every schedule
  kWrongForward,  // a result that differs from the clean twin's
  kWrongReverse,
};

struct Plant {
  const char* name;
  Status (*faulty)(float* memory);
  Status (*clean)(float* memory);
  const char* message;  // what the finding must say; ECMAScript
  Shows shows = Shows::kNowhere;
};

constexpr std::size_t kWords = 1024;   // of `memory`
constexpr std::size_t kResults = 640;  // the first word that asynchronous plants store

std::span<const Plant> plants();
std::span<const Plant> async_plants();
std::span<const Plant> cluster_plants();
std::span<const Plant> mma_plants();
std::span<const Plant> plain_plants();  // tests/plain

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
