// What a stage's launches do, counted: for the whole and for each line of its source.
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
  kSharedCopy,      // by an asynchronous copy, which counts as a global load, too
  kBulkLoad,        // by a bulk or tensor copy from global memory
  kBulkStore,       // and to it
  kSharedMultiply,  // by a multiplication of a warpgroup
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
  std::uint64_t excess = 0;    // units beyond the least for as many bytes; shared: bank conflicts
  std::uint64_t bytes = 0;     // that threads asked for

  void add(const Cost& cost, std::uint64_t lanes_bytes) {
    ++requests;
    units += cost.units;
    excess += cost.units - cost.ideal;
    bytes += lanes_bytes;
  }
};

// One line's accesses of one kind, and the costliest of them.
struct Line {
  std::uint32_t location = 0;  // of Sites
  Kind kind = Kind::kGlobalLoad;
  Traffic traffic;
  WarpAccess worst;  // of no lanes where it is not by lanes
  Cost worst_cost;
};

struct Counters {
  std::array<Traffic, kKinds> traffic;
  std::uint64_t barriers = 0;  // of blocks
  std::uint64_t fma = 0;       // of threads
  std::vector<Line> lines;     // in the order of the source

  const Traffic& of(Kind kind) const { return traffic[static_cast<std::size_t>(kind)]; }
  // What few kernels do is named where it is done.
  bool names(Kind kind) const { return kind <= Kind::kSharedStore || of(kind).requests > 0; }
};

}  // namespace tilegate::simt::counted
