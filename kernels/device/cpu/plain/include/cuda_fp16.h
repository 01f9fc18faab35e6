#error "the executor does not have <cuda_fp16.h>: 16-bit floating point"
