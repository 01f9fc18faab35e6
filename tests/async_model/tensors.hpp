// Random tensors, and where boxes of them begin.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "random.cuh"

namespace tilegate::async_model {

struct Corner {
  int x, y, z;
};

// A box as a kernel knows it, beside the map.
struct Box {
  unsigned dimensions, bytes;
  unsigned unit;                   // columns that are 16 bytes: where boxes may begin
  unsigned outside[3], places[3];  // how far outside boxes may begin, and at how many places: units

  // Not before `first` in any dimension.
  __host__ __device__ Corner random_corner(Choices& choices, int first) const {
    int at[3];
    for (int i = 0; i < 3; ++i) {
      at[i] = static_cast<int>(choices.below(places[i])) - static_cast<int>(outside[i]);
      if (at[i] < first) at[i] = static_cast<int>(choices.below(places[i] - outside[i]));
    }
    return {at[0] * static_cast<int>(unit), at[1], at[2]};
  }
  // Where the box may lie in `words` words of shared memory.
  __host__ __device__ unsigned random_place(Choices& choices, unsigned words = kWords) const {
    return 32 * choices.below((4 * words - bytes) / 128 + 1);
  }
};

// A tensor of at most so many columns, rows and matrices from up to 1 KiB after `data` on, with
// padding after its rows and its matrices, and a box of it.
inline device::TensorLayout random_layout(std::uint32_t seed, std::array<unsigned, 3> most,
                                          std::byte* data) {
  constexpr unsigned kMaxBoxBytes = 8192;
  Choices choices(seed, kTensor);
  device::TensorLayout layout;
  layout.element_bytes = 1U << choices.below(3);
  layout.dimensions = 2 + choices.below(2);
  layout.swizzle = static_cast<device::Swizzle>(choices.below(4));
  const unsigned pieces = layout.swizzle == device::Swizzle::kNone
                              ? 1 + choices.below(std::min(16U, 16U * layout.element_bytes))
                              : width_of(layout.swizzle) / 16;
  layout.box[0] = 16 * pieces / layout.element_bytes;
  const unsigned rows = std::min(kMaxBoxBytes / (16 * pieces), 256U);
  layout.box[1] = 1 + choices.below(rows);
  layout.size[0] = 1 + choices.below(most[0]);
  layout.size[1] = 1 + choices.below(most[1]);
  layout.stride_bytes[1] =
      (layout.size[0] * layout.element_bytes + 15) / 16 * 16 + 16 * choices.below(4);
  if (layout.dimensions == 3) {
    layout.box[2] = 1 + choices.below(std::min(rows / layout.box[1], 256U));
    layout.size[2] = 1 + choices.below(most[2]);
    layout.stride_bytes[2] = (layout.size[1] + choices.below(4)) * layout.stride_bytes[1];
  }
  layout.data = data + 16 * choices.below(64);
  return layout;
}

inline Box box_of(const device::TensorLayout& layout) {
  const unsigned unit = 16 / layout.element_bytes;
  Box box{layout.dimensions,
          layout.box[0] * layout.box[1] * layout.box[2] * layout.element_bytes,
          unit,
          {},
          {}};
  for (unsigned i = 0; i < 3; ++i) {
    const unsigned units = i == 0 ? unit : 1;
    box.outside[i] = layout.box[i] / units + 1;
    box.places[i] =
        (static_cast<unsigned>(layout.size[i]) + units - 1) / units + box.outside[i] + 2;
  }
  return box;
}

}  // namespace tilegate::async_model
