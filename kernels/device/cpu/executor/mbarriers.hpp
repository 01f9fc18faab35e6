// Barriers in shared memory and the bulk copies that complete on them, of the running block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tilegate/device/async.cuh>

#include "transfers.hpp"

namespace tilegate::simt {

struct BulkCopy {
  unsigned thread;  // that started it
  Transfer transfer;
  std::vector<std::byte> bytes;  // of all its pieces
};

struct Mbarrier {
  static constexpr std::int64_t kNever = -2;  // -1: the phase before the first

  unsigned number = 0;     // in the block
  std::size_t offset = 0;  // in the block's shared memory
  Site made;
  unsigned maker = 0;
  bool is_fenced = false;             // since it was made
  unsigned arrivals = 0;              // that complete a phase
  std::int64_t phase = 0;             // how many are complete
  std::int64_t last_filled = kNever;  // the last of them into which bytes came
  // Of the phase that is not.
  unsigned arrived = 0;
  std::uint64_t bytes_expected = 0, bytes_started = 0, bytes_arrived = 0;
  Site last_copy;
  std::vector<BulkCopy> copies;  // in flight
  std::vector<unsigned> waiting;
  std::vector<std::int64_t> seen;  // the last phase that each thread has waited for
};

class Executor;

class Mbarriers {
 public:
  explicit Mbarriers(Executor& executor) : executor_(executor) {}

  void begin_block() { all_.clear(); }
  // What is left of copies is then void.
  void end_block();

  void init(device::Barrier& barrier, unsigned arrivals, const Site& site);
  void init_fence();
  void arrive(device::Barrier& state, unsigned expected_bytes, const Site& site);
  // At the same place in the block of `rank`.
  void arrive_at(unsigned rank, device::Barrier& state, const Site& site);
  void wait(device::Barrier& state, unsigned parity, const Site& site);
  // Of the phase that is not complete.
  unsigned parity(device::Barrier& state, const Site& site);
  // To the block of `rank`, and to the barrier at the same place there.
  void copy_to(unsigned rank, Transfer transfer, device::Barrier& state, const Site& site);

  // The 16 bytes of a thread's vector, to that place.
  void store_to(unsigned rank, std::size_t offset, const void* vector, device::Barrier& state,
                const Site& site);

  // While every thread waits: lets a copy arrive that one of them waits for; false: there is none.
  bool complete_a_copy();
  // "for phase 1 of the barrier at byte 64 of shared memory, which lacks 2 of 2 arrivals"
  std::string describe_wait(unsigned thread) const;

 private:
  // The barrier at the place of `barrier` in the block of `rank`.
  Mbarrier& find(unsigned rank, const device::Barrier& barrier, const char* use, const Site& site);
  void start_copy(Mbarrier& barrier, Transfer transfer, const Site& site);
  void add_arrival(Mbarrier& barrier, const Site& site);
  void complete_phase(Mbarrier& barrier, unsigned thread);
  void complete(Mbarrier& barrier, const BulkCopy& copy);

  Executor& executor_;
  std::vector<Mbarrier> all_;
};

}  // namespace tilegate::simt
