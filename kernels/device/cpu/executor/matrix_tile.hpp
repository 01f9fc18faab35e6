// A tile in shared memory as a matrix descriptor describes it: lines of 16-byte pieces, along k or
// along the rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <tilegate/device/async.cuh>

#include "transfers.hpp"

namespace tilegate::simt {

constexpr unsigned kBytesOfK = 32;  // bytes of a row that one multiplication reads
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
    // Without a swizzle stride_bytes is the step along the rows, for both majors.
    if (pieces_ == 1 && major == device::Major::kMN) std::swap(leading_, stride_);
  }

  // Whether the 32 bytes of a multiplication would cross the end of a swizzled line along k.
  bool is_across_lines() const {
    const std::size_t width = pieces_ * kPieceBytes;
    return major_ == device::Major::kK && pieces_ > 1 && start_ % width + kBytesOfK > width;
  }

  // The bytes of a row along k, read from the block's shared memory.
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

  // Calls visit(row, offset) for each piece of these rows, with one row of the piece.
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
  // For tiles whose lines lie along the rows.
  static constexpr unsigned kElementBytes = 2;
  static constexpr unsigned kRowsOfPiece = kPieceBytes / kElementBytes;
  static constexpr unsigned kLinesOfK = kBytesOfK / kElementBytes;

  static std::size_t field(std::uint64_t bits) { return (bits & 0x3FFF) << 4; }
  // Pieces per line. The descriptor's kind of swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes.
  static unsigned pieces_of(unsigned kind) { return kind == 0 ? 1 : 16U >> kind; }

  // Offset of a piece of a line in the block's shared memory.
  std::size_t offset(unsigned line, unsigned piece) const {
    const std::size_t linear = start_ + std::size_t{line / 8} * stride_ +
                               std::size_t{piece / pieces_} * leading_ +
                               std::size_t{line % 8 * pieces_ + piece % pieces_} * kPieceBytes;
    // The swizzle XORs a piece's number with address bits 7 and up.
    return linear ^ ((linear >> 7 & (pieces_ - 1)) << 4);
  }

  // Start; steps from one swizzle width (16 bytes without) to the next along a line, and between
  // groups of 8 lines.
  std::size_t start_, leading_, stride_;
  unsigned pieces_;
  device::Major major_;
};

}  // namespace tilegate::simt
