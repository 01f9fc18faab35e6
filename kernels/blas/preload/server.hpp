// Computes a product in place of cuBLAS, or says why not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

namespace tilegate::preload {

// A product as cuBLAS has it: by columns, op(A) is m x k, op(B) is k x n, C is m x n.
struct Product {
  bool transposed_a, transposed_b;
  std::int64_t m, n, k;
  const float* alpha;
  const float* a;
  std::int64_t lda, stride_a;
  const float* b;
  std::int64_t ldb, stride_b;
  const float* beta;
  float* c;
  std::int64_t ldc, stride_c;
  std::int64_t batch;
  bool scalars_on_device;  // alpha and beta: read there, in the order of the stream
  const float* bias;       // m elements, added to each column of C, where beta is 0; nullptr: none
  cudaStream_t stream;
  void* workspace;  // the handle's own
  std::size_t workspace_bytes;
};

// Enqueues the product on its stream. What is returned says why cuBLAS has to compute it, and is
// empty where nothing is left to do.
std::string compute(const Product& product);

// What TILEGATE_LOG asks for: a line per call on stderr, and a summary at exit. `function` is the
// call's; `reason` is empty where the product was computed here.
void log_call(const char* function, const Product* product, const std::string& reason);

}  // namespace tilegate::preload
