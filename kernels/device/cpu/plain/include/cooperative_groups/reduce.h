// Butterfly reductions over tiles.
#pragma once
#include <cooperative_groups.h>

namespace cooperative_groups {

template <typename T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <typename T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};

template <typename Tile, typename T, typename Operation>
T reduce(const Tile& tile, T value, Operation&& operation, Site site = Site::current()) {
  for (unsigned lanes = tile.size() / 2; lanes > 0; lanes /= 2) {
    value = operation(value, tile.shfl_xor(value, lanes, site));
  }
  return value;
}

}  // namespace cooperative_groups
