// wgmma on CUDA; see async.cuh. Compute capability 9.0a.
#pragma once

#include <cstdint>

#include <tilegate/device/cuda/async.cuh>

namespace tilegate::device {

// The asm placeholders and operands of 32 or 64 accumulators per thread.
#define TILEGATE_PLACES_32                                                 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TILEGATE_PLACES_64                                                           \
  TILEGATE_PLACES_32                                                                 \
  ", "                                                                               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TILEGATE_REGISTERS_32(kind, acc)                                                        \
  kind(acc[0]), kind(acc[1]), kind(acc[2]), kind(acc[3]), kind(acc[4]), kind(acc[5]),           \
      kind(acc[6]), kind(acc[7]), kind(acc[8]), kind(acc[9]), kind(acc[10]), kind(acc[11]),     \
      kind(acc[12]), kind(acc[13]), kind(acc[14]), kind(acc[15]), kind(acc[16]), kind(acc[17]), \
      kind(acc[18]), kind(acc[19]), kind(acc[20]), kind(acc[21]), kind(acc[22]), kind(acc[23]), \
      kind(acc[24]), kind(acc[25]), kind(acc[26]), kind(acc[27]), kind(acc[28]), kind(acc[29]), \
      kind(acc[30]), kind(acc[31])
#define TILEGATE_REGISTERS_64(kind, acc)                                                        \
  TILEGATE_REGISTERS_32(kind, acc), kind(acc[32]), kind(acc[33]), kind(acc[34]), kind(acc[35]), \
      kind(acc[36]), kind(acc[37]), kind(acc[38]), kind(acc[39]), kind(acc[40]), kind(acc[41]), \
      kind(acc[42]), kind(acc[43]), kind(acc[44]), kind(acc[45]), kind(acc[46]), kind(acc[47]), \
      kind(acc[48]), kind(acc[49]), kind(acc[50]), kind(acc[51]), kind(acc[52]), kind(acc[53]), \
      kind(acc[54]), kind(acc[55]), kind(acc[56]), kind(acc[57]), kind(acc[58]), kind(acc[59]), \
      kind(acc[60]), kind(acc[61]), kind(acc[62]), kind(acc[63])

template <int kN>
__device__ void warpgroup_mma_s8(std::int32_t (&acc)[kN / 2], MatrixDescriptor a,
                                 MatrixDescriptor b) {
  static_assert(kN == 64 || kN == 128, "kernels use only 64 and 128 so far");
  if constexpr (kN == 64) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" TILEGATE_PLACES_32
                 "}, %32, %33, 1;"
                 : TILEGATE_REGISTERS_32("+r", acc)
                 : "l"(a), "l"(b));
  } else {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" TILEGATE_PLACES_64
                 "}, %64, %65, 1;"
                 : TILEGATE_REGISTERS_64("+r", acc)
                 : "l"(a), "l"(b));
  }
}

template <int kN>
__device__ void warpgroup_mma_s8(std::int32_t (&acc)[kN / 2], const std::uint32_t (&a)[4],
                                 MatrixDescriptor b) {
  static_assert(kN == 64 || kN == 128, "kernels use only 64 and 128 so far");
  if constexpr (kN == 64) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" TILEGATE_PLACES_32
                 "}, {%32, %33, %34, %35}, %36, 1;"
                 : TILEGATE_REGISTERS_32("+r", acc)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  } else {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" TILEGATE_PLACES_64
                 "}, {%64, %65, %66, %67}, %68, 1;"
                 : TILEGATE_REGISTERS_64("+r", acc)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  }
}

// acc ← a·bᵀ, plus acc if `adds`. `majors`: major-ness of a and b, for 16-bit types.
#define TILEGATE_FLOAT_MMA_64(types, majors)                                         \
  asm volatile(                                                                      \
      "{\n.reg .pred adds;\nsetp.ne.s32 adds, %34, 0;\n"                             \
      "wgmma.mma_async.sync.aligned.m64n64" types " {" TILEGATE_PLACES_32            \
      "}, %32, %33, adds, 1, 1" majors ";\n}"                                        \
      : TILEGATE_REGISTERS_32("+f", acc)                                             \
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)), "n"(static_cast<int>(kMajorA)), \
        "n"(static_cast<int>(kMajorB)))
#define TILEGATE_FLOAT_MMA_128(types, majors)                                        \
  asm volatile(                                                                      \
      "{\n.reg .pred adds;\nsetp.ne.s32 adds, %66, 0;\n"                             \
      "wgmma.mma_async.sync.aligned.m64n128" types " {" TILEGATE_PLACES_64           \
      "}, %64, %65, adds, 1, 1" majors ";\n}"                                        \
      : TILEGATE_REGISTERS_64("+f", acc)                                             \
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)), "n"(static_cast<int>(kMajorA)), \
        "n"(static_cast<int>(kMajorB)))

template <int kN, Major kMajorA = Major::kK, Major kMajorB = Major::kK>
__device__ void warpgroup_mma_f16(float (&acc)[kN / 2], MatrixDescriptor a, MatrixDescriptor b,
                                  bool adds = true) {
  static_assert(kN == 64 || kN == 128, "kernels use only 64 and 128 so far");
  if constexpr (kN == 64) {
    TILEGATE_FLOAT_MMA_64("k16.f32.f16.f16", ", %35, %36");
  } else {
    TILEGATE_FLOAT_MMA_128("k16.f32.f16.f16", ", %67, %68");
  }
}

template <int kN, Major kMajorA = Major::kK, Major kMajorB = Major::kK>
__device__ void warpgroup_mma_bf16(float (&acc)[kN / 2], MatrixDescriptor a, MatrixDescriptor b,
                                   bool adds = true) {
  static_assert(kN == 64 || kN == 128, "kernels use only 64 and 128 so far");
  if constexpr (kN == 64) {
    TILEGATE_FLOAT_MMA_64("k16.f32.bf16.bf16", ", %35, %36");
  } else {
    TILEGATE_FLOAT_MMA_128("k16.f32.bf16.bf16", ", %67, %68");
  }
}

// The same with a in registers, K-major.
#define TILEGATE_FLOAT_MMA_REGISTERS_64(types)                                           \
  asm volatile(                                                                          \
      "{\n.reg .pred adds;\nsetp.ne.s32 adds, %37, 0;\n"                                 \
      "wgmma.mma_async.sync.aligned.m64n64" types " {" TILEGATE_PLACES_32                \
      "}, {%32, %33, %34, %35}, %36, adds, 1, 1, %38;\n}"                                \
      : TILEGATE_REGISTERS_32("+f", acc)                                                 \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds)), \
        "n"(static_cast<int>(kMajorB)))
#define TILEGATE_FLOAT_MMA_REGISTERS_128(types)                                          \
  asm volatile(                                                                          \
      "{\n.reg .pred adds;\nsetp.ne.s32 adds, %69, 0;\n"                                 \
      "wgmma.mma_async.sync.aligned.m64n128" types " {" TILEGATE_PLACES_64               \
      "}, {%64, %65, %66, %67}, %68, adds, 1, 1, %70;\n}"                                \
      : TILEGATE_REGISTERS_64("+f", acc)                                                 \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds)), \
        "n"(static_cast<int>(kMajorB)))

template <int kN, Major kMajorB = Major::kK>
__device__ void warpgroup_mma_f16(float (&acc)[kN / 2], const std::uint32_t (&a)[4],
                                  MatrixDescriptor b, bool adds = true) {
  static_assert(kN == 64 || kN == 128, "kernels use only 64 and 128 so far");
  if constexpr (kN == 64) {
    TILEGATE_FLOAT_MMA_REGISTERS_64("k16.f32.f16.f16");
  } else {
    TILEGATE_FLOAT_MMA_REGISTERS_128("k16.f32.f16.f16");
  }
}

template <int kN, Major kMajorB = Major::kK>
__device__ void warpgroup_mma_bf16(float (&acc)[kN / 2], const std::uint32_t (&a)[4],
                                   MatrixDescriptor b, bool adds = true) {
  static_assert(kN == 64 || kN == 128, "kernels use only 64 and 128 so far");
  if constexpr (kN == 64) {
    TILEGATE_FLOAT_MMA_REGISTERS_64("k16.f32.bf16.bf16");
  } else {
    TILEGATE_FLOAT_MMA_REGISTERS_128("k16.f32.bf16.bf16");
  }
}

template <int kN>
__device__ void warpgroup_mma_tf32(float (&acc)[kN / 2], MatrixDescriptor a, MatrixDescriptor b,
                                   bool adds = true) {
  static_assert(kN == 64 || kN == 128, "kernels use only 64 and 128 so far");
  constexpr Major kMajorA = Major::kK, kMajorB = Major::kK;
  if constexpr (kN == 64) {
    TILEGATE_FLOAT_MMA_64("k8.f32.tf32.tf32", "");
  } else {
    TILEGATE_FLOAT_MMA_128("k8.f32.tf32.tf32", "");
  }
}

#undef TILEGATE_FLOAT_MMA_REGISTERS_128
#undef TILEGATE_FLOAT_MMA_REGISTERS_64
#undef TILEGATE_FLOAT_MMA_128
#undef TILEGATE_FLOAT_MMA_64
#undef TILEGATE_REGISTERS_64
#undef TILEGATE_REGISTERS_32
#undef TILEGATE_PLACES_64
#undef TILEGATE_PLACES_32

}  // namespace tilegate::device
