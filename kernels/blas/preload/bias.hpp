// A bias, added as the first summand of a product.
#pragma once

#include <cstdint>

#include <tilegate/device.hpp>

namespace tilegate::preload {

// Copies the `cols` elements of `bias` to each of `rows` rows of C, which are `ldc` elements apart.
Status enqueue_bias(const float* bias, std::int64_t rows, std::int64_t cols, float* c,
                    std::int64_t ldc, Stream stream);

}  // namespace tilegate::preload
