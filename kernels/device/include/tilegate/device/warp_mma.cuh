// Tensor-core instructions of a warp (ldmatrix, mma), compute capability 7.5 and later. In
// namespace tilegate::device, executed by all 32 lanes:
//
//   load_matrices(v, row)          four matrices of 8 rows × 16 bytes in shared memory; lane l
//   gives
//                                  the address, 16-byte aligned, of row l % 8 of matrix l / 8; v[i]
//                                  becomes bytes l % 4 · 4 and the next three of row l / 4 of
//                                  matrix
//                                  i
//   multiply_s8(acc, a, b)         acc += a·bᵀ, a: 16×32, b: 8×32, of int8; lane l holds, of the
//   rows
//                                  l / 4 of each, bytes l % 4 · 4 and the next three (a[0], b[0])
//                                  and those 16 further (a[2], b[1]); of row l / 4 + 8 a[1] and
//                                  a[3]; and columns l % 4 · 2 and the next of row l / 4 of the sum
//                                  (acc[0], acc[1]) and of 8 rows below (acc[2], acc[3])
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>

#if defined(__CUDACC__)
#include <tilegate/device/cuda/warp_mma.cuh>
#else
#include <tilegate/device/cpu/warp_mma.hpp>
#endif
