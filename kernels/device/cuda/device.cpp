// The device on the CUDA runtime.
#include <array>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>

#include <tilegate/device.hpp>

namespace tilegate::device {
namespace {

constexpr std::size_t kMaxPitch = 0x7fffffff;  // bytes, of cudaMemcpy2D

Status to_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  return Status::device_error(std::string(what) + ": " + cudaGetErrorString(error));
}

constexpr int kMaxDevices = 64;

Device read(int ordinal) {
  cudaDeviceProp cuda{};
  if (cudaGetDeviceProperties(&cuda, ordinal) != cudaSuccess) return {.is_cuda = true};
  return {.ordinal = ordinal,
          .is_cuda = true,
          .name = cuda.name,
          .compute_capability = 10 * cuda.major + cuda.minor,
          .multiprocessors = cuda.multiProcessorCount,
          .total_memory = cuda.totalGlobalMem};
}

Status copy(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
            std::size_t width, std::size_t rows, cudaMemcpyKind kind) {
  if (width == 0 || rows == 0) return {};
  if (dst_pitch <= kMaxPitch && src_pitch <= kMaxPitch) {
    return to_status(cudaMemcpy2D(dst, dst_pitch, src, src_pitch, width, rows, kind), "copy");
  }
  for (std::size_t row = 0; row < rows; ++row) {
    Status status =
        to_status(cudaMemcpy(static_cast<std::byte*>(dst) + row * dst_pitch,
                             static_cast<const std::byte*>(src) + row * src_pitch, width, kind),
                  "copy");
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

Status available() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return {};
  const std::string why = error == cudaSuccess ? "none found" : cudaGetErrorString(error);
  return Status::device_error("No CUDA GPU answers (" + why +
                              "): run this on a machine with a GPU, or use the cpu preset.");
}

const Device& current() {
  static const Device kNone{.is_cuda = true};
  static std::array<std::once_flag, kMaxDevices> once;
  static std::array<Device, kMaxDevices> devices;
  int ordinal = 0;
  if (cudaGetDevice(&ordinal) != cudaSuccess || ordinal >= kMaxDevices) return kNone;
  const auto i = static_cast<std::size_t>(ordinal);
  std::call_once(once[i], [&] { devices[i] = read(ordinal); });
  return devices[i];
}

Status synchronize() { return to_status(cudaDeviceSynchronize(), "kernel"); }

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // reported here: the next launch must not see it
    throw std::bad_alloc();
  }
  data_ = static_cast<std::byte*>(memory);
}

Buffer::~Buffer() { cudaFree(data_); }

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Status copy_to_device(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                      std::size_t width, std::size_t rows) {
  return copy(dst, dst_pitch, src, src_pitch, width, rows, cudaMemcpyHostToDevice);
}

Status copy_to_host(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                    std::size_t width, std::size_t rows) {
  return copy(dst, dst_pitch, src, src_pitch, width, rows, cudaMemcpyDeviceToHost);
}

void set_accessible(const void* /*memory*/, std::size_t /*bytes*/, bool /*accessible*/) {}

}  // namespace tilegate::device
