// Groups the lanes' accesses by warp instruction and counts them; see recorder.hpp.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "recorder.hpp"
#include "sites.hpp"

namespace tilegate::simt::counted {

Line& Recorder::line_of(std::uint32_t site, Kind kind) {
  const std::uint32_t location = Sites::all().location(site);
  Line& line = lines_[{location, kind}];
  line.location = location;
  line.kind = kind;
  return line;
}

void Recorder::begin_counting() {
  is_counting_ = true;
  lines_.clear();
  fma_ = barriers_ = 0;
}

Counters Recorder::end_counting() {
  is_counting_ = false;
  Counters result;
  result.barriers = barriers_;
  result.fma = fma_;
  for (const auto& [place, line] : lines_) {
    Traffic& total = result.traffic[static_cast<std::size_t>(line.kind)];
    total.requests += line.traffic.requests;
    total.units += line.traffic.units;
    total.excess += line.traffic.excess;
    total.bytes += line.traffic.bytes;
    result.lines.push_back(line);
  }
  return result;
}

// All lanes of a warp pass the same block barriers, so the accesses between two of them are grouped
// when the last lane arrives.
void Recorder::stop_thread(unsigned number) {
  if (warps_.empty()) return;
  Warp& warp = warps_[number / kWarpSize];
  const unsigned lanes = std::min(kWarpSize, threads_ - number / kWarpSize * kWarpSize);
  if (++warp.stopped < lanes) return;
  group(warp);
  for (auto& lane : warp.lanes) lane.clear();
  warp.stopped = 0;
}

// Without divergence all lanes made the same accesses in the same order: the n-th accesses of all
// lanes are one warp instruction.
void Recorder::group(const Warp& warp) {
  const auto& first = warp.lanes[0];
  const auto same = [](const Access& a, const Access& b) {
    return a.site == b.site && a.kind == b.kind && a.bytes == b.bytes;
  };
  for (const auto& lane : warp.lanes) {
    if (!std::equal(first.begin(), first.end(), lane.begin(), lane.end(), same)) {
      group_diverged(warp);
      return;
    }
  }
  WarpAccess access{.mask = ~0U};
  for (std::size_t i = 0; i < first.size(); ++i) {
    access.bytes = first[i].bytes;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      access.address[lane] = warp.lanes[lane][i].address;
      access.other_end[lane] = warp.lanes[lane][i].other_end;
    }
    count(access, first[i].kind, first[i].site);
  }
}

// With divergence, a warp instruction is the n-th visit of the lanes to one location in the code.
void Recorder::group_diverged(const Warp& warp) {
  struct Visit {
    std::uint64_t key;  // site, kind, number of the visit
    unsigned lane;
    const Access* access;
  };
  std::vector<Visit> visits;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const std::size_t begin = visits.size();
    for (const Access& access : warp.lanes[lane]) {
      const std::uint64_t key =
          std::uint64_t{access.site} << 4 | static_cast<unsigned>(access.kind);
      visits.push_back({key << 28, lane, &access});
    }
    std::stable_sort(visits.begin() + static_cast<std::ptrdiff_t>(begin), visits.end(),
                     [](const Visit& a, const Visit& b) { return a.key < b.key; });
    for (std::size_t i = begin + 1; i < visits.size(); ++i) {
      if (visits[i].key == visits[i - 1].key >> 28 << 28) visits[i].key = visits[i - 1].key + 1;
    }
  }
  std::stable_sort(visits.begin(), visits.end(),
                   [](const Visit& a, const Visit& b) { return a.key < b.key; });
  for (auto visit = visits.begin(); visit != visits.end();) {
    const std::uint64_t key = visit->key;
    const Access& model = *visit->access;
    WarpAccess access{.mask = 0, .bytes = model.bytes};
    for (; visit != visits.end() && visit->key == key; ++visit) {
      access.mask |= 1U << visit->lane;
      access.address[visit->lane] = visit->access->address;
      access.other_end[visit->lane] = visit->access->other_end;
    }
    count(access, model.kind, model.site);
  }
}

void Recorder::count(const WarpAccess& access, Kind kind, std::uint32_t site) {
  const Cost cost = kind == Kind::kSharedCopy ? copy_wavefronts(access)
                    : is_shared(kind)         ? wavefronts(access, kind != Kind::kSharedLoad)
                                              : sectors(access);
  Line& line = line_of(site, kind);
  line.traffic.add(cost, static_cast<unsigned>(std::popcount(access.mask)) * access.bytes);
  const auto excess = [](const Cost& c) { return c.units - c.ideal; };
  if (line.traffic.requests == 1 || excess(cost) > excess(line.worst_cost)) {
    line.worst = access;
    line.worst_cost = cost;
  }
}

}  // namespace tilegate::simt::counted
