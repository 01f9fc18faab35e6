// Tensor maps on the CPU: a map holds the layout itself.
#include "../tensor_map.hpp"

#include <cstring>

namespace tilegate::device {

Status make_tensor_map(const TensorLayout& layout, TensorMap* map) {
  static_assert(sizeof(TensorLayout) <= sizeof(TensorMap));
  if (Status s = check(layout); !s.ok()) return s;
  std::memcpy(static_cast<void*>(map), &layout, sizeof(layout));
  return {};
}

Status set_tensor_data(void* data, TensorMap* map) {
  if (Status s = check_address(data); !s.ok()) return s;
  TensorLayout layout;
  std::memcpy(static_cast<void*>(&layout), map, sizeof(layout));
  layout.data = data;
  std::memcpy(static_cast<void*>(map), &layout, sizeof(layout));
  return {};
}

}  // namespace tilegate::device
