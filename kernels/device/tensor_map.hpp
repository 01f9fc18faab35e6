// What both devices need to make a tensor map.
#pragma once

#include <tilegate/device/tensor_map.hpp>

namespace tilegate::device {

Status check(const TensorLayout& layout);
Status check_address(const void* data);

}  // namespace tilegate::device
