#include "warp_access.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace tilegate::simt::counted {
namespace {

constexpr unsigned kBypassBytes = 16;  // copies of as many pass by the L1 cache

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

// Of copied words, at most one per bank at either end goes in a pass: as many as share a bank with
// one of them, at the one end or the other.
unsigned copy_passes(const WarpAccess& access, std::uint32_t lanes) {
  struct Word {
    std::uint64_t to, from;  // banks
  };
  constexpr std::uint64_t kNone = kBanks;
  std::array<Word, kBanks> words;
  unsigned size = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t to = access.address[lane] / kBankBytes;
    const std::uint64_t from = access.other_end[lane] / kBankBytes;
    const bool has_source = access.other_end[lane] != kNoOtherEnd;
    for (unsigned i = 0; i < access.bytes / kBankBytes; ++i) {
      words[size++] = {(to + i) % kBanks, has_source ? (from + i) % kBanks : kNone};
    }
  }
  unsigned most = 0;
  for (unsigned i = 0; i < size; ++i) {
    const auto meets = [&](const Word& other) {
      return other.to == words[i].to || (other.from == words[i].from && other.from != kNone);
    };
    const auto met = std::count_if(words.begin(), words.begin() + size, meets);
    most = std::max(most, static_cast<unsigned>(met));
  }
  return most;
}

// Copies of 16 bytes pass by the L1 cache. Between a line of global memory and one of shared memory
// a pass brings each sector at either end from or to one sector at the other. Zeros are stored by
// themselves, beside copies that some lane of the warp makes.
unsigned bypass_passes(const WarpAccess& access, std::uint32_t lanes) {
  struct Way {
    std::uint64_t from, to;  // sectors
    bool joins_lines_of(const Way& other) const {
      constexpr std::uint64_t kSectors = kLineBytes / kSectorBytes;
      return from / kSectors == other.from / kSectors && to / kSectors == other.to / kSectors;
    }
    bool operator==(const Way&) const = default;
  };
  std::vector<Way> ways;
  std::uint32_t zeros = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    if (access.other_end[lane] == kNoOtherEnd) {
      zeros |= 1U << lane;
      continue;
    }
    const Way way{access.other_end[lane] / kSectorBytes, access.address[lane] / kSectorBytes};
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  }
  unsigned copies = 0;
  for (auto first = ways.begin(); first != ways.end();) {
    const auto end = std::partition(
        first, ways.end(), [lines = *first](const Way& way) { return way.joins_lines_of(lines); });
    std::ptrdiff_t most = 0;
    for (auto way = first; way != end; ++way) {
      most = std::max({most, std::count_if(first, end, [&](auto& w) { return w.to == way->to; }),
                       std::count_if(first, end, [&](auto& w) { return w.from == way->from; })});
    }
    copies += static_cast<unsigned>(most);
    first = end;
  }
  if (zeros == 0) return copies;
  return passes(access, zeros) + std::max(copies, access.copies_something() ? 1U : 0U);
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

template <typename Passes>
Cost sum_of_phases(const WarpAccess& access, unsigned lanes, Passes passes_of) {
  Cost cost;
  for (unsigned first = 0; first < kWarpSize; first += lanes) {
    const std::uint64_t phase = ((std::uint64_t{1} << lanes) - 1) << first;
    const auto mask = access.mask & static_cast<std::uint32_t>(phase);
    if (mask == 0) continue;
    cost.units += passes_of(access, mask);
    ++cost.ideal;
  }
  return cost;
}

}  // namespace

Cost sectors(const WarpAccess& access) {
  DistinctKeys touched, starts;
  for (std::uint32_t lanes = access.mask; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t address = access.address[lane];
    // What passes by the L1 cache is asked for by sector of shared memory.
    constexpr unsigned kSharedBits = 20;
    const bool bypasses = access.bytes == kBypassBytes && access.other_end[lane] != kNoOtherEnd;
    touched.add(bypasses
                    ? address / kLineBytes << kSharedBits | access.other_end[lane] / kSectorBytes
                    : address / kSectorBytes);
    starts.add(address);
  }
  const std::uint64_t bytes = std::uint64_t{starts.size()} * access.bytes;
  return {touched.size(), static_cast<unsigned>((bytes + kSectorBytes - 1) / kSectorBytes)};
}

Cost wavefronts(const WarpAccess& access, bool store) {
  return sum_of_phases(access, phase_lanes(access, store), passes);
}

Cost copy_wavefronts(const WarpAccess& access) {
  return sum_of_phases(access, phase_lanes(access, true),
                       access.bytes == kBypassBytes ? bypass_passes : copy_passes);
}

}  // namespace tilegate::simt::counted
