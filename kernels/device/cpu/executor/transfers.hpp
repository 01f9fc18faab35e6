// The data that a bulk or tensor copy moves, as pieces of 16 bytes of shared memory.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <tilegate/device/tensor_map.hpp>

namespace tilegate::simt {

constexpr unsigned kPieceBytes = 16;

struct Piece {
  std::size_t offset;  // in the cluster's shared memory
  std::byte* gmem;     // in global memory
  unsigned bytes;      // how many of the 16 exist there; the others are zeros
  bool begins_row;     // first piece of a row of the box
};
using Transfer = std::vector<Piece>;

using Coordinates = std::array<int, device::kMaxTensorDimensions>;

Transfer contiguous(std::size_t offset, const void* gmem, unsigned bytes);
// The box whose first element has the coordinates `at`, a multiple of 16 bytes in its row.
Transfer box_of(const device::TensorLayout& tensor, const Coordinates& at, std::size_t offset);

}  // namespace tilegate::simt
