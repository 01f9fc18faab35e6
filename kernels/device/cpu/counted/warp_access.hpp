// What one warp instruction costs the memory system: pure functions of the lanes' addresses.
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

// One load or store of a warp. `address` holds the lanes that `mask` names; those of shared memory
// count from the start of the block's storage.
struct WarpAccess {
  std::uint32_t mask = 0;
  std::uint32_t bytes = 4;  // of one lane: 4, 8 or 16
  std::array<std::uint64_t, kWarpSize> address{};
  // Of an asynchronous copy, as a load of global memory: where the lanes' bytes go in shared
  // memory; as a copy to shared memory: where they come from, or kNoOtherEnd: zeros.
  std::array<std::uint64_t, kWarpSize> other_end{};

  bool has(unsigned lane) const { return (mask >> lane & 1) != 0; }
  bool copies_something() const {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if (has(lane) && other_end[lane] != kNoOtherEnd) return true;
    }
    return false;
  }
};

// What an access costs, and the least that any pattern of as many different bytes could.
struct Cost {
  unsigned units = 0;  // sectors of global memory, wavefronts of shared memory
  unsigned ideal = 0;
};

// Different 32-byte sectors; of an asynchronous copy of 16 bytes as README.md says.
Cost sectors(const WarpAccess& access);

// Passes through the 32 banks; `ideal`: as many as there are phases. See README.md for the rules.
Cost wavefronts(const WarpAccess& access, bool store);

// The same of an asynchronous copy, which has two ends; of 16 bytes, `ideal` is a pass per 128
// bytes.
Cost copy_wavefronts(const WarpAccess& access);

}  // namespace tilegate::simt::counted
