/* C <- A * B for some matrices A and the same B, which is split once:
 *   cc prepared.c -ltilegate -lcudart */
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
  enum { M = 128, N = 128, K = 512 };
  const tilegate_order order = TILEGATE_ROW_MAJOR;
  const tilegate_op op = TILEGATE_NO_TRANS;
  float* host = malloc(K * N * sizeof(float));
  float *a, *b, *c;
  tilegate_handle handle;
  tilegate_prepared prepared;
  void *memory, *workspace;
  size_t bytes;
  int i, m;

  check(cudaMalloc((void**)&a, M * K * sizeof(float)) ||
            cudaMalloc((void**)&b, K * N * sizeof(float)) ||
            cudaMalloc((void**)&c, M * N * sizeof(float)),
        "no device memory");
  for (i = 0; i < K * N; ++i) host[i] = 0.5F;
  cudaMemcpy(b, host, K * N * sizeof(float), cudaMemcpyHostToDevice);

  check(tilegate_create(&handle), "no handle");
  check(tilegate_prepare_bytes(handle, order, TILEGATE_OPERAND_B, op, N, K, b, N, 0, &bytes),
        tilegate_message(handle));
  check(cudaMalloc(&memory, bytes), "no device memory");
  check(tilegate_prepare(handle, order, TILEGATE_OPERAND_B, op, N, K, b, N, 0, memory, bytes,
                         &prepared),
        tilegate_message(handle));
  for (m = 1; m <= M; m *= 2) {
    for (i = 0; i < m * K; ++i) host[i] = (float)m;
    cudaMemcpy(a, host, (size_t)m * K * sizeof(float), cudaMemcpyHostToDevice);
    check(tilegate_sgemm_prepared_workspace_bytes(handle, prepared, order, op, op, m, N, K, 1, a, K,
                                                  b, N, 0, c, N, &bytes),
          tilegate_message(handle));
    workspace = NULL;
    check(bytes > 0 && cudaMalloc(&workspace, bytes), "no device memory");
    tilegate_set_workspace(handle, workspace, bytes);
    check(tilegate_sgemm_prepared(handle, prepared, order, op, op, m, N, K, 1, a, K, b, N, 0, c, N),
          tilegate_message(handle));
    cudaMemcpy(host, c, (size_t)m * N * sizeof(float), cudaMemcpyDeviceToHost);
    for (i = 0; i < m * N; ++i) check(host[i] != 0.5F * (float)m * K, "wrong");
    cudaFree(workspace);
  }
  tilegate_destroy_prepared(prepared);
  tilegate_destroy(handle);
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
  cudaFree(memory);
  free(host);
  return 0;
}
