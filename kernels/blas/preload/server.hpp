// Computes a product instead of cuBLAS, or returns why cuBLAS must.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

namespace tilegate::preload {

// A cuBLAS product: column-major, op(A) is m x k, op(B) is k x n, C is m x n.
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
  bool scalars_on_device;  // alpha and beta are read in stream order
  const float* bias;       // m elements, added to each column of C if beta is 0; nullptr: none
  cudaStream_t stream;
  void* workspace;  // the handle's
  std::size_t workspace_bytes;
};

// Enqueues the product on its stream. Returns why cuBLAS must compute it, or an empty string on
// success.
std::string compute(const Product& product);

// With TILEGATE_LOG: logs the call on stderr, and a summary at exit. `function`: the cuBLAS
// function; `reason`: empty where the product was computed here.
void log_call(const char* function, const Product* product, const std::string& reason);

}  // namespace tilegate::preload
