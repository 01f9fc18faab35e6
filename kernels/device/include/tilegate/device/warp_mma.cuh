// Tensor-core instructions of a warp (ldmatrix, mma), compute capability 7.5 and later. In
// namespace tilegate::device, executed by all 32 lanes:
//
//   load_matrices(v, row)   loads four matrices of 8 rows × 16 bytes from shared memory. Lane l
//                           passes the 16-byte aligned address of row l % 8 of matrix l / 8. v[i]
//                           becomes the 4 bytes from l % 4 · 4 on, of row l / 4 of matrix i
//   multiply_s8(acc, a, b)  acc += a·bᵀ, a: 16×32, b: 8×32, of int8. With row r = l / 4 and first
//                           byte f = l % 4 · 4, lane l holds 4 bytes each:
//                             of a: a[0] at (r, f), a[1] at (r + 8, f),
//                                   a[2] at (r, f + 16), a[3] at (r + 8, f + 16)
//                             of b: b[0] at (r, f), b[1] at (r, f + 16)
//                           and of the sum, with column c = l % 4 · 2:
//                             acc[0], acc[1] at (r, c), (r, c + 1); acc[2], acc[3] 8 rows below
//   mma_f64(acc, a, b)      acc += a·bᵀ, a: 16×16, b: 8×16, of double; compute capability 9.0. acc
//                           is as above; of b, b[i] is at (r, l % 4 + 4·i), of a, a[2·i] is at the
//                           same place, and a[2·i + 1] 8 rows below
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>

#if defined(__CUDACC__)
#include <tilegate/device/cuda/warp_mma.cuh>
#else
#include <tilegate/device/cpu/warp_mma.hpp>
#endif
