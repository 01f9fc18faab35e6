// A tile in shared memory as a matrix descriptor tells the tensor cores: rows along k.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/device/async.cuh>

#include "transfers.hpp"

namespace tilegate::simt {

constexpr unsigned kBytesOfK = 32;  // of a row, that one multiplication reads
constexpr unsigned kRowsOfA = 64;

class MatrixTile {
 public:
  explicit MatrixTile(device::MatrixDescriptor descriptor)
      : start_(field(descriptor)),
        leading_(field(descriptor >> 16)),
        stride_(field(descriptor >> 32)),
        kind_(static_cast<unsigned>(descriptor >> 62)) {}

  // Where the bytes 16·piece … of a row are, in the block's shared memory.
  std::size_t offset(unsigned row, unsigned piece) const {
    const std::size_t group = start_ + std::size_t{row / 8} * stride_;
    if (kind_ == 0) return group + std::size_t{piece} * leading_ + row % 8 * kPieceBytes;
    const unsigned pieces = 16U >> kind_;  // of a row of the swizzle's width: 8, 4 or 2
    const std::size_t linear = group + std::size_t{row % 8 * pieces + piece} * kPieceBytes;
    // The pieces of a row change places by bits of the address, which lie above 128 bytes.
    return linear ^ ((linear >> 7 & (pieces - 1)) << 4);
  }

 private:
  static std::size_t field(std::uint64_t bits) { return (bits & 0x3FFF) << 4; }

  std::size_t start_, leading_, stride_;
  unsigned kind_;  // of swizzle: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32
};

}  // namespace tilegate::simt
