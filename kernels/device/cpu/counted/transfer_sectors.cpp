#include "transfer_sectors.hpp"

#include <cstdint>

namespace tilegate::simt::counted {

Cost transfer_sectors(const Transfer& transfer, bool store) {
  struct Sector {
    std::uint64_t number, line;  // of shared memory, where there are zeros
    bool zeros;
    bool operator==(const Sector&) const = default;
  };
  std::uint64_t bytes = 0;
  Cost cost;
  Sector last{};
  for (const Piece& piece : transfer) {
    bytes += piece.bytes;
    const bool zeros = piece.bytes == 0;
    if (zeros && store) continue;
    const std::uint64_t address =
        zeros ? piece.offset : reinterpret_cast<std::uintptr_t>(piece.gmem);
    const Sector sector{address / kSectorBytes, piece.offset / kLineBytes, zeros};
    if (piece.begins_row || !(sector == last) || cost.units == 0) ++cost.units;
    last = sector;
  }
  cost.ideal = static_cast<unsigned>((bytes + kSectorBytes - 1) / kSectorBytes);
  return cost;
}

}  // namespace tilegate::simt::counted
