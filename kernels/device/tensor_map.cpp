// The hardware's requirements of a tensor layout.
#include "tensor_map.hpp"

#include <string>

namespace tilegate::device {
namespace {

constexpr std::uint64_t kUnit = 16;  // bytes

Status refuse(const std::string& what) { return Status::invalid_argument("tensor map", what); }

}  // namespace

Status check_address(const void* data) {
  if (reinterpret_cast<std::uintptr_t>(data) % kUnit == 0) return {};
  return refuse("the address of its data must be a multiple of 16");
}

Status check(const TensorLayout& layout) {
  constexpr unsigned kMaxBox = 256;
  const unsigned row_bytes = layout.box[0] * layout.element_bytes;
  const unsigned width = 16U << static_cast<unsigned>(layout.swizzle);
  if (layout.dimensions < 2 || layout.dimensions > kMaxTensorDimensions) {
    return refuse("it has 2 or 3 dimensions");
  }
  if (layout.element_bytes != 1 && layout.element_bytes != 2 && layout.element_bytes != 4) {
    return refuse("elements have 1, 2 or 4 bytes");
  }
  if (Status s = check_address(layout.data); !s.ok()) return s;
  for (unsigned i = 0; i < layout.dimensions; ++i) {
    if (layout.size[i] == 0 || layout.size[i] > std::uint64_t{1} << 32) {
      return refuse("sizes are from 1 to 2^32");
    }
    if (layout.box[i] == 0 || layout.box[i] > kMaxBox) return refuse("a box is 1 to 256 wide");
    const std::uint64_t stride = layout.stride_bytes[i];
    if (i > 0 && (stride == 0 || stride % kUnit != 0 || stride >= std::uint64_t{1} << 40)) {
      return refuse("strides are multiples of 16 bytes, below 2^40");
    }
  }
  const unsigned promotion = layout.l2_promotion_bytes;
  if (promotion != 64 && promotion != 128 && promotion != 256) {
    return refuse("the L2 promotion is 64, 128 or 256 bytes");
  }
  if (row_bytes % kUnit != 0) return refuse("a row of the box is a multiple of 16 bytes");
  if (layout.swizzle != Swizzle::kNone && row_bytes != width) {
    return refuse("a row of the box is as wide as its swizzle, " + std::to_string(width) +
                  " bytes");
  }
  return {};
}

}  // namespace tilegate::device
