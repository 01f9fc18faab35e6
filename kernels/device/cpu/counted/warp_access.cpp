#include "warp_access.hpp"

#include <algorithm>
#include <bit>

namespace tilegate::simt::counted {
namespace {

// Different keys, in the order of their coming.
class DistinctKeys {
 public:
  void add(std::uint64_t key) {
    if (size_ > 0 && keys_[size_ - 1] == key) return;
    const auto end = keys_.begin() + size_;
    if (std::find(keys_.begin(), end, key) == end) keys_[size_++] = key;
  }
  unsigned size() const { return size_; }

 private:
  std::array<std::uint64_t, 2 * kWarpSize> keys_;
  unsigned size_ = 0;
};

// For each bank the number of different words, the maximum over banks.
unsigned passes(const WarpAccess& access, std::uint32_t lanes) {
  std::array<std::array<std::uint64_t, kWarpSize>, kBanks> words;
  std::array<unsigned, kBanks> count{};
  unsigned most = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto first = access.address[std::countr_zero(lanes)] / kBankBytes;
    for (unsigned i = 0; i < access.bytes / kBankBytes; ++i) {
      const std::uint64_t word = first + i;
      auto& in_bank = words[word % kBanks];
      unsigned& n = count[word % kBanks];
      if (std::find(in_bank.begin(), in_bank.begin() + n, word) != in_bank.begin() + n) continue;
      in_bank[n++] = word;
      most = std::max(most, n);
    }
  }
  return most;
}

// Does every lane that takes part share its address with lane ^ distance, if that does too?
bool shared_with(const WarpAccess& access, unsigned distance) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const unsigned other = lane ^ distance;
    if (access.has(lane) && access.has(other) && access.address[lane] != access.address[other]) {
      return false;
    }
  }
  return true;
}

// Lanes that are served together.
unsigned phase_lanes(const WarpAccess& access, bool store) {
  unsigned lanes = kWarpSize * kBankBytes / access.bytes;
  if (lanes < kWarpSize && !store && (shared_with(access, 1) || shared_with(access, 2))) lanes *= 2;
  return std::min(lanes, kWarpSize);
}

}  // namespace

Cost sectors(const WarpAccess& access) {
  DistinctKeys touched;
  std::uint64_t bytes = 0;
  DistinctKeys starts;
  for (std::uint32_t lanes = access.mask; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t address = access.address[std::countr_zero(lanes)];
    touched.add(address / kSectorBytes);
    starts.add(address);
  }
  bytes = std::uint64_t{starts.size()} * access.bytes;
  return {touched.size(), static_cast<unsigned>((bytes + kSectorBytes - 1) / kSectorBytes)};
}

Cost wavefronts(const WarpAccess& access, bool store) {
  const unsigned lanes = phase_lanes(access, store);
  Cost cost;
  for (unsigned first = 0; first < kWarpSize; first += lanes) {
    const std::uint64_t phase = ((std::uint64_t{1} << lanes) - 1) << first;
    const auto mask = access.mask & static_cast<std::uint32_t>(phase);
    if (mask == 0) continue;
    cost.units += passes(access, mask);
    ++cost.ideal;
  }
  return cost;
}

}  // namespace tilegate::simt::counted
