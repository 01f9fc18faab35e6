// Ranks as threads of a process, over the SIMT executor: runs and tests what GPUs do with NCCL.
//
//   ThreadGroup group(4, std::chrono::seconds(10));
//   // in thread `rank`:
//   std::unique_ptr<Transport> transport = group.join(rank);
//
// It is stricter than a network. What a rank receives is NaN until that rank waits for it, and
// arrives as late as it can: at that wait. A step of a rank's stream that accesses what an exchange
// writes, or writes what an exchange reads, without fork() or wait() between them is a race: the
// launch fails and says which step and which exchange.
#pragma once

#include <chrono>
#include <memory>

#include <tilegate/distributed/transport.hpp>

namespace tilegate::distributed {

class ThreadGroup {
 public:
  // A rank that waits for others longer than the timeout fails, and all others with it.
  ThreadGroup(int size, std::chrono::milliseconds timeout);
  ~ThreadGroup();

  // Once per rank, from any thread. A transport that is destroyed before the ranks that wait for it
  // are served fails them: the rank has ended. The group outlives its transports; buffers outlive
  // the transport of their rank.
  std::unique_ptr<Transport> join(int rank);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tilegate::distributed
