// The software versions that results depend on: driver, CUDA, cuBLAS.
#include <fstream>
#include <iterator>
#include <regex>

#include <cublas_api.h>
#include <cuda_runtime_api.h>

#include "cuda_check.hpp"
#include "platform.hpp"

namespace tilegate::bench {
namespace {

// CUDA encodes 13.1 as 13010.
std::string version_of(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// "580.82.07" if the kernel module reports it, else the driver's CUDA version.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::smatch match;
  if (std::regex_search(text, match, std::regex(R"(\s(\d+\.\d+(\.\d+)?)\s)"))) return match[1];
  int number = 0;
  check(cudaDriverGetVersion(&number), "driver version");
  return version_of(number);
}

std::string runtime_version() {
  int number = 0;
  check(cudaRuntimeGetVersion(&number), "CUDA version");
  return version_of(number);
}

std::string cublas_version() {
  std::string version;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    if (cublasGetProperty(part, &number) != CUBLAS_STATUS_SUCCESS) {
      throw Failure("cuBLAS does not tell its version");
    }
    version += (version.empty() ? "" : ".") + std::to_string(number);
  }
  return version;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> device_context() {
  const Device& device = device::current();
  return {{"device_kind", "cuda"},
          {"device_name", device.name},
          {"driver", driver_version()},
          {"cuda", runtime_version()},
          {"cublas", cublas_version()},
          {"compute_capability", std::to_string(device.compute_capability)},
          {"multiprocessors", std::to_string(device.multiprocessors)}};
}

}  // namespace tilegate::bench
