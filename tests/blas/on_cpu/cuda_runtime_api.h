/* What program.c uses of the CUDA runtime, where the device is the CPU. */
#include <stdlib.h>
#include <string.h>

enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

static int cudaMalloc(void** memory, size_t bytes) {
  *memory = malloc(bytes); /* 16-byte aligned */
  return *memory == NULL;
}
static int cudaFree(void* memory) {
  free(memory);
  return 0;
}
static int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  (void)kind;
  memcpy(to, from, bytes);
  return 0;
}
