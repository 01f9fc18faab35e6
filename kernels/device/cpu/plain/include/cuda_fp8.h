#error "the executor does not have <cuda_fp8.h>: 8-bit floating point"
