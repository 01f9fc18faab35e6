// What a bulk or tensor copy moves, in pieces of 16 bytes of shared memory.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <tilegate/device/tensor_map.hpp>

namespace tilegate::simt {

constexpr unsigned kPieceBytes = 16;

struct Piece {
  std::size_t offset;  // in the block's shared memory
  std::byte* gmem;     // the same bytes in global memory,
  unsigned bytes;      // of which the first so many exist; the others are zeros
  bool begins_row;     // of a box
};
using Transfer = std::vector<Piece>;

using Coordinates = std::array<int, device::kMaxTensorDimensions>;

Transfer contiguous(std::size_t offset, const void* gmem, unsigned bytes);
// The box of which `at` is the first element, at a multiple of 16 bytes in its row.
Transfer box_of(const device::TensorLayout& tensor, const Coordinates& at, std::size_t offset);

}  // namespace tilegate::simt
