// The ranks of a test: threads over the executor, or GPUs with NCCL.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include <tilegate/distributed/transport.hpp>

#if TILEGATE_ON_SIMT
#include <tilegate/distributed/threads.hpp>
#else
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <tilegate/distributed/nccl.hpp>
#endif

namespace tilegate::distributed {

#if TILEGATE_ON_SIMT

using Group = ThreadGroup;
inline int most_ranks() { return 8; }
inline void use_device_of(int /*rank*/) {}

#else

class Group {
 public:
  Group(int size, std::chrono::milliseconds timeout)
      : timeout_(timeout), comms_(static_cast<std::size_t>(size)) {
    EXPECT_EQ(ncclCommInitAll(comms_.data(), size, nullptr), ncclSuccess);
  }
  std::unique_ptr<Transport> join(int rank) {
    std::unique_ptr<Transport> transport;
    const Status status = connect(comms_[static_cast<std::size_t>(rank)], timeout_, &transport);
    EXPECT_TRUE(status.ok()) << status.message();
    return transport;
  }

 private:
  std::chrono::milliseconds timeout_;
  std::vector<ncclComm_t> comms_;
};

inline int most_ranks() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? std::min(devices, 8) : 0;
}
inline void use_device_of(int rank) { EXPECT_EQ(cudaSetDevice(rank), cudaSuccess); }

#endif

}  // namespace tilegate::distributed
