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
constexpr std::uint8_t kNoSource = 255;

// One load or store of a warp. `address` holds the lanes that `mask` names; those of shared memory
// count from the start of the block's storage.
struct WarpAccess {
  std::uint32_t mask = 0;
  std::uint32_t bytes = 4;  // of one lane: 4, 8 or 16
  std::array<std::uint64_t, kWarpSize> address{};
  // Of an asynchronous copy: the bank of each lane's first word in a line of 128 bytes of global
  // memory, or kNoSource where it writes zeros.
  std::array<std::uint8_t, kWarpSize> source_bank{};

  bool has(unsigned lane) const { return (mask >> lane & 1) != 0; }
};

inline std::uint8_t source_bank_of(const void* gmem) {
  const auto address = reinterpret_cast<std::uintptr_t>(gmem);
  return gmem == nullptr ? kNoSource : static_cast<std::uint8_t>(address % kLineBytes / kBankBytes);
}

// What an access costs, and the least that any pattern of as many different bytes could.
struct Cost {
  unsigned units = 0;  // sectors of global memory, wavefronts of shared memory
  unsigned ideal = 0;
};

// Different 32-byte sectors.
Cost sectors(const WarpAccess& access);

// Passes through the 32 banks; `ideal`: as many as there are phases. See README.md for the rule.
Cost wavefronts(const WarpAccess& access, bool store);

// The same of an asynchronous copy, whose words have a bank each where they come from, too.
Cost copy_wavefronts(const WarpAccess& access);

}  // namespace tilegate::simt::counted
