// TMA tensor maps (CUtensorMap): each describes a tensor in global memory, and asynchronous copies
// move boxes of it; see async.cuh. The host encodes a map once per plan, and a launch sets the
// address in its copy; or it encodes one per launch. The kernel parameter is a `const
// __grid_constant__ TensorMap`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tilegate/status.hpp>

namespace tilegate::device {

// Swizzle of the 16-byte segments of a row in shared memory. The row is as wide as the swizzle.
enum class Swizzle { kNone, k32Bytes, k64Bytes, k128Bytes };

constexpr unsigned kMaxTensorDimensions = 3;

// Dimensions are in the order of memory: columns, rows, then matrices.
struct TensorLayout {
  void* data = nullptr;                                              // a multiple of 16
  unsigned element_bytes = 4;                                        // 1, 2 or 4
  unsigned dimensions = 2;                                           // 2 or 3
  std::array<std::uint64_t, kMaxTensorDimensions> size = {1, 1, 1};  // in elements
  // Multiples of 16; that of the first dimension is not used.
  std::array<std::uint64_t, kMaxTensorDimensions> stride_bytes = {};
  std::array<unsigned, kMaxTensorDimensions> box = {1, 1, 1};  // in elements, up to 256 each
  Swizzle swizzle = Swizzle::kNone;   // a row of the box is as wide as the swizzle
  unsigned l2_promotion_bytes = 256;  // L2 fetches whole blocks of this size: 64, 128 or 256
};

struct alignas(128) TensorMap {  // as CUtensorMap of CUDA 13; of CUDA 12: 64
  std::array<std::uint64_t, 16> words;
};

Status make_tensor_map(const TensorLayout& layout, TensorMap* map);

// Sets the tensor's address, a multiple of 16. Runs on the host and allocates nothing, so it may be
// part of a captured launch.
Status set_tensor_data(void* data, TensorMap* map);

}  // namespace tilegate::device
