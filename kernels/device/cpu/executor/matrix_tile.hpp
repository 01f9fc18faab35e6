// A tile in shared memory as a matrix descriptor tells the tensor cores: lines of pieces of 16
// bytes, along k or along the rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <tilegate/device/async.cuh>

#include "transfers.hpp"

namespace tilegate::simt {

constexpr unsigned kBytesOfK = 32;  // of a row, that one multiplication reads
constexpr unsigned kRowsOfA = 64;

using RowBytes = std::array<std::byte, kBytesOfK>;

class MatrixTile {
 public:
  MatrixTile(device::MatrixDescriptor descriptor, device::Major major)
      : start_(field(descriptor)),
        leading_(field(descriptor >> 16)),
        stride_(field(descriptor >> 32)),
        pieces_(pieces_of(static_cast<unsigned>(descriptor >> 62))),
        major_(major) {
    // Without a swizzle stride_bytes leads to the next rows, along k or not.
    if (pieces_ == 1 && major == device::Major::kMN) std::swap(leading_, stride_);
  }

  // Swizzled lines along k hold the bytes of a multiplication whole.
  bool is_across_lines() const {
    const std::size_t width = pieces_ * kPieceBytes;
    return major_ == device::Major::kK && pieces_ > 1 && start_ % width + kBytesOfK > width;
  }

  // The bytes along k, from the block's shared memory.
  RowBytes row(const std::byte* shared, unsigned number) const {
    RowBytes bytes;
    if (major_ == device::Major::kK) {
      for (unsigned piece = 0; piece < kPiecesOfK; ++piece) {
        std::memcpy(&bytes[piece * kPieceBytes], shared + offset(number, piece), kPieceBytes);
      }
    } else {
      for (unsigned k = 0; k < kLinesOfK; ++k) {
        std::memcpy(
            &bytes[k * kElementBytes],
            shared + offset(k, number / kRowsOfPiece) + number % kRowsOfPiece * kElementBytes,
            kElementBytes);
      }
    }
    return bytes;
  }

  // Of each piece that these rows take part in: a row in it, and where it is.
  template <typename Visit>
  void for_each_piece(unsigned first_row, unsigned rows, const Visit& visit) const {
    if (major_ == device::Major::kK) {
      for (unsigned row = first_row; row < first_row + rows; ++row) {
        for (unsigned piece = 0; piece < kPiecesOfK; ++piece) visit(row, offset(row, piece));
      }
    } else {
      for (unsigned row = first_row; row < first_row + rows; row += kRowsOfPiece) {
        for (unsigned k = 0; k < kLinesOfK; ++k) visit(row, offset(k, row / kRowsOfPiece));
      }
    }
  }

 private:
  static constexpr unsigned kPiecesOfK = kBytesOfK / kPieceBytes;
  // Of tiles whose lines lie along the rows.
  static constexpr unsigned kElementBytes = 2;
  static constexpr unsigned kRowsOfPiece = kPieceBytes / kElementBytes;
  static constexpr unsigned kLinesOfK = kBytesOfK / kElementBytes;

  static std::size_t field(std::uint64_t bits) { return (bits & 0x3FFF) << 4; }
  // Of the swizzle's width, by the descriptor's kind: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32.
  static unsigned pieces_of(unsigned kind) { return kind == 0 ? 1 : 16U >> kind; }

  // Where a piece of a line begins, in the block's shared memory.
  std::size_t offset(unsigned line, unsigned piece) const {
    const std::size_t linear = start_ + std::size_t{line / 8} * stride_ +
                               std::size_t{piece / pieces_} * leading_ +
                               std::size_t{line % 8 * pieces_ + piece % pieces_} * kPieceBytes;
    // The pieces of a line change places by bits of the address, which lie above 128 bytes.
    return linear ^ ((linear >> 7 & (pieces_ - 1)) << 4);
  }

  std::size_t start_, leading_, stride_;  // between 16 bytes along a line, between 8 lines
  unsigned pieces_;
  device::Major major_;
};

}  // namespace tilegate::simt
