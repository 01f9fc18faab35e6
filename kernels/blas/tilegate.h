/* Tilegate's C API: C <- alpha * op(A) * op(B) + beta * C in FP32, on the current CUDA device (or,
 * in a build for the CPU, by the SIMT executor).
 *
 *   tilegate_handle handle;
 *   tilegate_create(&handle);
 *   size_t bytes;
 *   tilegate_sgemm_workspace_bytes(handle, TILEGATE_ROW_MAJOR, TILEGATE_NO_TRANS,
 *                                  TILEGATE_NO_TRANS, m, n, k, 1, a, k, b, n, 0, c, n, &bytes);
 *   tilegate_set_workspace(handle, workspace, bytes);  // device memory of the caller
 *   tilegate_sgemm(handle, TILEGATE_ROW_MAJOR, TILEGATE_NO_TRANS, TILEGATE_NO_TRANS, m, n, k, 1, a,
 *                  k, b, n, 0, c, n);
 *   tilegate_destroy(handle);
 *
 * Arguments and their order are those of cblas_sgemm and of cuBLAS's strided batches; enumerators
 * have CBLAS's values. Extents, leading dimensions and strides count elements. A call enqueues
 * kernels on the handle's stream: it neither synchronises nor allocates device memory, and can be
 * captured into a CUDA graph. A failed call leaves C as it was, except after
 * TILEGATE_DEVICE_ERROR; tilegate_message says what is wrong.
 *
 * A handle caches the plans of its calls. One thread at a time may use it; concurrent threads need
 * handles of their own. Scalars are in host memory. */
/* NOLINTBEGIN(modernize-use-using, modernize-deprecated-headers): it is C. */
#ifndef TILEGATE_H
#define TILEGATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t and CUstream are pointers to it */

typedef enum tilegate_status {
  TILEGATE_SUCCESS = 0,
  TILEGATE_INVALID_ARGUMENT = 1, /* the message names the argument */
  TILEGATE_UNSUPPORTED = 2,      /* valid, but not supported on this device */
  TILEGATE_DEVICE_ERROR = 3,     /* CUDA or the SIMT executor reported an error */
  TILEGATE_OUT_OF_MEMORY = 4,    /* of the host */
  TILEGATE_INTERNAL_ERROR = 5
} tilegate_status;

typedef enum tilegate_order { TILEGATE_ROW_MAJOR = 101, TILEGATE_COL_MAJOR = 102 } tilegate_order;

typedef enum tilegate_op { TILEGATE_NO_TRANS = 111, TILEGATE_TRANS = 112 } tilegate_op;

/* FP32: products and sums in FP32. FP32_SPLIT: operands may be split for tensor cores, where that
 * is expected to be faster; results are then as accurate as in FP32, but have different bits. */
typedef enum tilegate_math { TILEGATE_MATH_FP32 = 0, TILEGATE_MATH_FP32_SPLIT = 1 } tilegate_math;

typedef enum tilegate_operand {
  TILEGATE_OPERAND_A = 151,
  TILEGATE_OPERAND_B = 152
} tilegate_operand;

typedef struct tilegate_context* tilegate_handle;

/* An operand that does not change, such as the weights of a layer, split once. */
typedef struct tilegate_prepared_operand* tilegate_prepared;

/* Version of the library: 10000 * major + 100 * minor + patch. */
int tilegate_version(void);

/* The name of the calling thread's current device, such as "NVIDIA H200"; "simt" in a build for the
 * CPU, whose operands are in host memory; "none" without a device. Never null. */
const char* tilegate_device_name(void);

/* A short text for a status; never null. */
const char* tilegate_status_string(tilegate_status status);

/* A new handle: the default stream, FP32, no workspace. */
tilegate_status tilegate_create(tilegate_handle* handle);

/* Null does nothing. Enqueued work does not need the handle. */
void tilegate_destroy(tilegate_handle handle);

/* The error of the handle's last call; "" after a success. Valid until its next call. */
const char* tilegate_message(tilegate_handle handle);

tilegate_status tilegate_set_stream(tilegate_handle handle, struct CUstream_st* stream);
tilegate_status tilegate_set_math(tilegate_handle handle, tilegate_math math);

/* `workspace`: device memory, 16-byte aligned, that no other work uses at the same time. */
tilegate_status tilegate_set_workspace(tilegate_handle handle, void* workspace, size_t bytes);

/* Calls need a workspace of at most so many bytes, and are slower where more would serve. The
 * default, SIZE_MAX, is no limit; 0 serves every call, too. */
tilegate_status tilegate_set_workspace_limit(tilegate_handle handle, size_t bytes);

/* One product: op(A) is m x k, op(B) is k x n, C is m x n. With alpha == 0 or k == 0, A and B are
 * not read; with beta == 0, C is not read. m == 0 or n == 0 does nothing. */
tilegate_status tilegate_sgemm(tilegate_handle handle, tilegate_order order, tilegate_op op_a,
                               tilegate_op op_b, int64_t m, int64_t n, int64_t k, float alpha,
                               const float* a, int64_t lda, const float* b, int64_t ldb, float beta,
                               float* c, int64_t ldc);

/* `batch` products; strides in elements from one product's operands to the next; a stride of 0
 * shares A or B. */
tilegate_status tilegate_sgemm_strided_batched(tilegate_handle handle, tilegate_order order,
                                               tilegate_op op_a, tilegate_op op_b, int64_t m,
                                               int64_t n, int64_t k, float alpha, const float* a,
                                               int64_t lda, int64_t stride_a, const float* b,
                                               int64_t ldb, int64_t stride_b, float beta, float* c,
                                               int64_t ldc, int64_t stride_c, int64_t batch);

/* Workspace of the call with these arguments, in bytes. Only the alignment of the pointers matters;
 * null counts as 16-byte aligned. */
tilegate_status tilegate_sgemm_workspace_bytes(tilegate_handle handle, tilegate_order order,
                                               tilegate_op op_a, tilegate_op op_b, int64_t m,
                                               int64_t n, int64_t k, float alpha, const float* a,
                                               int64_t lda, const float* b, int64_t ldb, float beta,
                                               const float* c, int64_t ldc, size_t* bytes);

tilegate_status tilegate_sgemm_strided_batched_workspace_bytes(
    tilegate_handle handle, tilegate_order order, tilegate_op op_a, tilegate_op op_b, int64_t m,
    int64_t n, int64_t k, float alpha, const float* a, int64_t lda, int64_t stride_a,
    const float* b, int64_t ldb, int64_t stride_b, float beta, const float* c, int64_t ldc,
    int64_t stride_c, int64_t batch, size_t* bytes);

/* Prepared operands: A or B is split once for many products. tilegate_set_math has no effect on
 * them. tilegate_prepare_bytes returns the size of the memory, tilegate_prepare splits the operand,
 * and tilegate_sgemm_prepared multiplies by it, with any extent of the other operand.
 *
 * `extent` is m for A, n for B. Messages use the argument names of tilegate_sgemm, such as lda for
 * `ld`. After the operand has changed, destroy the prepared operand and call tilegate_prepare
 * again; it may use the same memory. With `is_checked` not 0, each call compares a checksum of the
 * operand with that of tilegate_prepare. Where they differ, the device stops with a message on
 * stderr, as after a failed assert() in a kernel. One thread at a time may use a prepared operand.
 */

/* Device memory that tilegate_prepare needs: up to about 4 bytes per element, or 0. */
tilegate_status tilegate_prepare_bytes(tilegate_handle handle, tilegate_order order,
                                       tilegate_operand operand, tilegate_op op, int64_t extent,
                                       int64_t k, const float* from, int64_t ld, int is_checked,
                                       size_t* bytes);

/* Enqueues the split of the operand at `from` into `memory`: device memory, 16-byte aligned, which
 * stays the caller's. Products on other streams have to wait for it. */
tilegate_status tilegate_prepare(tilegate_handle handle, tilegate_order order,
                                 tilegate_operand operand, tilegate_op op, int64_t extent,
                                 int64_t k, const float* from, int64_t ld, int is_checked,
                                 void* memory, size_t bytes, tilegate_prepared* prepared);

/* Null does nothing. Enqueued work needs the memory, not the handle. */
void tilegate_destroy_prepared(tilegate_prepared prepared);

/* tilegate_sgemm with a prepared A or B. Both operands are arguments, too: the device may decide
 * for FP32. `order`, k, and the prepared operand's extent, op and leading dimension must be the
 * ones given to tilegate_prepare. */
tilegate_status tilegate_sgemm_prepared(tilegate_handle handle, tilegate_prepared prepared,
                                        tilegate_order order, tilegate_op op_a, tilegate_op op_b,
                                        int64_t m, int64_t n, int64_t k, float alpha,
                                        const float* a, int64_t lda, const float* b, int64_t ldb,
                                        float beta, float* c, int64_t ldc);

tilegate_status tilegate_sgemm_prepared_workspace_bytes(
    tilegate_handle handle, tilegate_prepared prepared, tilegate_order order, tilegate_op op_a,
    tilegate_op op_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
    const float* b, int64_t ldb, float beta, const float* c, int64_t ldc, size_t* bytes);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-use-using, modernize-deprecated-headers) */
