/* C <- A * B for 100 x 100 matrices on the GPU:
 *   cc program.c -ltilegate -lcudart */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <tilegate.h>

static void check(int failed, const char* what) {
  if (!failed) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

int main(void) {
  enum { N = 100 };
  const size_t size = N * N * sizeof(float);
  float* host = malloc(size);
  float *a, *b, *c;
  tilegate_handle handle;
  void* workspace = NULL;
  size_t bytes;
  int i;

  for (i = 0; i < N * N; ++i) host[i] = 0.5F;
  check(
      cudaMalloc((void**)&a, size) || cudaMalloc((void**)&b, size) || cudaMalloc((void**)&c, size),
      "no device memory");
  cudaMemcpy(a, host, size, cudaMemcpyHostToDevice);
  cudaMemcpy(b, host, size, cudaMemcpyHostToDevice);

  check(tilegate_create(&handle), "no handle");
  tilegate_set_math(handle, TILEGATE_MATH_FP32_SPLIT);
  check(tilegate_sgemm_workspace_bytes(handle, TILEGATE_ROW_MAJOR, TILEGATE_NO_TRANS,
                                       TILEGATE_NO_TRANS, N, N, N, 1, a, N, b, N, 0, c, N, &bytes),
        tilegate_message(handle));
  check(bytes > 0 && cudaMalloc(&workspace, bytes), "no device memory");
  tilegate_set_workspace(handle, workspace, bytes);
  check(tilegate_sgemm(handle, TILEGATE_ROW_MAJOR, TILEGATE_NO_TRANS, TILEGATE_NO_TRANS, N, N, N, 1,
                       a, N, b, N, 0, c, N),
        tilegate_message(handle));
  tilegate_destroy(handle);

  cudaMemcpy(host, c, size, cudaMemcpyDeviceToHost);
  printf("%g\n", host[0]);
  for (i = 0; i < N * N; ++i) check(host[i] != 0.25F * N, "wrong");
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
  cudaFree(workspace);
  free(host);
  return 0;
}
