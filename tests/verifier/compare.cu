// The comparison on the device: each block leaves one record, the host adds them up.
#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"
#include "verifier/oracle_math.cuh"

namespace tilegate::verifier {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kPerThread = 16;
constexpr std::int64_t kMaxBlocks = 4096;

struct Record {
  std::int64_t mismatches;
  std::int64_t first;  // row·n + column; -1: none
};

__host__ __device__ void add(Record& total, const Record& part) {
  total.mismatches += part.mismatches;
  if (part.first >= 0 && (total.first < 0 || part.first < total.first)) total.first = part.first;
}

struct SharedStorage {
  Record records[kThreads];
};

}  // namespace

__global__ void compare_kernel(Product product, const double* value, const double* scale,
                               Tolerance tolerance, Record* records) {
  auto& shared = device::shared_storage<SharedStorage>();
  const std::int64_t count = product.shape.m * product.shape.n;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  Record mine{0, -1};
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride) {
    const float got = product.c[i / product.shape.n * product.c_row + i % product.shape.n];
    if (!is_within(got, value[i], scale[i], tolerance)) add(mine, {1, i});
  }
  shared.records[threadIdx.x] = mine;
  __syncthreads();  // the first thread adds up what all have written
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kThreads; ++i) add(mine, shared.records[i]);
  records[blockIdx.x] = mine;
}

Status compare_on_device(const Product& product, const double* value, const double* scale,
                         const Tolerance& tolerance, Comparison* result) try {
  *result = {};
  const std::int64_t count = product.shape.m * product.shape.n;
  if (count == 0) return {};
  const std::int64_t blocks = std::min((count - 1) / (kThreads * kPerThread) + 1, kMaxBlocks);
  const device::LaunchConfig launch{.kernel = "compare",
                                    .blocks = blocks,
                                    .threads_x = kThreads,
                                    .shared_bytes = sizeof(SharedStorage)};
  const device::Buffer buffer(static_cast<std::size_t>(blocks) * sizeof(Record));
  auto* on_device = reinterpret_cast<Record*>(buffer.data());
  if (Status s = device::synchronize(); !s.ok()) return s;  // C may come from any stream
  if (Status s = device::launch(launch, nullptr, compare_kernel, product, value, scale, tolerance,
                                on_device);
      !s.ok()) {
    return s;
  }
  if (Status s = device::synchronize(); !s.ok()) return s;
  std::vector<Record> records(static_cast<std::size_t>(blocks));
  if (Status s = device::copy_to_host(records.data(), on_device, records.size() * sizeof(Record));
      !s.ok()) {
    return s;
  }
  Record total{0, -1};
  for (const Record& record : records) add(total, record);
  result->mismatches = total.mismatches;
  if (total.first >= 0) {
    result->first_row = total.first / product.shape.n;
    result->first_col = total.first % product.shape.n;
  }
  return {};
} catch (const std::bad_alloc&) {
  return Status::device_error("no device memory left for the comparison");
}

}  // namespace tilegate::verifier
