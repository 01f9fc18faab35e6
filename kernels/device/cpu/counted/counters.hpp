// Counters of a stage's launches: totals, and for each source line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "warp_access.hpp"

namespace tilegate::simt::counted {

enum class Kind : std::uint8_t {
  kGlobalLoad,
  kGlobalStore,
  kSharedLoad,
  kSharedStore,
  kSharedCopy,      // cp.async: its write to shared memory; it is a global load, too
  kBulkLoad,        // bulk and tensor copies from global memory
  kBulkStore,       // bulk and tensor copies to global memory
  kSharedMultiply,  // wgmma: its reads of shared memory
  kGlobalAtomic,
  kSharedAtomic,
};
constexpr std::size_t kKinds = 10;

constexpr bool is_shared(Kind kind) {
  return kind == Kind::kSharedLoad || kind == Kind::kSharedStore || kind == Kind::kSharedCopy ||
         kind == Kind::kSharedMultiply || kind == Kind::kSharedAtomic;
}

// Accesses of one kind.
struct Traffic {
  std::uint64_t requests = 0;  // warp instructions
  std::uint64_t units = 0;     // global, bulk: sectors of 32 bytes; shared: wavefronts
  std::uint64_t excess = 0;    // global: units beyond the minimum; shared: bank conflicts
  std::uint64_t bytes = 0;     // requested by the threads

  void add(const Cost& cost, std::uint64_t lanes_bytes) {
    ++requests;
    units += cost.units;
    excess += cost.units - cost.ideal;
    bytes += lanes_bytes;
  }
};

// A source line's accesses of one kind, and the worst of them.
struct Line {
  std::uint32_t location = 0;  // index of Sites
  Kind kind = Kind::kGlobalLoad;
  Traffic traffic;
  WarpAccess worst;  // no lanes if the kind is not counted by lanes
  Cost worst_cost;
};

struct Counters {
  std::array<Traffic, kKinds> traffic;
  std::uint64_t barriers = 0;  // per block
  std::uint64_t fma = 0;       // per thread
  std::vector<Line> lines;     // in source order

  const Traffic& of(Kind kind) const { return traffic[static_cast<std::size_t>(kind)]; }
  // Kinds that few kernels use are reported only if they occur.
  bool names(Kind kind) const { return kind <= Kind::kSharedStore || of(kind).requests > 0; }
};

}  // namespace tilegate::simt::counted
