// preload_program CASE: asks the (fake) cuBLAS for products in the way that CASE names, checks
// them, and prints how many of them cuBLAS computed itself.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
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
      for (int row = 0; row < m; ++row) {
        float sum = 0.0F;
        for (int i = 0; i < k; ++i) {
          sum += (op_a == CUBLAS_OP_N ? a[row + i * lda] : a[i + row * lda]) *
                 (op_b == CUBLAS_OP_N ? b[i + col * ldb] : b[col + i * ldb]);
        }
        const float wanted = alpha * sum + (bias == nullptr ? 0.0F : bias[row]);
        expect(c[row + col * ldc] == wanted, "an element of C");
      }
      for (int row = m; row < ldc; ++row) expect(c[row + col * ldc] == -7.0F, "padding of C");
    }
  }
};

constexpr float kZero = 0.0F, kTwo = 2.0F;

void sgemm(cublasHandle_t handle, decltype(cublasSgemm_v2)* function = cublasSgemm_v2) {
  Problem p;
  expect(function(handle, p.op_a, p.op_b, p.m, p.n, p.k, &kTwo, p.a.data(), p.lda, p.b.data(),
                  p.ldb, &kZero, p.c.data(), p.ldc) == CUBLAS_STATUS_SUCCESS,
         "cublasSgemm");
  p.check(2.0F);
}

void every_function(cublasHandle_t handle) {
  sgemm(handle);
  Problem p;
  expect(!cublasSgemm_64(handle, p.op_a, p.op_b, p.m, p.n, p.k, &kTwo, p.a.data(), p.lda,
                         p.b.data(), p.ldb, &kZero, p.c.data(), p.ldc),
         "cublasSgemm_64");
  p.check(2.0F);
  p = {};
  expect(!cublasGemmEx(handle, p.op_a, p.op_b, p.m, p.n, p.k, &kTwo, p.a.data(), CUDA_R_32F, p.lda,
                       p.b.data(), CUDA_R_32F, p.ldb, &kZero, p.c.data(), CUDA_R_32F, p.ldc,
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
         "cublasGemmEx");
  p.check(2.0F);
  p = {};
  p.m = 5;
  p.lda = 8;
  p.ldc = 5;
  expect(!cublasSgemmStridedBatched(handle, p.op_a, p.op_b, p.m, p.n, p.k, &kTwo, p.a.data(), p.lda,
                                    400, p.b.data(), p.ldb, 0, &kZero, p.c.data(), p.ldc, 200, 2),
         "cublasSgemmStridedBatched");
  p.check(2.0F);
  p.a.erase(p.a.begin(), p.a.begin() + 400);
  p.c.erase(p.c.begin(), p.c.begin() + 200);
  p.check(2.0F);
}

void matmul(int k, bool biased) {
  Problem p;
  p.m = p.lda = p.ldc = 6;
  p.n = p.ldb = 4;
  p.k = k;
  p.a = values(static_cast<std::size_t>(6) * k, 1);
  p.b = values(static_cast<std::size_t>(4) * k, 2);
  const std::vector<float> bias = values(6, 3);
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const std::int32_t op = CUBLAS_OP_T;
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &op, sizeof op);
  if (biased) {
    const std::uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const float* pointer = bias.data();
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer,
                                   sizeof pointer);
  }
  cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 6, static_cast<std::uint64_t>(k), 6);
  cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 4, static_cast<std::uint64_t>(k), 4);
  cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, 6, 4, 6);
  expect(!cublasLtMatmul(nullptr, desc, &kTwo, p.a.data(), a, p.b.data(), b, &kZero, p.c.data(), c,
                         p.c.data(), c, nullptr, nullptr, 0, nullptr),
         "cublasLtMatmul");
  p.check(2.0F, biased ? bias.data() : nullptr);
}

// Large enough for a workspace, where operands may be split.
void large(cublasHandle_t handle) {
  constexpr int kN = 192;
  const std::vector<float> ones(kN * kN, 1.0F);
  std::vector<float> c(kN * kN);
  const float one = 1.0F;
  expect(!cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, kN, kN, kN, &one, ones.data(), kN,
                      ones.data(), kN, &kZero, c.data(), kN),
         "cublasSgemm");
  for (const float element : c) expect(element == kN, "an element of C");
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
         sgemm(handle);
       }},
      {"tf32_of_a_call",  // which the fake passes to its own cublasSgemm
       [&] {
         Problem p;
         cublasGemmEx(handle, p.op_a, p.op_b, p.m, p.n, p.k, &kTwo, p.a.data(), CUDA_R_32F, p.lda,
                      p.b.data(), CUDA_R_32F, p.ldb, &kZero, p.c.data(), CUDA_R_32F, p.ldc,
                      CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT);
         p.check(2.0F);
       }},
      {"device_scalars",
       [&] {
         cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
         sgemm(handle);
       }},
      {"other_version",
       [&] {
         fake_set_version(CUBLAS_VERSION + 10000);
         sgemm(handle);
         sgemm(handle);
       }},
      {"matmul", [] { matmul(50, false); }},
      {"bias", [] { matmul(1100, true); }},
      {"short_bias", [] { matmul(50, true); }},
      {"large", [&] { large(handle); }},
      {"no_room",
       [&] {
         fake_set_room(0);
         large(handle);
       }},
      {"capture",  // has room only if there was a call before
       [&] {
         large(handle);
         fake_set_capturing(1);
         large(handle);
         fake_set_room(0);
         large(handle);
       }},
      {"first_in_capture",
       [&] {
         fake_set_capturing(1);
         large(handle);
       }},
      {"own_workspace",
       [&] {
         fake_set_room(0);
         std::vector<double> workspace(1 << 20);
         cublasSetWorkspace(handle, workspace.data(), workspace.size() * sizeof(double));
         large(handle);
         cublasSetStream(handle, nullptr);  // takes it away
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
