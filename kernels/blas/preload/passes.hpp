// Passes over C after a product. They add a bias and scalars in device memory, which plans of Sgemm
// do not support.
#pragma once

#include <cstdint>

#include <tilegate/device.hpp>

namespace tilegate::preload {

// Adds the `cols` elements of `bias` to each of `rows` rows of C, `ldc` elements apart.
Status enqueue_bias(const float* bias, std::int64_t rows, std::int64_t cols, float* c,
                    std::int64_t ldc, Stream stream);

// A batch of matrices of `rows` x `cols` elements.
struct Matrices {
  float* data;
  std::int64_t rows, cols, ld, batch, stride;
};

// C <- *alpha·P + *beta·C + bias. The scalars are in device memory. With *alpha == 0, P counts as
// 0; with *beta == 0, C is not read.
struct Scaling {
  const float* product;
  std::int64_t ld, stride;  // of the product
  const float* alpha;
  const float* beta;
  const float* bias;  // `cols` elements, added to each row; nullptr: none
  Matrices c;
};

Status enqueue_scaling(const Scaling& scaling, Stream stream);

}  // namespace tilegate::preload
