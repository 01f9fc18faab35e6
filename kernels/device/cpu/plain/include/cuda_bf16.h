#error "the executor does not have <cuda_bf16.h>: 16-bit floating point"
