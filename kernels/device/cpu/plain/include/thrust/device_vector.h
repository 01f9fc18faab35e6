#error "the executor does not have <thrust/device_vector.h>: algorithms of CCCL"
