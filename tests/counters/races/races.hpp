// Small kernels with a known race each, and their clean twins.
#pragma once

#include <cstddef>
#include <span>

#include <tilegate/status.hpp>

namespace tilegate::races {

// What a report is about, as the detector words it.
enum class Hazard {
  kNone,
  kRace,           // two accesses that nothing orders
  kUnwritten,      // read of shared memory that nothing has written
  kPendingCopy,    // access before the wait for a cp.async
  kPendingBulk,    // access before the wait for a bulk copy
  kPendingRead,    // write to what a wgmma or a bulk store still reads
  kUnfenced,       // generic stores that the async proxy reads
  kAccumulators,   // accumulators before warpgroup_wait
  kEndedPeer,      // shared memory of a block that may have ended
  kSynchronizing,  // barriers themselves: deadlock, divergence, phase, counts
  kBounds,
};

struct Pair {
  const char* name;
  const char* group;
  Hazard hazard;  // of the racy twin
  Status (*racy)(float* memory);
  Status (*clean)(float* memory);  // several racy kernels may share one
  const char* wrong = nullptr;     // why the detector misses the race, or reports the clean twin
};

constexpr std::size_t kWords = 1024;  // of `memory`; word i holds i
constexpr std::size_t kResults = 640;

std::span<const Pair> thread_pairs();
std::span<const Pair> async_pairs();

}  // namespace tilegate::races
