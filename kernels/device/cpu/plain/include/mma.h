#error "the executor does not have <mma.h>: tensor cores of warps (wmma)"
