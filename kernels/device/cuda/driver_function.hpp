// Functions of the driver, looked up at run time, so that nothing links to the driver library.
#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include <tilegate/status.hpp>

namespace tilegate::device {

// `version`: of CUDA, 12000 for 12.0, from which on the driver has this form of the function.
template <typename Function>
Status find_driver_function(const char* name, unsigned version, Function* function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
  if (error != cudaSuccess) {
    return Status::device_error(std::string(name) + ": " + cudaGetErrorString(error));
  }
  if (result != cudaDriverEntryPointSuccess) {
    return Status::device_error(std::string("this driver has no ") + name +
                                ": it must be of CUDA " + std::to_string(version / 1000) + "." +
                                std::to_string(version % 1000 / 10) + " or newer");
  }
  *function = reinterpret_cast<Function>(found);
  return {};
}

}  // namespace tilegate::device
