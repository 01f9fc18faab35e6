// Checks of a tensor map, for both devices.
#pragma once

#include <tilegate/device/tensor_map.hpp>

namespace tilegate::device {

Status check(const TensorLayout& layout);
Status check_address(const void* data);

}  // namespace tilegate::device
