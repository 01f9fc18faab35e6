#error "the executor does not have <cub/cub.cuh>: algorithms of CCCL"
