// preload_program CASE: asks the (fake) cuBLAS for products in the way that CASE names, checks
// them, and prints how many of them cuBLAS computed itself.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake.hpp"

namespace {

// Small whole numbers, so that every order of summation gives the same.
std::vector<float> values(std::size_t count, unsigned seed) {
  std::vector<float> result(count);
  for (float& value : result) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 29) - 3.0F;
  }
  return result;
}

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::exit(1);
}

// C is m x n by columns, op(A) and op(B) by their own leading dimensions; beta 0.
struct Problem {
  int m = 37, n = 29, k = 41;
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_T;
  int lda = 40, ldb = 32, ldc = 39;
  std::vector<float> a = values(4096, 1), b = values(4096, 2), c = std::vector<float>(4096, -7.0F);

  void check(float alpha, const float* bias = nullptr) const {
    for (int col = 0; col < n; ++col) {
      std::vector<float> sum(m);
      for (int i = 0; i < k; ++i) {
        const float y = op_b == CUBLAS_OP_N ? b[i + col * ldb] : b[col + i * ldb];
        for (int row = 0; row < m; ++row) {
          sum[row] += (op_a == CUBLAS_OP_N ? a[row + i * lda] : a[i + row * lda]) * y;
        }
      }
      for (int row = 0; row < m; ++row) {
        const float wanted = alpha * sum[row] + (bias == nullptr ? 0.0F : bias[row]);
        expect(c[row + col * ldc] == wanted, "an element of C");
      }
      for (int row = m; row < ldc; ++row) expect(c[row + col * ldc] == -7.0F, "padding of C");
    }
  }
};

constexpr float kZero = 0.0F, kOne = 1.0F, kTwo = 2.0F, kThree = 3.0F, kNan = NAN;

cublasLtHandle_t lt_handle() {
  cublasLtHandle_t handle = nullptr;
  cublasLtCreate(&handle);
  return handle;
}

void sgemm(cublasHandle_t handle, decltype(cublasSgemm_v2)* function = cublasSgemm_v2) {
  Problem p;
  expect(function(handle, p.op_a, p.op_b, p.m, p.n, p.k, &kTwo, p.a.data(), p.lda, p.b.data(),
                  p.ldb, &kZero, p.c.data(), p.ldc) == CUBLAS_STATUS_SUCCESS,
         "cublasSgemm");
  p.check(2.0F);
}

// Each function once, with leading dimensions and strides that all differ.
void every_function(cublasHandle_t handle) {
  constexpr cublasOperation_t kA = CUBLAS_OP_N, kB = CUBLAS_OP_T;
  constexpr cublasComputeType_t kCompute = CUBLAS_COMPUTE_32F;
  constexpr cublasGemmAlgo_t kAlgo = CUBLAS_GEMM_DEFAULT;
  constexpr cudaDataType kType = CUDA_R_32F;
  constexpr int kM = 5, kN = 7, kK = 11, kLda = 6, kLdb = 9, kLdc = 8;
  constexpr int kStrideA = 69, kStrideB = 104, kStrideC = 57, kBatch = 2;
  const std::vector<float> all_a = values(200, 1), all_b = values(250, 2);
  const float *const a = all_a.data(), *const b = all_b.data();
  std::vector<float> all_c;
  const auto call = [&](const char* function, auto run, int batch) {
    all_c.assign(150, -7.0F);
    expect(run(all_c.data()) == CUBLAS_STATUS_SUCCESS, function);
    std::vector<float> wanted(150, -7.0F);
    for (int i = 0; i < batch; ++i) {
      for (int col = 0; col < kN; ++col) {
        for (int row = 0; row < kM; ++row) {
          float sum = 0.0F;
          for (int at = 0; at < kK; ++at) {
            sum += a[i * kStrideA + row + at * kLda] * b[i * kStrideB + col + at * kLdb];
          }
          wanted[i * kStrideC + row + col * kLdc] = 2.0F * sum - 3.0F * 7.0F;
        }
      }
    }
    expect(all_c == wanted, function);
  };
  const auto one = [&](const char* name, auto run) { call(name, run, 1); };
  const auto batch = [&](const char* name, auto run) { call(name, run, kBatch); };
  one("cublasSgemm", [&](float* c) {
    return cublasSgemm(handle, kA, kB, kM, kN, kK, &kTwo, a, kLda, b, kLdb, &kThree, c, kLdc);
  });
  one("cublasSgemm_64", [&](float* c) {
    return cublasSgemm_64(handle, kA, kB, kM, kN, kK, &kTwo, a, kLda, b, kLdb, &kThree, c, kLdc);
  });
  batch("cublasSgemmStridedBatched", [&](float* c) {
    return cublasSgemmStridedBatched(handle, kA, kB, kM, kN, kK, &kTwo, a, kLda, kStrideA, b, kLdb,
                                     kStrideB, &kThree, c, kLdc, kStrideC, kBatch);
  });
  batch("cublasSgemmStridedBatched_64", [&](float* c) {
    return cublasSgemmStridedBatched_64(handle, kA, kB, kM, kN, kK, &kTwo, a, kLda, kStrideA, b,
                                        kLdb, kStrideB, &kThree, c, kLdc, kStrideC, kBatch);
  });
  one("cublasGemmEx", [&](float* c) {
    return cublasGemmEx(handle, kA, kB, kM, kN, kK, &kTwo, a, kType, kLda, b, kType, kLdb, &kThree,
                        c, kType, kLdc, kCompute, kAlgo);
  });
  one("cublasGemmEx_64", [&](float* c) {
    return cublasGemmEx_64(handle, kA, kB, kM, kN, kK, &kTwo, a, kType, kLda, b, kType, kLdb,
                           &kThree, c, kType, kLdc, kCompute, kAlgo);
  });
  batch("cublasGemmStridedBatchedEx", [&](float* c) {
    return cublasGemmStridedBatchedEx(handle, kA, kB, kM, kN, kK, &kTwo, a, kType, kLda, kStrideA,
                                      b, kType, kLdb, kStrideB, &kThree, c, kType, kLdc, kStrideC,
                                      kBatch, kCompute, kAlgo);
  });
  batch("cublasGemmStridedBatchedEx_64", [&](float* c) {
    return cublasGemmStridedBatchedEx_64(handle, kA, kB, kM, kN, kK, &kTwo, a, kType, kLda,
                                         kStrideA, b, kType, kLdb, kStrideB, &kThree, c, kType,
                                         kLdc, kStrideC, kBatch, kCompute, kAlgo);
  });
}

// n: no multiple of the columns of C to which a thread adds the bias.
void matmul(int k, bool biased, std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST, int m = 6,
            int n = 5, const float* beta = &kZero) {
  Problem p;
  p.m = p.lda = p.ldc = m;
  p.n = p.ldb = n;
  p.k = k;
  p.a = values(static_cast<std::size_t>(m) * k, 1);
  p.b = values(static_cast<std::size_t>(n) * k, 2);
  p.c.assign(static_cast<std::size_t>(m) * (n + 1), -7.0F);  // a column more
  const std::vector<float> bias = values(m, 3);
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const std::int32_t op = CUBLAS_OP_T;
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &op, sizeof op);
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, &pointer_mode,
                                 sizeof pointer_mode);
  if (biased) {
    const std::uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const float* pointer = bias.data();
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer,
                                   sizeof pointer);
  }
  cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, m, static_cast<std::uint64_t>(k), m);
  cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, n, static_cast<std::uint64_t>(k), n);
  cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, m, n, m);
  expect(!cublasLtMatmul(lt_handle(), desc, &kTwo, p.a.data(), a, p.b.data(), b, beta, p.c.data(),
                         c, p.c.data(), c, nullptr, nullptr, 0, nullptr),
         "cublasLtMatmul");
  std::vector<float> added(bias.size());
  for (int i = 0; i < m; ++i) added[i] = (biased ? bias[i] : 0.0F) - *beta * 7.0F;
  p.check(2.0F, added.data());
  expect(std::count(p.c.end() - m, p.c.end(), -7.0F) == m, "the column beyond C");
}

// A product of cublasLt that is like those above but for one thing. Of what cuBLAS computes of it
// nothing is checked; "bad_…" cuBLAS refuses.
void matmul_but_for(const std::string& what) {
  constexpr int kSize = 8, kK = 2000;
  const std::vector<float> a = values(2 * kSize * kK, 1), bias = values(kSize + 1, 3);
  std::vector<float> c(2 * kSize * kSize, -7.0F), other = c;
  const bool is_biased = what.starts_with("bias");
  cublasLtMatmulDesc_t desc;
  cublasLtMatmulDescCreate(&desc,
                           what == "compute" ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                           what == "scale" ? CUDA_R_64F : CUDA_R_32F);
  const auto set = [&](cublasLtMatmulDescAttributes_t name, const auto& value) {
    cublasLtMatmulDescSetAttribute(desc, name, &value, sizeof value);
  };
  set(CUBLASLT_MATMUL_DESC_TRANSB, std::int32_t{CUBLAS_OP_T});
  if (what == "vectors") {
    set(CUBLASLT_MATMUL_DESC_POINTER_MODE, std::int32_t{CUBLASLT_POINTER_MODE_DEVICE_VECTOR});
  }
  if (what == "epilogue") {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t{CUBLASLT_EPILOGUE_RELU});
  }
  if (is_biased) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t{CUBLASLT_EPILOGUE_BIAS});
    const auto at = reinterpret_cast<std::uintptr_t>(bias.data());
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, what == "bias_pointer"         ? std::uintptr_t{0}
                                           : what == "bias_between_words" ? at + 2
                                                                          : at);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
        std::int32_t{what == "bias_type" ? CUDA_R_16F : CUDA_R_32F});
  }
  struct Shape {
    int rows, cols, ld;
  };
  const auto one_if = [&](const char* name) { return what == name ? 1 : 0; };
  const Shape shapes[] = {
      {kSize, kK, kSize},                                         // A
      {kSize, kK - one_if("bad_k"), kSize},                       // B, transposed
      {kSize, kSize, kSize + one_if("ld_of_c")},                  // C
      {kSize - one_if("bad_m"), kSize - one_if("bad_n"), kSize},  // D
  };
  cublasLtMatrixLayout_t layouts[4];
  for (const int i : {0, 1, 2, 3}) {
    cublasLtMatrixLayoutCreate(&layouts[i], what == "type" ? CUDA_R_16F : CUDA_R_32F,
                               shapes[i].rows, shapes[i].cols, shapes[i].ld);
    const std::int32_t order = what == "order" ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_ORDER, &order,
                                     sizeof order);
    const bool is_pair = what == "bias_batch" || what == "bad_batch_" + std::string(1, "abcd"[i]);
    const std::int32_t batch = is_pair ? 2 : 1;
    cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                     sizeof batch);
    const std::int64_t stride = kSize * (i < 2 ? kK : kSize);
    cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                     &stride, sizeof stride);
  }
  const double one = 1.0;  // also in FP64
  const bool adds_c = what == "bias_beta" || what == "c" || what == "ld_of_c";
  const float* beta = adds_c ? &kOne : &kZero;
  const void* alpha = what == "scale" ? static_cast<const void*>(&one) : &kTwo;
  const auto unless = [&](const char* name, auto* pointer) {
    return what == name ? nullptr : pointer;
  };
  const cublasStatus_t status =
      cublasLtMatmul(unless("bad_handle", lt_handle()), unless("bad_desc", desc),
                     unless("bad_alpha", alpha), a.data(), unless("bad_layout_a", layouts[0]),
                     a.data(), unless("bad_layout_b", layouts[1]), unless("bad_beta", beta),
                     what == "c" ? other.data() : c.data(), unless("bad_layout_c", layouts[2]),
                     c.data(), unless("bad_layout_d", layouts[3]), nullptr, nullptr, 0, nullptr);
  expect((status != CUBLAS_STATUS_SUCCESS) == what.starts_with("bad_"), "cublasLtMatmul");
  for (const float element : c) expect(status == 0 || element == -7.0F, "D");
}

// Scalars in device memory, here the host's; K is long enough for one more pass over C.
void device_scalars(cublasHandle_t handle) {
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  Problem p;
  p.k = 2000;
  p.a = values(40 * 2000, 1);
  p.b = values(32 * 2000, 2);
  const auto call = [&](const float* alpha, const float* beta) {
    expect(!cublasSgemm(handle, p.op_a, p.op_b, p.m, p.n, p.k, alpha, p.a.data(), p.lda, p.b.data(),
                        p.ldb, beta, p.c.data(), p.ldc),
           "cublasSgemm");
  };
  for (int col = 0; col < p.n; ++col) std::fill_n(&p.c[col * p.ldc], p.m, kNan);
  call(&kTwo, &kZero);  // C is not read
  p.check(2.0F);
  call(&kOne, &kOne);  // and then added to
  p.check(3.0F);
  const std::vector<float> wanted = p.c;
  p.a[0] = p.b[0] = kNan;
  call(&kZero, &kOne);  // A and B do not count
  expect(p.c == wanted, "C with alpha 0");
}

void device_scalars_of_a_batch(cublasHandle_t handle) {
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  constexpr int kK = 2000;
  const std::vector<float> a = values(2 * 5 * kK, 1), b = values(2 * 3 * kK, 2);
  std::vector<float> c(40, -7.0F);
  expect(!cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, 5, 3, kK, &kTwo, a.data(), 5,
                                    5 * kK, b.data(), 3, 3 * kK, &kZero, c.data(), 6, 20, 2),
         "cublasSgemmStridedBatched");
  for (int i = 0; i < 2; ++i) {
    Problem p;
    p.m = p.lda = 5;
    p.n = p.ldb = 3;
    p.k = kK;
    p.ldc = 6;
    p.a.assign(a.begin() + i * 5 * kK, a.begin() + (i + 1) * 5 * kK);
    p.b.assign(b.begin() + i * 3 * kK, b.begin() + (i + 1) * 3 * kK);
    p.c.assign(c.begin() + i * 20, c.begin() + (i + 1) * 20);
    p.check(2.0F);
  }
}

// y = op(A)·x for both forms, for vectors with gaps of different widths.
void gemv(cublasHandle_t handle) {
  constexpr int kM = 37, kN = 29, kLd = 40;
  const std::vector<float> a = values(kLd * kN, 1), x = values(3 * kM, 2);
  for (const cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    const int rows = op == CUBLAS_OP_N ? kM : kN, cols = op == CUBLAS_OP_N ? kN : kM;
    for (const auto& [step_x, step_y] : {std::pair{1, 1}, std::pair{3, 2}}) {
      for (const bool by_64_bits : {false, true}) {
        std::vector<float> y(3 * kM, -7.0F);
        const auto call = [&](auto* function) {
          return function(handle, op, kM, kN, &kTwo, a.data(), kLd, x.data(), step_x, &kZero,
                          y.data(), step_y);
        };
        expect(!(by_64_bits ? call(cublasSgemv_64) : call(cublasSgemv)), "cublasSgemv");
        for (int i = 0; i < 3 * kM; ++i) {
          float wanted = -7.0F;
          if (i % step_y == 0 && i / step_y < rows) {
            float sum = 0.0F;
            for (int j = 0; j < cols; ++j) {
              const int row = i / step_y;
              sum += (op == CUBLAS_OP_N ? a[row + j * kLd] : a[j + row * kLd]) * x[j * step_x];
            }
            wanted = 2.0F * sum;
          }
          expect(y[i] == wanted, "an element of y");
        }
      }
    }
  }
}

// Calls that cuBLAS refuses. Nothing else becomes of them.
void bad_calls(cublasHandle_t handle) {
  const Problem right;
  std::vector<float> c(4096, -7.0F);
  const auto call = [&](cublasHandle_t with, int m, const float* a, int lda, const float* alpha,
                        float* to) {
    return cublasSgemm(with, right.op_a, right.op_b, m, right.n, right.k, alpha, a, lda,
                       right.b.data(), right.ldb, &kZero, to, right.ldc);
  };
  const float* a = right.a.data();
  expect(call(nullptr, right.m, a, right.lda, &kTwo, c.data()) == CUBLAS_STATUS_NOT_INITIALIZED,
         "no handle");
  for (const cublasStatus_t status : {
           call(handle, -1, a, right.lda, &kTwo, c.data()),
           call(handle, right.m, nullptr, right.lda, &kTwo, c.data()),
           call(handle, right.m, a, right.m - 1, &kTwo, c.data()),
           call(handle, right.m, a, right.lda, nullptr, c.data()),
           call(handle, right.m, a, right.lda, &kTwo, nullptr),
       }) {
    expect(status == CUBLAS_STATUS_INVALID_VALUE, "a status");
  }
  for (const float element : c) expect(element == -7.0F, "an element of C");
  sgemm(handle);
}

// Products without an element.
void empty(cublasHandle_t handle) {
  Problem p;
  const auto call = [&](int m, int n, int batch) {
    expect(
        !cublasSgemmStridedBatched(handle, p.op_a, p.op_b, m, n, p.k, &kTwo, p.a.data(), p.lda, 0,
                                   p.b.data(), p.ldb, 0, &kZero, p.c.data(), p.ldc, 4096, batch),
        "cublasSgemmStridedBatched");
  };
  call(0, p.n, 1);
  call(p.m, 0, 1);
  call(p.m, p.n, 0);
  for (const float element : p.c) expect(element == -7.0F, "an element of C");
}

// C <- 2 * C.
void no_k(cublasHandle_t handle) {
  Problem p;
  expect(!cublasSgemm(handle, p.op_a, p.op_b, p.m, p.n, 0, &kTwo, p.a.data(), p.lda, p.b.data(),
                      p.ldb, &kTwo, p.c.data(), p.ldc),
         "cublasSgemm");
  for (int i = 0; i < p.n * p.ldc; ++i) {
    expect(p.c[i] == (i % p.ldc < p.m ? -14.0F : -7.0F), "an element of C");
  }
}

// C large enough for a workspace, where operands may be split.
constexpr int kLarge = 512, kLarger = 576, kLargest = 640;
void large(cublasHandle_t handle, int size = kLarge, int k = 128) {
  const std::vector<float> ones(size * k, 1.0F);
  std::vector<float> c(size * size);
  expect(!cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, size, size, k, &kOne, ones.data(), size,
                      ones.data(), k, &kZero, c.data(), size),
         "cublasSgemm");
  for (const float element : c) expect(element == static_cast<float>(k), "an element of C");
}

// From a multiple of 256 bytes on, as cuBLAS takes it, and so much further.
cublasStatus_t set_workspace(cublasHandle_t handle, std::vector<double>& memory, std::size_t bytes,
                             std::size_t further = 0) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data()) / 256 * 256 + 256 + further;
  return cublasSetWorkspace(handle, reinterpret_cast<void*>(at), bytes);
}

void opened(const char* library) {
  void* opened_library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  expect(opened_library != nullptr, library);
  const auto create =
      reinterpret_cast<decltype(cublasCreate_v2)*>(dlsym(opened_library, "cublasCreate_v2"));
  const auto function =
      reinterpret_cast<decltype(cublasSgemm_v2)*>(dlsym(opened_library, "cublasSgemm_v2"));
  expect(create != nullptr && function != nullptr, "dlsym");
  expect(dlsym(opened_library, "no such function") == nullptr, "dlsym of nothing");
  cublasHandle_t handle = nullptr;
  create(&handle);
  sgemm(handle, function);
}

}  // namespace

int main(int argc, char** argv) {
  expect(argc > 1, "usage: preload_program CASE");
  cublasHandle_t handle = nullptr;
  cublasCreate(&handle);
  const std::map<std::string, std::function<void()>> cases = {
      {"every_function", [&] { every_function(handle); }},
      {"tf32",
       [&] {
         cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH);
         every_function(handle);
       }},
      {"half_precision_flag",  // is about sums of half precision
       [&] {
         cublasSetMathMode(handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
         sgemm(handle);
       }},
      {"conjugate",
       [&] {
         Problem p;
         expect(!cublasSgemm(handle, p.op_a, CUBLAS_OP_C, p.m, p.n, p.k, &kTwo, p.a.data(), p.lda,
                             p.b.data(), p.ldb, &kZero, p.c.data(), p.ldc),
                "cublasSgemm");
         p.check(2.0F);
       }},
      {"matmul_but_for", [&] { matmul_but_for(argv[2]); }},
      {"tf32_of_a_call",  // which the fake passes to its own cublasSgemm
       [&] {
         Problem p;
         cublasGemmEx(handle, p.op_a, p.op_b, p.m, p.n, p.k, &kTwo, p.a.data(), CUDA_R_32F, p.lda,
                      p.b.data(), CUDA_R_32F, p.ldb, &kZero, p.c.data(), CUDA_R_32F, p.ldc,
                      CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT);
         p.check(2.0F);
       }},
      {"short_device_scalars",
       [&] {
         cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
         sgemm(handle);
       }},
      {"device_scalars", [&] { device_scalars(handle); }},
      {"matmul_of",  // HOST or DEVICE scalars, M, N, K
       [&] {
         const bool on_device = argv[2] == std::string_view("device");
         matmul(std::atoi(argv[5]), !on_device,
                on_device ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST,
                std::atoi(argv[3]), std::atoi(argv[4]));
       }},
      {"batch_of_device_scalars", [&] { device_scalars_of_a_batch(handle); }},
      {"bias_and_device_scalars", [] { matmul(2000, true, CUBLASLT_POINTER_MODE_DEVICE); }},
      {"bias_device_scalars_and_beta",
       [] { matmul(2000, true, CUBLASLT_POINTER_MODE_DEVICE, 6, 5, &kOne); }},
      {"gemv", [&] { gemv(handle); }},
      {"bad_calls", [&] { bad_calls(handle); }},
      {"other_version",
       [&] {
         fake_set_version(CUBLAS_VERSION + 10000);
         sgemm(handle);
         sgemm(handle);
       }},
      {"matmul", [] { matmul(50, false); }},
      {"empty", [&] { empty(handle); }},
      {"no_k", [&] { no_k(handle); }},
      {"large", [&] { large(handle); }},
      {"larger", [&] { large(handle, kLarger); }},
      {"large_device_scalars",
       [&] {
         cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
         large(handle, kLargest, kLargest);
       }},
      {"same_size",
       [&] {
         fake_set_room(1);
         large(handle);
         large(handle);
       }},
      {"growth",
       [&] {
         large(handle);
         large(handle, kLarger);
         large(handle);
         expect(fake_blocks() == 1, "the smaller buffer is freed");
       }},
      {"stream_per_thread",
       [&] {
         cublasSetStream(handle, cudaStreamPerThread);
         large(handle);
         std::thread([&] { large(handle); }).join();
         expect(fake_blocks() == 2, "a buffer of each thread");
       }},
      {"no_room",
       [&] {
         fake_set_room(0);
         large(handle);
         expect(cudaGetLastError() == cudaSuccess, "no error for the program to find");
       }},
      {"capture",  // each graph has a buffer of its own, until it is destroyed
       [&] {
         large(handle);
         expect(fake_blocks() == 1, "a buffer of the stream");
         for (int graphs = 1; graphs <= 2; ++graphs) {
           fake_begin_capture();
           large(handle);
           large(handle);
           fake_end_capture();
           expect(fake_blocks() == 1 + graphs, "a buffer of each graph");
         }
         large(handle);
         expect(fake_blocks() == 3, "the buffer of the stream, again");
         fake_destroy_graphs();
         fake_begin_capture();
         large(handle);
         fake_end_capture();
         expect(fake_blocks() == 3, "a buffer of a graph that is gone");
         large(handle);
         expect(fake_blocks() == 2, "the other one is freed");
         fake_destroy_graphs();
         large(handle);
         expect(fake_blocks() == 1, "all of graphs are freed");
         fake_begin_capture();
         large(handle);
         fake_end_capture();
       }},
      {"capture_of_growth",  // the graph holds both buffers
       [&] {
         fake_begin_capture();
         large(handle);
         large(handle, kLarger);
         fake_end_capture();
         expect(fake_blocks() == 2, "a buffer for each size");
       }},
      {"invalid_capture",
       [&] {
         fake_begin_capture();
         fake_invalidate_capture();
         large(handle);
       }},
      {"capture_without_room",
       [&] {
         fake_begin_capture();
         fake_set_room(0);
         large(handle);
       }},
      {"own_workspace",
       [&] {
         fake_set_room(0);
         std::vector<double> workspace(1 << 20);
         set_workspace(handle, workspace, 7 << 20);
         large(handle);
         cublasSetStream(handle, nullptr);  // takes it away
         large(handle);
       }},
      {"small_workspace",  // is left alone
       [&] {
         std::vector<double> workspace(1 << 20, 7.0);
         set_workspace(handle, workspace, 256);
         large(handle);
         for (const double word : workspace) expect(word == 7.0, "the workspace of the handle");
       }},
      {"refused_workspace",
       [&] {
         fake_set_room(0);
         std::vector<double> workspace(1 << 20);
         expect(set_workspace(handle, workspace, 7 << 20, 16) == CUBLAS_STATUS_INVALID_VALUE,
                "a workspace that is not 256-byte aligned");
         large(handle);
       }},
      {"workspace_of_a_destroyed_handle",
       [&] {
         fake_set_room(0);
         std::vector<double> workspace(1 << 20);
         set_workspace(handle, workspace, 7 << 20);
         const cublasHandle_t before = handle;
         cublasDestroy(handle);
         cublasCreate(&handle);
         expect(handle == before, "the address of the handle");
         large(handle);
       }},
      {"threads",
       [&] {
         std::vector<std::thread> threads;
         for (int i = 0; i < 4; ++i) {
           threads.emplace_back([&] {
             for (int j = 0; j < 3; ++j) sgemm(handle);
           });
         }
         for (std::thread& thread : threads) thread.join();
       }},
      {"fork",
       [&] {
         sgemm(handle);
         const pid_t child = fork();
         if (child == 0) {
           sgemm(handle);
           _exit(0);
         }
         int status = 1;
         waitpid(child, &status, 0);
         expect(status == 0, "the child");
       }},
      {"dlopen", [&] { opened(argv[2]); }},
  };
  const auto found = cases.find(argv[1]);
  expect(found != cases.end(), "no such case");
  found->second();
  std::printf("%d\n", fake_products());
  return 0;
}
