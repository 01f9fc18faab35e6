// The transport between GPUs of one or several hosts: one process per GPU, or one thread per GPU.
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

// Called by the thread of the communicator's GPU. Takes ownership of the communicator, also if it
// fails: the communicator is destroyed with the transport, or aborted after an error. If it is
// non-blocking (blocking = 0), no call waits for another rank longer than the timeout, and after an
// error up to twice as long again, for its own streams. The timeout has to be longer than all the
// work of a stream that synchronize() waits for.
//
// The caller's threads poll NCCL's asynchronous errors: once per launch, in Transport::poll, and
// every 50 µs in Transport::synchronize. The library starts no thread.
Status connect(ncclComm* comm, std::chrono::milliseconds timeout,
               std::unique_ptr<Transport>* transport);

}  // namespace tilegate::distributed
