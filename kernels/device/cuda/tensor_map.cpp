// The driver encodes tensor maps.
#include "../tensor_map.hpp"

#include <string>

#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include "driver_function.hpp"

namespace tilegate::device {
namespace {

// The driver's functions for maps.
struct Driver {
  PFN_cuTensorMapEncodeTiled_v12000 encode = nullptr;
  PFN_cuTensorMapReplaceAddress_v12000 replace_address = nullptr;
  Status status;
};

const Driver& driver() {
  static const Driver found = [] {
    Driver driver;
    driver.status = find_driver_function("cuTensorMapEncodeTiled", 12000, &driver.encode);
    if (driver.status.ok()) {
      driver.status =
          find_driver_function("cuTensorMapReplaceAddress", 12000, &driver.replace_address);
    }
    return driver;
  }();
  return found;
}

Status to_status(CUresult result) {
  if (result == CUDA_SUCCESS) return {};
  return Status::device_error("the driver refuses a tensor map with error " +
                              std::to_string(result));
}

// Looks up the driver's functions and makes a context: a thread that has not called the runtime has
// none.
Status prepare_driver() {
  int current = 0;
  cudaError_t error = cudaGetDevice(&current);
  if (error == cudaSuccess) error = cudaSetDevice(current);  // makes its context, and current
  if (error != cudaSuccess) {
    return Status::device_error(std::string("tensor map: ") + cudaGetErrorString(error));
  }
  return driver().status;
}

}  // namespace

Status make_tensor_map(const TensorLayout& layout, TensorMap* map) {
  if (Status s = check(layout); !s.ok()) return s;
  if (Status s = prepare_driver(); !s.ok()) return s;
  constexpr CUtensorMapDataType kTypes[] = {CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                            CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                            CU_TENSOR_MAP_DATA_TYPE_UINT32};
  constexpr CUtensorMapSwizzle kSwizzles[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B,
                                              CU_TENSOR_MAP_SWIZZLE_64B,
                                              CU_TENSOR_MAP_SWIZZLE_128B};
  const CUtensorMapL2promotion promotion =
      layout.l2_promotion_bytes == 64    ? CU_TENSOR_MAP_L2_PROMOTION_L2_64B
      : layout.l2_promotion_bytes == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                                         : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  const cuuint32_t every[] = {1, 1, 1};
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));
  static_assert(alignof(CUtensorMap) <= alignof(TensorMap));
  return to_status(driver().encode(
      reinterpret_cast<CUtensorMap*>(map), kTypes[layout.element_bytes / 2], layout.dimensions,
      layout.data, layout.size.data(), &layout.stride_bytes[1], layout.box.data(), every,
      CU_TENSOR_MAP_INTERLEAVE_NONE, kSwizzles[static_cast<int>(layout.swizzle)], promotion,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

Status set_tensor_data(void* data, TensorMap* map) {
  if (Status s = check_address(data); !s.ok()) return s;
  if (Status s = prepare_driver(); !s.ok()) return s;
  return to_status(driver().replace_address(reinterpret_cast<CUtensorMap*>(map), data));
}

}  // namespace tilegate::device
