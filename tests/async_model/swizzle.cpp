#include "swizzle.hpp"

namespace tilegate::async_model::ptx {

std::vector<std::uint8_t> with_box(std::vector<std::uint8_t> shared,
                                   const std::vector<std::uint8_t>& box, const Start& at) {
  for (std::size_t i = 0; i < box.size(); ++i) shared[swizzled(at.start + i, at.width)] = box[i];
  return shared;
}

std::vector<std::uint8_t> box_from(const std::vector<std::uint8_t>& shared, std::size_t bytes,
                                   const Start& at) {
  std::vector<std::uint8_t> box;
  for (std::size_t i = 0; i < bytes; ++i) box.push_back(shared[swizzled(at.start + i, at.width)]);
  return box;
}

std::uint8_t byte_along_k(const std::vector<std::uint8_t>& shared, const Start& at, unsigned row,
                          unsigned k) {
  return shared[swizzled(at.start + row * at.width + k, at.width)];
}

std::uint16_t element_along_rows(const std::vector<std::uint8_t>& shared, const Start& at,
                                 unsigned row, unsigned k) {
  const unsigned rows_of_line = at.width / 2;
  const std::size_t byte =
      at.start + row / rows_of_line * (16 * at.width) + k * at.width + row % rows_of_line * 2;
  const std::size_t there = swizzled(byte, at.width);
  return static_cast<std::uint16_t>(shared[there] | shared[there + 1] << 8);
}

}  // namespace tilegate::async_model::ptx
