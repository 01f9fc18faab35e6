// Names of positions in global memory, for reports.
#include <algorithm>

#include "global_memory.hpp"

namespace tilegate::simt::counted {
namespace {

std::string elements(std::uintptr_t bytes) {
  return std::to_string((bytes + kElementBytes - 1) / kElementBytes) + " elements";
}

}  // namespace

GlobalMemory::Place GlobalMemory::place_at(const Region& region, std::int64_t offset) const {
  const auto place_in = [&](std::int64_t index) {
    const std::int64_t in_matrix = offset - index * region.stride;
    return Place{index, in_matrix / region.ld, in_matrix % region.ld};
  };
  if (region.batch == 1 || region.stride == 0) return place_in(0);
  // The last matrix that begins before it; if the matrices of an input interleave, the one whose
  // row contains it.
  const std::int64_t last = std::min(offset / region.stride, region.batch - 1);
  const std::int64_t extent = (region.rows - 1) * region.ld + region.cols;
  for (std::int64_t i = last; i >= 0 && offset - i * region.stride < extent; --i) {
    if (place_in(i).col < region.cols) return place_in(i);
  }
  return place_in(last);
}

std::string GlobalMemory::name_of(const Region& region, std::int64_t element) const {
  return name_of(region, Place{element / region.cols / region.rows,
                               element / region.cols % region.rows, element % region.cols});
}

// "c(3, 4)", "the padding of c after row 3, column 44 of 43".
std::string GlobalMemory::name_of(const Region& region, const Place& place) const {
  const std::string matrix =
      region.batch > 1 && region.stride > 0 ? "[" + std::to_string(place.index) + "]" : "";
  const std::string row = std::to_string(place.row);
  const std::string col = std::to_string(place.col);
  if (place.row >= region.rows) return "what lies between two matrices of " + region.name;
  if (place.col >= region.cols) {
    return "the padding of " + region.name + matrix + " after row " + row + ", column " + col +
           " of " + std::to_string(region.cols);
  }
  if (region.ld == region.cols && region.rows == 1 && !region.words.empty() &&
      !region.stored_once) {
    return "element " + col + " of " + region.name;
  }
  return region.name + matrix + "(" + row + ", " + col + ")";
}

std::string GlobalMemory::name_outside(std::uintptr_t address) const {
  const Region* nearest = nullptr;
  std::uintptr_t least = ~std::uintptr_t{0};
  for (const Region& region : regions_) {
    const bool before = address < region.begin;
    const std::uintptr_t away =
        before ? region.begin - address : address - (region.begin + region.bytes) + kElementBytes;
    if (away < least) {
      least = away;
      nearest = &region;
    }
  }
  if (nearest == nullptr) return "memory that no operand has";
  return "memory outside every operand, " + elements(least) +
         (address < nearest->begin ? " before the first of " : " after the last of ") +
         nearest->name;
}

}  // namespace tilegate::simt::counted
