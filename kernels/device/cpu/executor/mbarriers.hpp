// Mbarriers of the running cluster, and the bulk copies that complete on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tilegate/device/async.cuh>

#include "transfers.hpp"

namespace tilegate::simt {

struct BulkCopy {
  unsigned thread;  // the thread that started it
  Transfer transfer;
  std::vector<std::byte> bytes;  // the data of all pieces
};

struct Mbarrier {
  static constexpr std::int64_t kNever = -2;  // -1: the phase before the first

  unsigned number = 0;                // in the cluster
  std::size_t offset = 0;             // in the cluster's shared memory
  Site made;                          // source line of barrier_init
  unsigned maker = 0;                 // thread that called it
  bool is_fenced = false;             // after barrier_init
  unsigned arrivals = 0;              // per phase
  std::int64_t phase = 0;             // the current phase: the number of complete ones
  std::int64_t last_filled = kNever;  // last complete phase in which bytes arrived
  // State of the current phase.
  unsigned arrived = 0;
  std::uint64_t bytes_expected = 0, bytes_started = 0, bytes_arrived = 0;
  Site last_copy;
  std::vector<BulkCopy> copies;  // in flight
  std::vector<unsigned> waiting;
  std::vector<std::int64_t> seen;  // last phase that each thread has waited for
};

class Executor;

class Mbarriers {
 public:
  explicit Mbarriers(Executor& executor) : executor_(executor) {}

  void begin_block() { all_.clear(); }
  // Reports copies that have not completed, and phases that no thread has waited for.
  void end_block();

  void init(device::Barrier& barrier, unsigned arrivals, const Site& site);
  void init_fence();
  void arrive(device::Barrier& state, unsigned expected_bytes, const Site& site);
  // Arrives at the corresponding barrier of the block of `rank`.
  void arrive_at(unsigned rank, device::Barrier& state, const Site& site);
  void wait(device::Barrier& state, unsigned parity, const Site& site);
  // Parity of the current phase.
  unsigned parity(device::Barrier& state, const Site& site);
  // Copies to the block of `rank`; the bytes arrive at the corresponding barrier there.
  void copy_to(unsigned rank, Transfer transfer, device::Barrier& state, const Site& site);

  // The same for the 16 bytes of a thread's vector.
  void store_to(unsigned rank, std::size_t offset, const void* vector, device::Barrier& state,
                const Site& site);

  // Called when every thread waits: completes a copy that one of them waits for. False: none.
  bool complete_a_copy();
  // "for phase 1 of the barrier at byte 64 of shared memory, which lacks 2 of 2 arrivals"
  std::string describe_wait(unsigned thread) const;

 private:
  // The barrier that corresponds to `barrier` in the block of `rank`.
  Mbarrier& find(unsigned rank, const device::Barrier& barrier, const char* use, const Site& site);
  void start_copy(Mbarrier& barrier, Transfer transfer, const Site& site);
  void add_arrival(Mbarrier& barrier, const Site& site);
  void complete_phase(Mbarrier& barrier, unsigned thread);
  void complete(Mbarrier& barrier, const BulkCopy& copy);

  Executor& executor_;
  std::vector<Mbarrier> all_;
};

}  // namespace tilegate::simt
