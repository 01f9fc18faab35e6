// A cuBLAS and cublasLt on host memory, as plain as can be, that counts its products.
#include <atomic>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <cublasLt.h>
#include <cublas_api.h>

#include "fake.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

namespace {

std::atomic<int> products = 0;
int version = CUBLAS_VERSION;
cublasHandle_t destroyed = nullptr;  // the last one

struct Operand {
  const void* data;
  std::int64_t ld, stride;
};

cublasStatus_t multiply(cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m,
                        std::int64_t n, std::int64_t k, float alpha, Operand a, Operand b,
                        float beta, void* c_data, std::int64_t ldc, std::int64_t stride_c,
                        std::int64_t batch, const float* bias = nullptr) {
  const auto fits = [](std::int64_t ld, std::int64_t rows) { return ld >= rows && ld >= 1; };
  if (m < 0 || n < 0 || k < 0 || !fits(a.ld, op_a == CUBLAS_OP_N ? m : k) ||
      !fits(b.ld, op_b == CUBLAS_OP_N ? k : n) || !fits(ldc, m) || a.data == nullptr ||
      b.data == nullptr || c_data == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  ++products;
  for (std::int64_t i = 0; i < batch; ++i) {
    const float* pa = static_cast<const float*>(a.data) + i * a.stride;
    const float* pb = static_cast<const float*>(b.data) + i * b.stride;
    float* pc = static_cast<float*>(c_data) + i * stride_c;
    for (std::int64_t col = 0; col < n; ++col) {
      std::vector<float> sum(m);
      for (std::int64_t at = 0; at < k; ++at) {
        const float y = op_b == CUBLAS_OP_N ? pb[at + col * b.ld] : pb[col + at * b.ld];
        for (std::int64_t row = 0; row < m; ++row) {
          sum[row] += (op_a == CUBLAS_OP_N ? pa[row + at * a.ld] : pa[at + row * a.ld]) * y;
        }
      }
      for (std::int64_t row = 0; row < m; ++row) {
        float& to = pc[row + col * ldc];
        to = alpha * sum[row] + (beta == 0.0F ? 0.0F : beta * to) +
             (bias == nullptr ? 0.0F : bias[row]);
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

float value(const void* scalar) { return *static_cast<const float*>(scalar); }

// The attributes that were set, by descriptor. Enough for a test, which frees none.
std::map<std::pair<const void*, int>, std::uint64_t>& attributes() {
  static auto& all = *new std::map<std::pair<const void*, int>, std::uint64_t>;
  return all;
}

template <typename Name>
cublasStatus_t set(const void* of, Name name, const void* buffer, size_t bytes) {
  std::uint64_t word = 0;
  __builtin_memcpy(&word, buffer, bytes);
  attributes()[{of, name}] = word;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Name>
cublasStatus_t get(const void* of, Name name, void* buffer, size_t bytes, size_t* written) {
  const auto found = attributes().find({of, name});
  const std::uint64_t word = found == attributes().end() ? 0 : found->second;
  __builtin_memcpy(buffer, &word, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

std::int64_t number(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name) {
  return static_cast<std::int64_t>(attributes()[{layout, name}]);
}

}  // namespace

extern "C" {
int fake_products() { return products; }
void fake_set_version(int value) { version = value; }

// A handle may have the address of one that was destroyed.
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = std::exchange(destroyed, nullptr);
  if (*handle == nullptr) *handle = new cublasContext;
  **handle = {};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  destroyed = handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* found) {
  *found = version;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* workspace, size_t) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0;
  return is_aligned ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  *mode = handle->pointer_mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              int m, int n, int k, const float* alpha, const float* a, int lda,
                              const float* b, int ldb, const float* beta, float* c, int ldc) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return multiply(op_a, op_b, m, n, k, *alpha, {a, lda, 0}, {b, ldb, 0}, *beta, c, ldc, 0, 1);
}
cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t op_a,
                                 cublasOperation_t op_b, int64_t m, int64_t n, int64_t k,
                                 const float* alpha, const float* a, int64_t lda, const float* b,
                                 int64_t ldb, const float* beta, float* c, int64_t ldc) {
  static_cast<void>(handle);
  return multiply(op_a, op_b, m, n, k, *alpha, {a, lda, 0}, {b, ldb, 0}, *beta, c, ldc, 0, 1);
}
cublasStatus_t cublasSgemv_v2_64(cublasHandle_t, cublasOperation_t op, int64_t m, int64_t n,
                                 const float* alpha, const float* a, int64_t lda, const float* x,
                                 int64_t incx, const float* beta, float* y, int64_t incy) {
  const bool as_it_is = op == CUBLAS_OP_N;
  return multiply(CUBLAS_OP_N, as_it_is ? CUBLAS_OP_T : CUBLAS_OP_N, 1, as_it_is ? m : n,
                  as_it_is ? n : m, *alpha, {x, incx, 0}, {a, lda, 0}, *beta, y, incy, 0, 1);
}
cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t op, int m, int n,
                              const float* alpha, const float* a, int lda, const float* x, int incx,
                              const float* beta, float* y, int incy) {
  return cublasSgemv_v2_64(handle, op, m, n, alpha, a, lda, x, incx, beta, y, incy);
}
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t, cublasOperation_t op_a,
                                         cublasOperation_t op_b, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long stride_a, const float* b, int ldb,
                                         long long stride_b, const float* beta, float* c, int ldc,
                                         long long stride_c, int batch) {
  return multiply(op_a, op_b, m, n, k, *alpha, {a, lda, stride_a}, {b, ldb, stride_b}, *beta, c,
                  ldc, stride_c, batch);
}
cublasStatus_t cublasSgemmStridedBatched_64(cublasHandle_t, cublasOperation_t op_a,
                                            cublasOperation_t op_b, int64_t m, int64_t n, int64_t k,
                                            const float* alpha, const float* a, int64_t lda,
                                            long long stride_a, const float* b, int64_t ldb,
                                            long long stride_b, const float* beta, float* c,
                                            int64_t ldc, long long stride_c, int64_t batch) {
  return multiply(op_a, op_b, m, n, k, *alpha, {a, lda, stride_a}, {b, ldb, stride_b}, *beta, c,
                  ldc, stride_c, batch);
}
cublasStatus_t cublasGemmEx_64(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b,
                               int64_t m, int64_t n, int64_t k, const void* alpha, const void* a,
                               cudaDataType, int64_t lda, const void* b, cudaDataType, int64_t ldb,
                               const void* beta, void* c, cudaDataType, int64_t ldc,
                               cublasComputeType_t, cublasGemmAlgo_t) {
  return multiply(op_a, op_b, m, n, k, value(alpha), {a, lda, 0}, {b, ldb, 0}, value(beta), c, ldc,
                  0, 1);
}
cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n, int64_t k,
    const void* alpha, const void* a, cudaDataType, int64_t lda, long long stride_a, const void* b,
    cudaDataType, int64_t ldb, long long stride_b, const void* beta, void* c, cudaDataType,
    int64_t ldc, long long stride_c, int64_t batch, cublasComputeType_t, cublasGemmAlgo_t) {
  return multiply(op_a, op_b, m, n, k, value(alpha), {a, lda, stride_a}, {b, ldb, stride_b},
                  value(beta), c, ldc, stride_c, batch);
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t op_a,
                                          cublasOperation_t op_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType, int lda,
                                          long long stride_a, const void* b, cudaDataType, int ldb,
                                          long long stride_b, const void* beta, void* c,
                                          cudaDataType, int ldc, long long stride_c, int batch,
                                          cublasComputeType_t, cublasGemmAlgo_t) {
  return multiply(op_a, op_b, m, n, k, value(alpha), {a, lda, stride_a}, {b, ldb, stride_b},
                  value(beta), c, ldc, stride_c, batch);
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void* alpha, const void* a, cudaDataType,
                            int lda, const void* b, cudaDataType, int ldb, const void* beta,
                            void* c, cudaDataType, int ldc, cublasComputeType_t, cublasGemmAlgo_t) {
  // As cuBLAS may: one of its functions calls another, by its public name.
  const float *x = static_cast<const float*>(alpha), *y = static_cast<const float*>(beta);
  return cublasSgemm_v2(handle, op_a, op_b, m, n, k, x, static_cast<const float*>(a), lda,
                        static_cast<const float*>(b), ldb, y, static_cast<float*>(c), ldc);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = new cublasLtMatmulDescOpaque_t{};
  set(*desc, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &compute, sizeof compute);
  const std::uint32_t none = CUBLASLT_EPILOGUE_DEFAULT;
  set(*desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &none, sizeof none);
  return set(*desc, CUBLASLT_MATMUL_DESC_SCALE_TYPE, &scale, sizeof scale);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = new cublasLtMatrixLayoutOpaque_t{};
  const std::int32_t one = 1;
  set(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &one, sizeof one);
  set(*layout, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
  set(*layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows);
  set(*layout, CUBLASLT_MATRIX_LAYOUT_COLS, &cols, sizeof cols);
  return set(*layout, CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* buffer, size_t bytes) {
  return set(of, name, buffer, bytes);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t of,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void* buffer, size_t bytes) {
  return set(of, name, buffer, bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t name, void* buffer,
                                              size_t bytes, size_t* written) {
  return get(of, name, buffer, bytes, written);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t of,
                                                cublasLtMatrixLayoutAttribute_t name, void* buffer,
                                                size_t bytes, size_t* written) {
  return get(of, name, buffer, bytes, written);
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static char of_all;
  *handle = reinterpret_cast<cublasLtHandle_t>(&of_all);
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() { return static_cast<size_t>(version); }
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t layout_a, const void* b,
                              cublasLtMatrixLayout_t layout_b, const void* beta, const void*,
                              cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t*, void*,
                              size_t, cudaStream_t) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const void* const needed[] = {desc, layout_a, layout_b, layout_c, layout_d, alpha, beta};
  for (const void* pointer : needed) {
    if (pointer == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto word = [&](cublasLtMatmulDescAttributes_t name) { return attributes()[{desc, name}]; };
  const auto op_a = static_cast<cublasOperation_t>(word(CUBLASLT_MATMUL_DESC_TRANSA));
  const auto op_b = static_cast<cublasOperation_t>(word(CUBLASLT_MATMUL_DESC_TRANSB));
  const bool biased = word(CUBLASLT_MATMUL_DESC_EPILOGUE) == CUBLASLT_EPILOGUE_BIAS;
  constexpr auto kRows = CUBLASLT_MATRIX_LAYOUT_ROWS, kCols = CUBLASLT_MATRIX_LAYOUT_COLS,
                 kBatch = CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
  const std::int64_t m = number(layout_d, kRows), n = number(layout_d, kCols),
                     k = number(layout_a, op_a == CUBLAS_OP_N ? kCols : kRows);
  if (number(layout_a, op_a == CUBLAS_OP_N ? kRows : kCols) != m ||
      number(layout_b, op_b == CUBLAS_OP_N ? kCols : kRows) != n ||
      number(layout_b, op_b == CUBLAS_OP_N ? kRows : kCols) != k ||
      number(layout_a, kBatch) != number(layout_d, kBatch) ||
      number(layout_b, kBatch) != number(layout_d, kBatch)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return multiply(
      op_a, op_b, m, n, k, value(alpha), {a, number(layout_a, CUBLASLT_MATRIX_LAYOUT_LD), 0},
      {b, number(layout_b, CUBLASLT_MATRIX_LAYOUT_LD), 0}, value(beta), d,
      number(layout_d, CUBLASLT_MATRIX_LAYOUT_LD), 0, 1,
      biased ? reinterpret_cast<const float*>(word(CUBLASLT_MATMUL_DESC_BIAS_POINTER)) : nullptr);
}
}
