// Boxes and multiplications of tiles that begin anywhere in the pattern of their swizzle; one block
// per start, what it leaves behind as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tilegate/device/device.cuh>
#include <tilegate/device/tensor_map.hpp>

namespace tilegate::async_model {

constexpr unsigned kBoxStarts = 8, kBoxStep = 128;  // a box begins at a multiple of 128
constexpr unsigned kBoxRows = 24;
constexpr unsigned kTileStarts = 32, kTileStep = 32;  // along k: at each 32 bytes of k
constexpr unsigned kLineStarts = 8, kLineStep = 128;  // along the rows
constexpr unsigned kTileRows = 64;                    // of a and of b
constexpr unsigned kStartOfB = 8192;                  // b's starts begin there

// Where b begins in the case in which a begins at start `number`.
__host__ __device__ constexpr unsigned number_of_b(unsigned number, unsigned starts) {
  return (5 * number + 3) % starts;
}

using Bytes = std::vector<std::uint8_t>;

// What shared memory holds before, equal in all blocks; of small floats of 16 bits, or anything.
Bytes shared_before(bool of_floats);

// [start]: shared memory after a copy of the box to it; `box` is in global memory.
Status copy_to_starts(device::Swizzle swizzle, const Bytes& box, std::vector<Bytes>* shared);
// [start]: the box that a store from there leaves in global memory.
Status store_from_starts(device::Swizzle swizzle, std::vector<Bytes>* boxes);
// [start]: 64×64 results of int8 along k, and of FP16 along the rows, row by row.
Status multiply_at_starts(device::Swizzle swizzle, std::vector<std::vector<std::int32_t>>* results);
Status multiply_lines_at_starts(device::Swizzle swizzle, std::vector<std::vector<float>>* results);

}  // namespace tilegate::async_model
