// What one warp instruction costs the memory system: pure functions of the lanes' addresses.
#pragma once

#include <array>
#include <cstdint>

namespace tilegate::simt::counted {

constexpr unsigned kWarpSize = 32;
constexpr unsigned kBanks = 32;
constexpr unsigned kBankBytes = 4;
constexpr unsigned kSectorBytes = 32;

// One load or store of a warp. `address` holds the lanes that `mask` names; those of shared memory
// count from the start of the block's storage.
struct WarpAccess {
  std::uint32_t mask = 0;
  std::uint32_t bytes = 4;  // of one lane: 4, 8 or 16
  std::array<std::uint64_t, kWarpSize> address{};

  bool has(unsigned lane) const { return (mask >> lane & 1) != 0; }
};

// What an access costs, and the least that any pattern of as many different bytes could.
struct Cost {
  unsigned units = 0;  // sectors of global memory, wavefronts of shared memory
  unsigned ideal = 0;
};

// Different 32-byte sectors.
Cost sectors(const WarpAccess& access);

// Passes through the 32 banks; `ideal`: as many as there are phases. See README.md for the rule.
Cost wavefronts(const WarpAccess& access, bool store);

}  // namespace tilegate::simt::counted
