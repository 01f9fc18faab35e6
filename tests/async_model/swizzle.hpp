// Where pieces of swizzled tiles lie in shared memory, in the words of the PTX ISA ("Tensor
// swizzling modes", "Shared memory matrix layout" of wgmma): what the executor and a GPU are
// compared with. It includes nothing of the kernels or the executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilegate::async_model::ptx {

// A tile begins at byte `start` of shared memory, anywhere in its pattern. Widths are of the
// swizzle, in bytes: 32, 64 or 128; 16 is none.
struct Start {
  unsigned width, start;
};

// Memory consists of lines of 128 bytes, each of 8 pieces of 16. A pattern of width W has W / 16
// lines, and begins where the address is a multiple of its size. In line r of it, the pieces of
// each W bytes are exchanged: piece c is at c XOR r.
inline std::size_t swizzled(std::size_t address, unsigned width) {
  const std::size_t pieces = width / 16;
  const std::size_t line = address / 128, byte = address % 128;
  const std::size_t row = line % pieces;
  const std::size_t group = byte / width, piece = byte % width / 16;
  return line * 128 + group * width + (piece ^ row) * 16 + byte % 16;
}

// Shared memory after a copy of a box, whose rows are as wide as the swizzle, to `at`.
std::vector<std::uint8_t> with_box(std::vector<std::uint8_t> shared,
                                   const std::vector<std::uint8_t>& box, const Start& at);

// What a store of such a box of `bytes` bytes takes from there.
std::vector<std::uint8_t> box_from(const std::vector<std::uint8_t>& shared, std::size_t bytes,
                                   const Start& at);

// A byte of row `row` of a tile whose rows, of one multiplication, lie along k; groups of 8 rows
// follow each other.
std::uint8_t byte_along_k(const std::vector<std::uint8_t>& shared, const Start& at, unsigned row,
                          unsigned k);

// The element of 16 bits of a tile whose lines, one per k, lie along the rows. Groups of 8 lines
// follow each other, two of them make 16 k; then come the same k of further rows.
std::uint16_t element_along_rows(const std::vector<std::uint8_t>& shared, const Start& at,
                                 unsigned row, unsigned k);

}  // namespace tilegate::async_model::ptx
