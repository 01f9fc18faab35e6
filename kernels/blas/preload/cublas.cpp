// LD_PRELOAD=libtilegate_cublas.so: computes the FP32 products that a program requests from cuBLAS,
// and passes all other calls on.
//
//   TILEGATE_MATH=fp32|fp32_split   arithmetic (default: fp32)
//   TILEGATE_WORKSPACE_LIMIT=BYTES  the most workspace of a call (default: no limit)
//   TILEGATE_GEMV=1                 also takes over matrix times vector
//   TILEGATE_LOG=1                  logs each call and its outcome on stderr, and a summary at exit
//   TILEGATE_LOG=summary            the summary alone
//
// Each function here has the name of a cuBLAS function; the dynamic linker finds this one first.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <cublasLt.h>
#include <cublas_v2.h>

#include "functions.hpp"
#include "real.hpp"
#include "server.hpp"

namespace tilegate::preload {
namespace {

// True while this thread is inside one of our functions: nested calls of cuBLAS are passed on.
thread_local bool is_inside = false;

class Inside {
 public:
  Inside() { is_inside = true; }
  ~Inside() { is_inside = false; }
};

// The workspace that a program has set for a handle; cuBLAS has no query for it.
class HandleWorkspaces {
 public:
  struct Block {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };

  void set(cublasHandle_t handle, const Block& block) {
    const std::lock_guard lock(mutex_);
    blocks_[handle] = block;
  }
  void forget(cublasHandle_t handle) {
    const std::lock_guard lock(mutex_);
    blocks_.erase(handle);
  }
  Block get(cublasHandle_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(handle);
    return found == blocks_.end() ? Block{} : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<cublasHandle_t, Block> blocks_;
};

HandleWorkspaces& handle_workspaces() {
  static auto& all = *new HandleWorkspaces;
  return all;
}

#define TILEGATE_REAL(name) constinit Real<decltype(name)> real_##name(#name)
TILEGATE_REAL(cublasGetVersion_v2);
TILEGATE_REAL(cublasGetStream_v2);
TILEGATE_REAL(cublasGetPointerMode_v2);
TILEGATE_REAL(cublasGetMathMode);
TILEGATE_REAL(cublasSetWorkspace_v2);
TILEGATE_REAL(cublasSetStream_v2);
TILEGATE_REAL(cublasDestroy_v2);
TILEGATE_REAL(cublasSgemm_v2);
TILEGATE_REAL(cublasSgemm_v2_64);
TILEGATE_REAL(cublasSgemv_v2);
TILEGATE_REAL(cublasSgemv_v2_64);
TILEGATE_REAL(cublasSgemmStridedBatched);
TILEGATE_REAL(cublasSgemmStridedBatched_64);
TILEGATE_REAL(cublasGemmEx_64);
TILEGATE_REAL(cublasGemmStridedBatchedEx_64);
TILEGATE_REAL(cublasLtGetVersion);
TILEGATE_REAL(cublasLtMatmulDescGetAttribute);
TILEGATE_REAL(cublasLtMatrixLayoutGetAttribute);
TILEGATE_REAL(cublasLtMatmul);
#undef TILEGATE_REAL
// cuBLAS's headers overload these two functions in C++.
using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                              const void*, const void*, cudaDataType, int, const void*,
                              cudaDataType, int, const void*, void*, cudaDataType, int,
                              cublasComputeType_t, cublasGemmAlgo_t);
using GemmStridedBatchedEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                            int, int, int, const void*, const void*, cudaDataType,
                                            int, long long, const void*, cudaDataType, int,
                                            long long, const void*, void*, cudaDataType, int,
                                            long long, int, cublasComputeType_t, cublasGemmAlgo_t);
constinit Real<GemmEx> real_cublasGemmEx("cublasGemmEx");
constinit Real<GemmStridedBatchedEx> real_cublasGemmStridedBatchedEx("cublasGemmStridedBatchedEx");

// Whether the loaded library has the major version that this preload was built for.
bool check_version(int loaded, int built, const char* library) {
  if (loaded / 10000 == built / 10000) return true;
  std::fprintf(stderr,
               "tilegate: %s is version %d, and this preload is for %d.x: all is passed on\n",
               library, loaded, built / 10000);
  return false;
}

bool is_known_cublas(cublasHandle_t handle) {
  static const bool kIsKnown = [handle] {
    int version = 0;
    const auto ask = real_cublasGetVersion_v2.get();
    return ask != nullptr && ask(handle, &version) == CUBLAS_STATUS_SUCCESS &&
           check_version(version, CUBLAS_VERSION, "cuBLAS");
  }();
  return kIsKnown;
}

bool is_known_cublaslt() {
  static const bool kIsKnown = [] {
    const auto ask = real_cublasLtGetVersion.get();
    return ask != nullptr && check_version(static_cast<int>(ask()), CUBLAS_VERSION, "cublasLt");
  }();
  return kIsKnown;
}

// Arguments of a cuBLAS GEMM. Scalars are pointers, to host or device memory, as the handle's
// pointer mode says.
struct Gemm {
  cublasOperation_t op_a, op_b;
  std::int64_t m, n, k;
  const void* alpha;
  const void* a;
  std::int64_t lda, stride_a;
  const void* b;
  std::int64_t ldb, stride_b;
  const void* beta;
  void* c;
  std::int64_t ldc, stride_c;
  std::int64_t batch;
};

// For real numbers the conjugate transpose is the transpose.
std::optional<bool> is_transposed(cublasOperation_t op) {
  if (op == CUBLAS_OP_N) return false;
  if (op == CUBLAS_OP_T || op == CUBLAS_OP_C) return true;
  return std::nullopt;
}

// The requested product, or why cuBLAS must compute it.
struct Read {
  std::optional<Product> product;
  std::string reason;
};

Read read_product(cublasHandle_t handle, const Gemm& gemm) {
  if (handle == nullptr) return {{}, "not a handle of cuBLAS"};
  if (!is_known_cublas(handle)) return {{}, "another version of cuBLAS"};
  cublasPointerMode_t mode{};
  cublasMath_t math{};
  cudaStream_t stream = nullptr;
  if (real_cublasGetPointerMode_v2.get()(handle, &mode) != CUBLAS_STATUS_SUCCESS ||
      real_cublasGetMathMode.get()(handle, &math) != CUBLAS_STATUS_SUCCESS ||
      real_cublasGetStream_v2.get()(handle, &stream) != CUBLAS_STATUS_SUCCESS) {
    return {{}, "not a handle of cuBLAS"};
  }
  // This flag concerns only sums in half precision.
  if ((math & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) != CUBLAS_DEFAULT_MATH) {
    return {{}, "math mode " + std::to_string(math)};
  }
  const std::optional<bool> transposed_a = is_transposed(gemm.op_a),
                            transposed_b = is_transposed(gemm.op_b);
  if (!transposed_a || !transposed_b || gemm.alpha == nullptr || gemm.beta == nullptr) {
    return {{}, "an invalid argument"};
  }
  const HandleWorkspaces::Block workspace = handle_workspaces().get(handle);
  return {Product{.transposed_a = *transposed_a,
                  .transposed_b = *transposed_b,
                  .m = gemm.m,
                  .n = gemm.n,
                  .k = gemm.k,
                  .alpha = static_cast<const float*>(gemm.alpha),
                  .a = static_cast<const float*>(gemm.a),
                  .lda = gemm.lda,
                  .stride_a = gemm.stride_a,
                  .b = static_cast<const float*>(gemm.b),
                  .ldb = gemm.ldb,
                  .stride_b = gemm.stride_b,
                  .beta = static_cast<const float*>(gemm.beta),
                  .c = static_cast<float*>(gemm.c),
                  .ldc = gemm.ldc,
                  .stride_c = gemm.stride_c,
                  .batch = gemm.batch,
                  .scalars_on_device = mode == CUBLAS_POINTER_MODE_DEVICE,
                  .bias = nullptr,
                  .stream = stream,
                  .workspace = workspace.memory,
                  .workspace_bytes = workspace.bytes},
          {}};
}

// Computes the product that `read` returns, or calls `pass_on`, which calls cuBLAS.
template <typename ReadProduct, typename PassOn>
cublasStatus_t take_over(const char* function, ReadProduct read, PassOn pass_on) {
  if (is_inside) return pass_on();
  const Inside inside;
  std::string reason;
  try {
    Read found = read();
    reason = found.product ? compute(*found.product) : std::move(found.reason);
    log_call(function, found.product ? &*found.product : nullptr, reason);
  } catch (...) {
    reason = "an internal error";
  }
  return reason.empty() ? CUBLAS_STATUS_SUCCESS : pass_on();
}

template <typename Function, typename... Arguments>
cublasStatus_t call(Real<Function>& real, Arguments... arguments) {
  Function* const function = real.get();
  return function == nullptr ? CUBLAS_STATUS_NOT_INITIALIZED : function(arguments...);
}

template <typename Function, typename... Arguments>
cublasStatus_t gemm(const char* name, Real<Function>& real, const Gemm& gemm, bool is_fp32,
                    cublasHandle_t handle, Arguments... arguments) {
  return take_over(
      name,
      [&]() -> Read {
        if (!is_fp32) return {{}, "not FP32, or not computed in FP32"};
        return read_product(handle, gemm);
      },
      [&] { return call(real, handle, arguments...); });
}

// Matrix-vector products are opt-in: cuBLAS's kernels read the matrix once, as ours do.
bool takes_gemv() {
  static const bool kTakes = [] {
    const char* text = std::getenv("TILEGATE_GEMV");
    return text != nullptr && std::string_view(text) == "1";
  }();
  return kTakes;
}

struct Gemv {
  cublasOperation_t op;
  std::int64_t m, n;
  const float* alpha;
  const float* a;
  std::int64_t lda;
  const float* x;
  std::int64_t incx;
  const float* beta;
  float* y;
  std::int64_t incy;
};

// yᵀ = xᵀ·op(A)ᵀ: in column-major order a vector is a matrix of one row whose leading dimension is
// the increment.
template <typename Function, typename... Arguments>
cublasStatus_t gemv(const char* name, Real<Function>& real, const Gemv& v, cublasHandle_t handle,
                    Arguments... arguments) {
  return take_over(
      name,
      [&]() -> Read {
        if (!takes_gemv()) return {{}, "a matrix times a vector, and TILEGATE_GEMV is not 1"};
        const auto transposed = is_transposed(v.op);
        if (!transposed || v.incx < 1 || v.incy < 1) return {{}, "an increment below 1"};
        const auto [rows, cols] = *transposed ? std::pair(v.n, v.m) : std::pair(v.m, v.n);
        return read_product(
            handle, {CUBLAS_OP_N, *transposed ? CUBLAS_OP_N : CUBLAS_OP_T, 1, rows, cols, v.alpha,
                     v.x, v.incx, 0, v.a, v.lda, 0, v.beta, v.y, v.incy, 0, 1});
      },
      [&] { return call(real, handle, arguments...); });
}

bool is_fp32(cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cublasComputeType_t compute) {
  return a == CUDA_R_32F && b == CUDA_R_32F && c == CUDA_R_32F && compute == CUBLAS_COMPUTE_32F;
}

// An attribute of a cublasLt descriptor; nullopt where it is not set.
template <typename T>
std::optional<T> attribute(cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t name) {
  T value{};
  std::size_t written = 0;
  const auto status = real_cublasLtMatmulDescGetAttribute.get()(
      of, name, static_cast<void*>(&value), sizeof value, &written);
  if (status != CUBLAS_STATUS_SUCCESS || written != sizeof value) return std::nullopt;
  return value;
}

template <typename T>
std::optional<T> attribute(cublasLtMatrixLayout_t of, cublasLtMatrixLayoutAttribute_t name) {
  T value{};
  std::size_t written = 0;
  const auto status = real_cublasLtMatrixLayoutGetAttribute.get()(
      of, name, static_cast<void*>(&value), sizeof value, &written);
  if (status != CUBLAS_STATUS_SUCCESS || written != sizeof value) return std::nullopt;
  return value;
}

struct Layout {
  std::int64_t rows, cols, ld, batch, stride;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// A column-major FP32 matrix, or a batch of them.
std::optional<Layout> layout_of(cublasLtMatrixLayout_t layout) {
  const auto type = attribute<std::uint32_t>(layout, CUBLASLT_MATRIX_LAYOUT_TYPE);
  const auto order = attribute<std::int32_t>(layout, CUBLASLT_MATRIX_LAYOUT_ORDER);
  const auto rows = attribute<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_ROWS);
  const auto cols = attribute<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_COLS);
  const auto ld = attribute<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_LD);
  const auto batch = attribute<std::int32_t>(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  const auto stride = attribute<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  if (!type || !order || !rows || !cols || !ld || !batch || !stride) return std::nullopt;
  if (*type != CUDA_R_32F || *order != CUBLASLT_ORDER_COL) return std::nullopt;
  return Layout{static_cast<std::int64_t>(*rows), static_cast<std::int64_t>(*cols), *ld, *batch,
                *stride};
}

struct Matmul {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t desc;
  const void* alpha;
  const void* a;
  cublasLtMatrixLayout_t layout_a;
  const void* b;
  cublasLtMatrixLayout_t layout_b;
  const void* beta;
  const void* c;
  cublasLtMatrixLayout_t layout_c;
  void* d;
  cublasLtMatrixLayout_t layout_d;
  void* workspace;
  std::size_t workspace_bytes;
  cudaStream_t stream;
};

Read read_matmul(const Matmul& x) {
  if (!is_known_cublaslt()) return {{}, "another version of cublasLt"};
  using Pointers = std::initializer_list<const void*>;
  for (const void* const given : Pointers{x.handle, x.desc, x.layout_a, x.layout_b, x.layout_c,
                                          x.layout_d, x.alpha, x.beta}) {
    if (given == nullptr) return {{}, "an invalid argument"};
  }
  const auto compute = attribute<std::int32_t>(x.desc, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
  const auto scale = attribute<std::int32_t>(x.desc, CUBLASLT_MATMUL_DESC_SCALE_TYPE);
  const auto mode = attribute<std::int32_t>(x.desc, CUBLASLT_MATMUL_DESC_POINTER_MODE);
  const auto op_a = attribute<std::int32_t>(x.desc, CUBLASLT_MATMUL_DESC_TRANSA);
  const auto op_b = attribute<std::int32_t>(x.desc, CUBLASLT_MATMUL_DESC_TRANSB);
  const auto epilogue = attribute<std::uint32_t>(x.desc, CUBLASLT_MATMUL_DESC_EPILOGUE);
  const auto bias = attribute<const float*>(x.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  // -1: the type of D.
  const auto bias_type = attribute<std::int32_t>(x.desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  const auto a = layout_of(x.layout_a), b = layout_of(x.layout_b), c = layout_of(x.layout_c),
             d = layout_of(x.layout_d);
  if (!compute || !scale || !mode || !op_a || !op_b || !epilogue || !a || !b || !c || !d) {
    return {{}, "not matrices of FP32 by columns"};
  }
  if (*compute != CUBLAS_COMPUTE_32F || *scale != CUDA_R_32F) return {{}, "not computed in FP32"};
  const bool on_device = *mode == CUBLASLT_POINTER_MODE_DEVICE;
  if (!on_device && *mode != CUBLASLT_POINTER_MODE_HOST) return {{}, "vectors of scalars"};
  const auto transposed_a = is_transposed(static_cast<cublasOperation_t>(*op_a)),
             transposed_b = is_transposed(static_cast<cublasOperation_t>(*op_b));
  if (!transposed_a || !transposed_b) return {{}, "an invalid argument"};
  const auto [m, k] = *transposed_a ? std::pair(a->cols, a->rows) : std::pair(a->rows, a->cols);
  const auto [k_of_b, n] =
      *transposed_b ? std::pair(b->cols, b->rows) : std::pair(b->rows, b->cols);
  if (k_of_b != k || d->rows != m || d->cols != n || a->batch != d->batch || b->batch != d->batch) {
    return {{}, "matrices that do not fit"};
  }
  const bool is_beta_zero = !on_device && *static_cast<const float*>(x.beta) == 0.0F;
  if (!is_beta_zero && (x.c != x.d || *c != *d)) return {{}, "C is not D"};
  const bool has_bias = *epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (!has_bias && *epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    return {{}, "epilogue " + std::to_string(*epilogue)};
  }
  const bool is_plain_bias = bias && *bias != nullptr && d->batch == 1 &&
                             (!bias_type || *bias_type == -1 || *bias_type == CUDA_R_32F);
  if (has_bias && (!is_plain_bias || !(is_beta_zero || on_device))) {
    return {{}, "a bias of another kind"};
  }
  return {Product{.transposed_a = *transposed_a,
                  .transposed_b = *transposed_b,
                  .m = m,
                  .n = n,
                  .k = k,
                  .alpha = static_cast<const float*>(x.alpha),
                  .a = static_cast<const float*>(x.a),
                  .lda = a->ld,
                  .stride_a = a->stride,
                  .b = static_cast<const float*>(x.b),
                  .ldb = b->ld,
                  .stride_b = b->stride,
                  .beta = static_cast<const float*>(x.beta),
                  .c = static_cast<float*>(x.d),
                  .ldc = d->ld,
                  .stride_c = d->stride,
                  .batch = d->batch,
                  .scalars_on_device = on_device,
                  .bias = has_bias ? *bias : nullptr,
                  .stream = x.stream,
                  .workspace = x.workspace,
                  .workspace_bytes = x.workspace_bytes},
          {}};
}

}  // namespace
}  // namespace tilegate::preload

using namespace tilegate::preload;

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): cuBLAS's own names differ.
extern "C" {

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  const cublasStatus_t status = call(real_cublasSetWorkspace_v2, handle, workspace, bytes);
  if (status == CUBLAS_STATUS_SUCCESS) handle_workspaces().set(handle, {workspace, bytes});
  return status;
}

// Also resets the handle's workspace.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle_workspaces().forget(handle);
  return call(real_cublasSetStream_v2, handle, stream);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  handle_workspaces().forget(handle);
  return call(real_cublasDestroy_v2, handle);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              int m, int n, int k, const float* alpha, const float* a, int lda,
                              const float* b, int ldb, const float* beta, float* c, int ldc) {
  return gemm("cublasSgemm", real_cublasSgemm_v2,
              {op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1}, true, handle,
              op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t op_a,
                                 cublasOperation_t op_b, int64_t m, int64_t n, int64_t k,
                                 const float* alpha, const float* a, int64_t lda, const float* b,
                                 int64_t ldb, const float* beta, float* c, int64_t ldc) {
  return gemm("cublasSgemm_64", real_cublasSgemm_v2_64,
              {op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1}, true, handle,
              op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t op, int m, int n,
                              const float* alpha, const float* a, int lda, const float* x, int incx,
                              const float* beta, float* y, int incy) {
  return gemv("cublasSgemv", real_cublasSgemv_v2, {op, m, n, alpha, a, lda, x, incx, beta, y, incy},
              handle, op, m, n, alpha, a, lda, x, incx, beta, y, incy);
}

cublasStatus_t cublasSgemv_v2_64(cublasHandle_t handle, cublasOperation_t op, int64_t m, int64_t n,
                                 const float* alpha, const float* a, int64_t lda, const float* x,
                                 int64_t incx, const float* beta, float* y, int64_t incy) {
  return gemv("cublasSgemv_64", real_cublasSgemv_v2_64,
              {op, m, n, alpha, a, lda, x, incx, beta, y, incy}, handle, op, m, n, alpha, a, lda, x,
              incx, beta, y, incy);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                         cublasOperation_t op_b, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long stride_a, const float* b, int ldb,
                                         long long stride_b, const float* beta, float* c, int ldc,
                                         long long stride_c, int batch) {
  return gemm("cublasSgemmStridedBatched", real_cublasSgemmStridedBatched,
              {op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
               stride_c, batch},
              true, handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c,
              ldc, stride_c, batch);
}

cublasStatus_t cublasSgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t op_a,
                                            cublasOperation_t op_b, int64_t m, int64_t n, int64_t k,
                                            const float* alpha, const float* a, int64_t lda,
                                            long long stride_a, const float* b, int64_t ldb,
                                            long long stride_b, const float* beta, float* c,
                                            int64_t ldc, long long stride_c, int64_t batch) {
  return gemm("cublasSgemmStridedBatched_64", real_cublasSgemmStridedBatched_64,
              {op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
               stride_c, batch},
              true, handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c,
              ldc, stride_c, batch);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                            int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute_type, cublasGemmAlgo_t algo) {
  return gemm("cublasGemmEx", real_cublasGemmEx,
              {op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1},
              is_fp32(type_a, type_b, type_c, compute_type), handle, op_a, op_b, m, n, k, alpha, a,
              type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, compute_type, algo);
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a,
                               cublasOperation_t op_b, int64_t m, int64_t n, int64_t k,
                               const void* alpha, const void* a, cudaDataType type_a, int64_t lda,
                               const void* b, cudaDataType type_b, int64_t ldb, const void* beta,
                               void* c, cudaDataType type_c, int64_t ldc,
                               cublasComputeType_t compute_type, cublasGemmAlgo_t algo) {
  return gemm("cublasGemmEx_64", real_cublasGemmEx_64,
              {op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1},
              is_fp32(type_a, type_b, type_c, compute_type), handle, op_a, op_b, m, n, k, alpha, a,
              type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, compute_type, algo);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a,
                                          cublasOperation_t op_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType type_a,
                                          int lda, long long stride_a, const void* b,
                                          cudaDataType type_b, int ldb, long long stride_b,
                                          const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stride_c, int batch,
                                          cublasComputeType_t compute_type, cublasGemmAlgo_t algo) {
  return gemm("cublasGemmStridedBatchedEx", real_cublasGemmStridedBatchedEx,
              {op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
               stride_c, batch},
              is_fp32(type_a, type_b, type_c, compute_type), handle, op_a, op_b, m, n, k, alpha, a,
              type_a, lda, stride_a, b, type_b, ldb, stride_b, beta, c, type_c, ldc, stride_c,
              batch, compute_type, algo);
}

cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n,
    int64_t k, const void* alpha, const void* a, cudaDataType type_a, int64_t lda,
    long long stride_a, const void* b, cudaDataType type_b, int64_t ldb, long long stride_b,
    const void* beta, void* c, cudaDataType type_c, int64_t ldc, long long stride_c, int64_t batch,
    cublasComputeType_t compute_type, cublasGemmAlgo_t algo) {
  return gemm("cublasGemmStridedBatchedEx_64", real_cublasGemmStridedBatchedEx_64,
              {op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
               stride_c, batch},
              is_fp32(type_a, type_b, type_c, compute_type), handle, op_a, op_b, m, n, k, alpha, a,
              type_a, lda, stride_a, b, type_b, ldb, stride_b, beta, c, type_c, ldc, stride_c,
              batch, compute_type, algo);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t layout_a, const void* b,
                              cublasLtMatrixLayout_t layout_b, const void* beta, const void* c,
                              cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t bytes, cudaStream_t stream) {
  return take_over(
      "cublasLtMatmul",
      [&] {
        return read_matmul({handle, desc, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d,
                            layout_d, workspace, bytes, stream});
      },
      [&] {
        return call(real_cublasLtMatmul, handle, desc, alpha, a, layout_a, b, layout_b, beta, c,
                    layout_c, d, layout_d, algo, workspace, bytes, stream);
      });
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace tilegate::preload {

void* own_function(const char* name) {
  struct Own {
    std::string_view name;
    void* function;
  };
#define TILEGATE_OWN(function) \
  Own { #function, reinterpret_cast<void*>(function) }
  static const std::array kFunctions = {
      TILEGATE_OWN(cublasSetWorkspace_v2),
      TILEGATE_OWN(cublasSetStream_v2),
      TILEGATE_OWN(cublasDestroy_v2),
      TILEGATE_OWN(cublasSgemm_v2),
      TILEGATE_OWN(cublasSgemm_v2_64),
      TILEGATE_OWN(cublasSgemv_v2),
      TILEGATE_OWN(cublasSgemv_v2_64),
      TILEGATE_OWN(cublasSgemmStridedBatched),
      TILEGATE_OWN(cublasSgemmStridedBatched_64),
      TILEGATE_OWN(cublasGemmEx_64),
      TILEGATE_OWN(cublasGemmStridedBatchedEx_64),
      TILEGATE_OWN(cublasLtMatmul),
      Own{"cublasGemmEx", reinterpret_cast<void*>(static_cast<GemmEx*>(cublasGemmEx))},
      Own{"cublasGemmStridedBatchedEx",
          reinterpret_cast<void*>(static_cast<GemmStridedBatchedEx*>(cublasGemmStridedBatchedEx))}};
#undef TILEGATE_OWN
  for (const Own& own : kFunctions) {
    if (own.name == name) return own.function;
  }
  return nullptr;
}

}  // namespace tilegate::preload
