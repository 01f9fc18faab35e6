// Ranks as GPUs of one or several hosts, one process per GPU, or one process with a thread per GPU.
//
//   ncclComm_t comm;               // ncclCommInitRankConfig with blocking = 0, or ncclCommInitAll
//   std::unique_ptr<Transport> transport;
//   Status status = connect(comm, std::chrono::seconds(30), &transport);
#pragma once

#include <chrono>
#include <memory>

#include <tilegate/distributed/transport.hpp>

struct ncclComm;  // ncclComm_t points to it

namespace tilegate::distributed {

// Takes the communicator over, in the thread of its GPU, also where it fails: it is destroyed with
// the transport, or aborted after an error. With a communicator that does not block (blocking = 0)
// no call waits longer than the timeout for another rank.
//
// NCCL's asynchronous errors are polled by the caller's threads: once per launch, by
// Transport::poll, and every 50 µs in Transport::synchronize. No thread is started for that.
Status connect(ncclComm* comm, std::chrono::milliseconds timeout,
               std::unique_ptr<Transport>* transport);

}  // namespace tilegate::distributed
