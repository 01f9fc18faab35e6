// A bias, as the first summand of a product.
#pragma once

#include <cstdint>

#include <tilegate/device.hpp>

namespace tilegate::preload {

// Each of `rows` rows of C, `ldc` elements apart, becomes the `cols` elements of `bias`.
Status enqueue_bias(const float* bias, std::int64_t rows, std::int64_t cols, float* c,
                    std::int64_t ldc, Stream stream);

}  // namespace tilegate::preload
