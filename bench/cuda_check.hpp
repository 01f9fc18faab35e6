#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include "errors.hpp"

namespace tilegate::bench {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Failure(std::string(what) + ": " + cudaGetErrorString(error));
}

}  // namespace tilegate::bench
