// Executes asynchronous copies, each in a launch of its own, for ncu to measure. Reads a line a
// copy:
//
//   shared_copy <bytes of a lane> <mask, hex> <byte offset>×32 <source>×32, of one warp; a source
//       is a byte offset in global memory, or -1: zeros
//   bulk <bytes> <source> <byte offset>
//   box <bytes of an element> <dimensions> <size>×3 <bytes to the next row> <to the next matrix>
//       <size of the box>×3 <swizzle> <source> <column, row, matrix>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>

#include <tilegate/device/async.cuh>

using namespace tilegate;

namespace {

constexpr unsigned kTo = 1024;  // where copies by the copy engine begin; the barrier lies before
constexpr unsigned kSharedBytes = 64 * 1024;
constexpr unsigned kBefore =
    1U << 16;  // of a tensor: what boxes over its first borders do not read
constexpr unsigned kGlobalBytes = 1U << 20;

struct Pattern {
  unsigned mask;
  unsigned offset[32];
  unsigned source[32];
  // A parameter of the kernel, so that nvcc copies where a predicate does not hold (`!P0`). Nsight
  // Compute 2025.3.1 then counts zeros as copies from the address that the lane names; where P0
  // itself says so, it counts for copies of 16 bytes the wavefronts of zeros alone.
  unsigned end = kGlobalBytes;
};

// Offsets come from the kernel's parameters: nothing but the pattern touches memory.
template <int kWidth>
__global__ void copy_async(const __grid_constant__ Pattern pattern, const char* memory) {
  extern __shared__ __align__(1024) char shared_memory[];
  unsigned offset = 0;
  unsigned source = 0;
#pragma unroll
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (threadIdx.x != lane) continue;
    offset = pattern.offset[lane];
    source = pattern.source[lane];
  }
  if (pattern.mask >> threadIdx.x & 1) {
    device::copy_async<kWidth>(device::shared_address(shared_memory + offset),
                               reinterpret_cast<const float*>(memory + source),
                               source < pattern.end);
  }
  device::copy_async_commit();
  device::copy_async_wait<0>();
}

template <typename Copy>
__device__ void copy_to_shared(unsigned bytes, Copy copy) {
  extern __shared__ __align__(1024) char shared_memory[];
  auto& barrier = *reinterpret_cast<device::Barrier*>(shared_memory);
  device::barrier_init(barrier, 1);
  device::barrier_init_fence();
  device::barrier_arrive_expect(barrier, bytes);
  copy(shared_memory + kTo, barrier);
  device::barrier_wait(barrier, 0);
}

__global__ void copy_bulk(const char* from, unsigned bytes, unsigned to) {
  copy_to_shared(bytes, [&](char* smem, device::Barrier& barrier) {
    device::copy_bulk(smem + to, from, bytes, barrier);
  });
}

__global__ void copy_box(const __grid_constant__ device::TensorMap map, unsigned dimensions, int x,
                         int y, int z, unsigned bytes) {
  copy_to_shared(bytes, [&](char* smem, device::Barrier& barrier) {
    if (dimensions == 2) {
      device::copy_tensor(smem, map, x, y, barrier);
    } else {
      device::copy_tensor(smem, map, x, y, z, barrier);
    }
  });
}

Status launch_async(std::istream& in, const char* memory) {
  int width = 0;
  Pattern pattern{};
  in >> width >> std::hex >> pattern.mask >> std::dec;
  for (unsigned& offset : pattern.offset) in >> offset;
  for (unsigned& source : pattern.source) {
    std::int64_t offset = 0;
    in >> offset;
    source = offset < 0 ? kGlobalBytes : static_cast<unsigned>(offset);
  }
  if (width == 4) copy_async<4><<<1, 32, kSharedBytes / 2>>>(pattern, memory);
  if (width == 8) copy_async<8><<<1, 32, kSharedBytes / 2>>>(pattern, memory);
  if (width == 16) copy_async<16><<<1, 32, kSharedBytes / 2>>>(pattern, memory);
  return {};
}

Status launch_bulk(std::istream& in, const char* memory) {
  unsigned bytes = 0, source = 0, offset = 0;
  in >> bytes >> source >> offset;
  copy_bulk<<<1, 1, kSharedBytes>>>(memory + source, bytes, offset);
  return {};
}

Status launch_box(std::istream& in, char* memory) {
  device::TensorLayout tensor;
  unsigned swizzle = 0, source = 0;
  int x = 0, y = 0, z = 0;
  in >> tensor.element_bytes >> tensor.dimensions;
  for (auto& size : tensor.size) in >> size;
  in >> tensor.stride_bytes[1] >> tensor.stride_bytes[2];
  for (auto& size : tensor.box) in >> size;
  in >> swizzle >> source >> x >> y >> z;
  tensor.swizzle = static_cast<device::Swizzle>(swizzle);
  tensor.data = memory + source;
  device::TensorMap map;
  if (Status s = device::make_tensor_map(tensor, &map); !s.ok()) return s;
  copy_box<<<1, 1, kSharedBytes>>>(
      map, tensor.dimensions, x, y, z,
      tensor.box[0] * tensor.box[1] * tensor.box[2] * tensor.element_bytes);
  return {};
}

}  // namespace

int main() {
  char* memory = nullptr;
  cudaMalloc(&memory, kGlobalBytes);
  cudaMemset(memory, 0, kGlobalBytes);
  cudaFuncSetAttribute(copy_bulk, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  cudaFuncSetAttribute(copy_box, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string kind;
    in >> kind;
    const Status status = kind == "shared_copy" ? launch_async(in, memory)
                          : kind == "bulk"      ? launch_bulk(in, memory + kBefore)
                                                : launch_box(in, memory + kBefore);
    if (!in || !status.ok()) {
      std::cerr << (in ? status.message() : "malformed") << ": " << line << '\n';
      return 2;
    }
  }
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::cerr << cudaGetErrorString(error) << '\n';
  return error == cudaSuccess ? 0 : 1;
}
