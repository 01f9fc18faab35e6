#include "warp_access.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace tilegate::simt::counted {
namespace {

constexpr unsigned kBypassBytes = 16;  // copies of this size bypass the L1 cache

// Distinct keys, in the order in which they were added.
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

// The largest number of distinct words in one bank. A lane accesses one word at least.
unsigned passes(const WarpAccess& access, std::uint32_t lanes) {
  const unsigned of_lane = std::max(access.bytes / kBankBytes, 1U);
  std::array<std::array<std::uint64_t, kWarpSize>, kBanks> words;
  std::array<unsigned, kBanks> count{};
  unsigned most = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto first = access.address[std::countr_zero(lanes)] / kBankBytes;
    for (unsigned i = 0; i < of_lane; ++i) {
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

// A pass copies at most one word per bank, at the source and at the destination. So a word and all
// words that share its source or destination bank need one pass each.
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

// Copies of 16 bytes bypass the L1 cache. A move takes one sector of global memory to one of shared
// memory, with its halves in place or swapped. A pass performs moves between one line of global
// memory and one of shared memory that agree in their halves, in the swap, and in whether sector
// numbers change parity. It uses a sector at either end once.
unsigned bypass_passes(const WarpAccess& access) {
  constexpr std::uint64_t kSectors = kLineBytes / kSectorBytes;
  struct Move {
    std::uint64_t from, to;  // sectors
    bool swaps;              // halves
    unsigned halves = 0;     // bits
    bool is_alike(const Move& other) const {
      return from / kSectors == other.from / kSectors && to / kSectors == other.to / kSectors &&
             ((from ^ to) & 1) == ((other.from ^ other.to) & 1) && swaps == other.swaps &&
             halves == other.halves;
    }
  };
  std::vector<Move> moves;
  for (std::uint32_t lanes = access.mask; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t from = access.other_end[lane], to = access.address[lane];
    if (from == kNoOtherEnd) continue;
    const bool swaps = ((from ^ to) & kBypassBytes) != 0;
    const auto same = [&](const Move& move) {
      return move.from == from / kSectorBytes && move.to == to / kSectorBytes &&
             move.swaps == swaps;
    };
    auto move = std::ranges::find_if(moves, same);
    if (move == moves.end()) {
      move = moves.insert(move, Move{from / kSectorBytes, to / kSectorBytes, swaps});
    }
    move->halves |= 1U << (from / kBypassBytes & 1);
  }
  unsigned passes = 0;
  for (auto first = moves.begin(); first != moves.end();) {
    const auto end = std::partition(
        first, moves.end(), [model = *first](const Move& move) { return move.is_alike(model); });
    std::ptrdiff_t most = 0;
    for (auto move = first; move != end; ++move) {
      most = std::max({most, std::count_if(first, end, [&](auto& m) { return m.to == move->to; }),
                       std::count_if(first, end, [&](auto& m) { return m.from == move->from; })});
    }
    passes += static_cast<unsigned>(most);
    first = end;
  }
  return passes;
}

// Zeros are stored in separate passes, eight lanes at a time; one more pass if all these lanes
// write zeros while other lanes of the warp copy.
unsigned zero_passes(const WarpAccess& access, std::uint32_t lanes) {
  std::uint32_t zeros = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (access.other_end[lane] == kNoOtherEnd) zeros |= 1U << lane;
  }
  if (zeros == 0) return 0;
  return passes(access, zeros) + (zeros == lanes && access.copies_something() ? 1 : 0);
}

// Whether every active lane shares its address with lane ^ distance, where that lane is active.
bool shared_with(const WarpAccess& access, unsigned distance) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const unsigned other = lane ^ distance;
    if (access.has(lane) && access.has(other) && access.address[lane] != access.address[other]) {
      return false;
    }
  }
  return true;
}

// How many lanes are served in one phase.
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
    // Copies that bypass the L1 cache request global sectors once per sector of shared memory.
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
  const unsigned lanes = phase_lanes(access, true);
  if (access.bytes != kBypassBytes) return sum_of_phases(access, lanes, copy_passes);
  DistinctKeys targets;
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    targets.add(access.address[std::countr_zero(rest)]);
  }
  return {bypass_passes(access) + sum_of_phases(access, lanes, zero_passes).units,
          (targets.size() + lanes - 1) / lanes};
}

}  // namespace tilegate::simt::counted
