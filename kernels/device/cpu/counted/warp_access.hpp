// Memory cost of one warp instruction, as pure functions of the lanes' addresses.
#pragma once

#include <array>
#include <cstdint>

namespace tilegate::simt::counted {

constexpr unsigned kWarpSize = 32;
constexpr unsigned kBanks = 32;
constexpr unsigned kBankBytes = 4;
constexpr unsigned kSectorBytes = 32;
constexpr unsigned kLineBytes = kBanks * kBankBytes;
constexpr std::uint64_t kNoOtherEnd = ~std::uint64_t{0};

// One load or store of a warp. `address` is valid for the lanes of `mask`. Addresses of shared
// memory are offsets.
struct WarpAccess {
  std::uint32_t mask = 0;
  std::uint32_t bytes = 4;  // per lane: 4, 8 or 16
  std::array<std::uint64_t, kWarpSize> address{};
  // For an asynchronous copy, the other address: the destination if this is its global load, the
  // source if this is its write to shared memory. kNoOtherEnd: it writes zeros.
  std::array<std::uint64_t, kWarpSize> other_end{};

  bool has(unsigned lane) const { return (mask >> lane & 1) != 0; }
  bool copies_something() const {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if (has(lane) && other_end[lane] != kNoOtherEnd) return true;
    }
    return false;
  }
};

// The cost of an access, and the minimum over all patterns with as many different bytes.
struct Cost {
  unsigned units = 0;  // sectors of global memory, wavefronts of shared memory
  unsigned ideal = 0;
};

// Distinct 32-byte sectors. ../../README.md has the rule for asynchronous copies of 16 bytes.
Cost sectors(const WarpAccess& access);

// Passes through the 32 banks; `ideal`: one per phase. ../../README.md has the rules.
Cost wavefronts(const WarpAccess& access, bool store);

// The same for an asynchronous copy, which accesses banks at both ends. For copies of 16 bytes
// `ideal` is one pass per 128 bytes.
Cost copy_wavefronts(const WarpAccess& access);

}  // namespace tilegate::simt::counted
