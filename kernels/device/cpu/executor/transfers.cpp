#include "transfers.hpp"

#include <algorithm>
#include <cstdint>

namespace tilegate::simt {
namespace {

std::byte* address(const void* gmem) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(gmem));
}

// Appends row `row` of the box; `exists`: the row is in the tensor.
void add_row(Transfer* transfer, const device::TensorLayout& tensor, std::byte* gmem, int first,
             bool exists, std::size_t offset, std::size_t row) {
  const unsigned row_bytes = tensor.box[0] * tensor.element_bytes;
  const unsigned pieces = 1U << static_cast<unsigned>(tensor.swizzle);  // permuted by the swizzle
  const auto width = static_cast<std::int64_t>(tensor.size[0] * tensor.element_bytes);
  for (unsigned byte = 0; byte < row_bytes; byte += kPieceBytes) {
    const std::size_t linear = offset + row * row_bytes + byte;
    const std::int64_t column = std::int64_t{first} * tensor.element_bytes + byte;  // in bytes
    const bool inside = exists && column >= 0 && column < width;
    transfer->push_back(
        {linear ^ ((linear >> 7 & (pieces - 1)) << 4), gmem + column,
         inside ? static_cast<unsigned>(std::min<std::int64_t>(width - column, kPieceBytes)) : 0,
         byte == 0});
  }
}

}  // namespace

Transfer contiguous(std::size_t offset, const void* gmem, unsigned bytes) {
  Transfer transfer;
  for (unsigned i = 0; i < bytes; i += kPieceBytes) {
    transfer.push_back({offset + i, address(gmem) + i, kPieceBytes, i == 0});
  }
  return transfer;
}

Transfer box_of(const device::TensorLayout& tensor, const Coordinates& at, std::size_t offset) {
  Transfer transfer;
  std::size_t row = 0;
  for (unsigned k = 0; k < tensor.box[2]; ++k) {
    for (unsigned j = 0; j < tensor.box[1]; ++j) {
      const std::int64_t y = std::int64_t{at[1]} + j;
      const std::int64_t z = std::int64_t{at[2]} + k;
      const bool exists = y >= 0 && y < static_cast<std::int64_t>(tensor.size[1]) && z >= 0 &&
                          z < static_cast<std::int64_t>(tensor.size[2]);
      const std::int64_t from = y * static_cast<std::int64_t>(tensor.stride_bytes[1]) +
                                z * static_cast<std::int64_t>(tensor.stride_bytes[2]);
      add_row(&transfer, tensor, address(tensor.data) + from, at[0], exists, offset, row++);
    }
  }
  return transfer;
}

}  // namespace tilegate::simt
