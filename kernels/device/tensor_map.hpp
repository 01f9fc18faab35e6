// What both devices need to make a tensor map.
#pragma once

#include <tilegate/device/tensor_map.hpp>

namespace tilegate::device {

Status check(const TensorLayout& layout);

}  // namespace tilegate::device
