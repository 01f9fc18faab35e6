#error "the executor does not have <curand_kernel.h>: random numbers"
