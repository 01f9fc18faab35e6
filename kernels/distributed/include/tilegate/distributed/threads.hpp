// The transport between threads of a process, each with the SIMT executor. It replaces NCCL in
// tests.
//
//   ThreadGroup group(4, std::chrono::seconds(10));
//   // in thread `rank`:
//   std::unique_ptr<Transport> transport = group.join(rank);
//
// It is stricter than a network. Received data arrive as late as possible: at the wait for them;
// before that their memory holds NaN. It is a race if a step of a rank's stream accesses memory
// that an exchange writes, or writes memory that an exchange reads, without fork() or wait()
// between them. Then the launch fails and names the step and the exchange.
#pragma once

#include <chrono>
#include <memory>

#include <tilegate/distributed/transport.hpp>

namespace tilegate::distributed {

class ThreadGroup {
 public:
  // If a rank waits for others longer than the timeout, all ranks fail.
  ThreadGroup(int size, std::chrono::milliseconds timeout);
  ~ThreadGroup();

  // Call once per rank, from any thread. If a transport is destroyed while other ranks wait for it,
  // they fail: the rank has ended. The group must outlive its transports.
  std::unique_ptr<Transport> join(int rank);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tilegate::distributed
