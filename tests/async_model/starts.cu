#include <cstring>
#include <type_traits>

#include "random.cuh"
#include "starts.hpp"

namespace tilegate::async_model {

// FP16 of -3 … 3, so that sums are exact.
inline __host__ __device__ std::uint32_t small_half(std::uint32_t random) {
  constexpr std::uint32_t kOfMagnitude[] = {0x0000, 0x3C00, 0x4000, 0x4200};
  return kOfMagnitude[random % 4] | (random >> 8 & 1) << 15;
}

inline __host__ __device__ std::uint32_t word_before(unsigned i, bool of_floats) {
  const std::uint32_t random = mix(7, i, kFill);
  return of_floats ? small_half(random) | small_half(random >> 16) << 16 : random;
}

Bytes shared_before(bool of_floats) {
  Bytes bytes(kWords * sizeof(std::uint32_t));
  for (unsigned i = 0; i < kWords; ++i) {
    const std::uint32_t word = word_before(i, of_floats);
    std::memcpy(&bytes[i * sizeof(word)], &word, sizeof(word));
  }
  return bytes;
}

#if TILEGATE_TEST_ASYNC

__device__ void fill_before(Storage& smem, bool of_floats) {
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) {
    smem.words[i] = word_before(i, of_floats);
  }
  device::fence_async_proxy();
}

__device__ std::byte* bytes_of(Storage& smem) { return reinterpret_cast<std::byte*>(smem.words); }

#endif

__global__ void copy_to_start(const __grid_constant__ device::TensorMap map, unsigned bytes,
                              std::uint32_t* after) {
#if TILEGATE_TEST_ASYNC
  auto& smem = device::shared_storage<Storage>();
  fill_before(smem, false);
  if (threadIdx.x == 0) {
    device::barrier_init(smem.full[0], 1);
    device::barrier_init_fence();
  }
  __syncthreads();  // all is stored, the barrier is made
  if (threadIdx.x == 0) {
    device::barrier_arrive_expect(smem.full[0], bytes);
    device::copy_tensor(bytes_of(smem) + kBoxStep * blockIdx.x, map, 0, 0, smem.full[0]);
  }
  device::barrier_wait(smem.full[0], 0);
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) {
    after[blockIdx.x * kWords + i] = smem.words[i];
  }
#endif
}

// Each block has its matrix of the tensor.
__global__ void store_from_start(const __grid_constant__ device::TensorMap map) {
#if TILEGATE_TEST_ASYNC
  auto& smem = device::shared_storage<Storage>();
  fill_before(smem, false);
  __syncthreads();  // all is stored
  if (threadIdx.x != 0) return;
  device::store_tensor(map, 0, 0, static_cast<int>(blockIdx.x),
                       bytes_of(smem) + kBoxStep * blockIdx.x);
  device::store_commit();
  device::store_wait<0>();
#endif
}

template <typename T, unsigned kStarts, unsigned kStep>
__global__ void multiply_at_start(device::Swizzle swizzle, T* results) {
#if TILEGATE_TEST_ASYNC
  constexpr bool kAlongK = std::is_same_v<T, std::int32_t>;
  auto& smem = device::shared_storage<Storage>();
  fill_before(smem, !kAlongK);
  __syncthreads();  // all is stored
  const unsigned width = width_of(swizzle);
  const auto tile_at = [&](unsigned start) {
    return device::matrix_descriptor(bytes_of(smem) + start, swizzle, 16 * width, 8 * width);
  };
  const auto a = tile_at(kStep * blockIdx.x);
  const auto b = tile_at(kStartOfB + kStep * number_of_b(blockIdx.x, kStarts));
  T acc[kTileRows / 2] = {};
  device::warpgroup_arrive();
  if constexpr (kAlongK) {
    device::warpgroup_mma_s8<kTileRows>(acc, a, b);
  } else {
    device::warpgroup_mma_f16<kTileRows, device::Major::kMN, device::Major::kMN>(acc, a, b);
  }
  device::warpgroup_commit();
  device::warpgroup_wait<0>();
  device::warpgroup_fence_operand(acc);
  for (unsigned i = 0; i < kTileRows / 2; ++i) {
    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i % 4 / 2 * 8;
    const unsigned col = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
    results[(blockIdx.x * kTileRows + row) * kTileRows + col] = acc[i];
  }
#endif
}

// A matrix of `matrices`, each as large as the box.
device::TensorLayout tensor_of(device::Swizzle swizzle, void* data, unsigned matrices) {
  const unsigned width = width_of(swizzle);
  return {.data = data,
          .element_bytes = 1,
          .dimensions = matrices == 1 ? 2U : 3U,
          .size = {width, kBoxRows, matrices},
          .stride_bytes = {0, width, std::uint64_t{width} * kBoxRows},
          .box = {width, kBoxRows, 1},
          .swizzle = swizzle};
}

// Cuts what the device has in `parts` equal parts.
template <typename T>
Status take(const device::Buffer& buffer, std::size_t parts, std::vector<std::vector<T>>* taken) {
  if (Status s = device::synchronize(); !s.ok()) return s;
  std::vector<T> all(buffer.size() / sizeof(T));
  if (Status s = device::copy_to_host(all.data(), buffer.data(), buffer.size()); !s.ok()) return s;
  const auto size = static_cast<std::ptrdiff_t>(all.size() / parts);
  for (auto part = all.begin(); part != all.end(); part += size) {
    taken->emplace_back(part, part + size);
  }
  return {};
}

Status copy_to_starts(device::Swizzle swizzle, const Bytes& box, std::vector<Bytes>* shared) {
  const device::Buffer from(box.size()), after(kBoxStarts * kWords * sizeof(std::uint32_t));
  if (Status s = device::copy_to_device(from.data(), box.data(), box.size()); !s.ok()) return s;
  device::TensorMap map;
  if (Status s = device::make_tensor_map(tensor_of(swizzle, from.data(), 1), &map); !s.ok()) {
    return s;
  }
  const Status launched = device::launch(config_of("copy_to_start", kBoxStarts), nullptr,
                                         copy_to_start, map, static_cast<unsigned>(box.size()),
                                         reinterpret_cast<std::uint32_t*>(after.data()));
  return launched.ok() ? take(after, kBoxStarts, shared) : launched;
}

Status store_from_starts(device::Swizzle swizzle, std::vector<Bytes>* boxes) {
  const device::Buffer to(std::size_t{kBoxStarts} * kBoxRows * width_of(swizzle));
  device::TensorMap map;
  if (Status s = device::make_tensor_map(tensor_of(swizzle, to.data(), kBoxStarts), &map);
      !s.ok()) {
    return s;
  }
  const Status launched =
      device::launch(config_of("store_from_start", kBoxStarts), nullptr, store_from_start, map);
  return launched.ok() ? take(to, kBoxStarts, boxes) : launched;
}

template <typename T, unsigned kStarts, unsigned kStep>
Status multiply(device::Swizzle swizzle, std::vector<std::vector<T>>* results) {
  const device::Buffer to(std::size_t{kStarts} * kTileRows * kTileRows * sizeof(T));
  void (*const kernel)(device::Swizzle, T*) = multiply_at_start<T, kStarts, kStep>;
  const Status launched = device::launch(config_of("multiply_at_start", kStarts), nullptr, kernel,
                                         swizzle, reinterpret_cast<T*>(to.data()));
  return launched.ok() ? take(to, kStarts, results) : launched;
}

Status multiply_at_starts(device::Swizzle swizzle,
                          std::vector<std::vector<std::int32_t>>* results) {
  return multiply<std::int32_t, kTileStarts, kTileStep>(swizzle, results);
}

Status multiply_lines_at_starts(device::Swizzle swizzle, std::vector<std::vector<float>>* results) {
  return multiply<float, kLineStarts, kLineStep>(swizzle, results);
}

}  // namespace tilegate::async_model
