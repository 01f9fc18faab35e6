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

// Copies of 16 bytes pass by the L1 cache. What lanes bring from one sector to another, its halves
// in place or swapped, is a move. A pass makes moves between one line of global memory and one of
// shared memory that are alike: in their halves, and in whether they go between an even and an odd
// sector. It takes a sector at either end once.
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

// Zeros are stored by themselves, eight lanes at a time, beside a pass for what some lane of the
// warp copies.
unsigned zero_passes(const WarpAccess& access, std::uint32_t lanes) {
  std::uint32_t zeros = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (access.other_end[lane] == kNoOtherEnd) zeros |= 1U << lane;
  }
  if (zeros == 0) return 0;
  return passes(access, zeros) + (zeros == lanes && access.copies_something() ? 1 : 0);
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
