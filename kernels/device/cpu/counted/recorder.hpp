// Checks every access of the running kernel for hazards and, while it counts, groups accesses by
// warp instruction. There is one recorder: only one CPU thread at a time may run instrumented
// kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/device/cpu/executor.hpp>
#include <tilegate/device/launch_config.hpp>

#include "../executor/transfers.hpp"
#include "counters.hpp"
#include "global_memory.hpp"
#include "hazards.hpp"
#include "order.hpp"
#include "shared_variables.hpp"

namespace tilegate::simt::counted {

class Recorder {
 public:
  static Recorder& instance() {
    static Recorder recorder;
    return recorder;
  }

  // Between these two calls accesses are counted; otherwise they are only checked.
  void begin_counting();
  Counters end_counting();

  // Called by instrumented code before each access.
  void access(const void* pointer, unsigned bytes, bool store, std::uint32_t site,
              std::uint64_t other_end = kNoOtherEnd);  // see WarpAccess
  // Whether it is shared or global memory.
  bool holds(const void* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return address - shared_ < shared_bytes_ || global_.holds(address, 1);
  }
  void start_copy(const float* smem, const float* gmem, unsigned bytes, std::uint32_t site);
  void count_fma(std::uint32_t count) { fma_ += count; }
  void count_transfer(const Transfer& transfer, bool store, const Site& site);
  void count_multiplication(unsigned bytes, const Site& site);

  // Called by the executor; see executor/observer.hpp.
  void begin_launch(const device::LaunchConfig& config, const std::byte* shared,
                    std::size_t shared_bytes);
  void end_launch();
  void begin_block(unsigned block);
  void end_block();
  void resume_thread(unsigned number, const void* stack, std::size_t stack_bytes);
  void stop_thread(unsigned number);
  void release_block_barrier(unsigned rank);
  void release_cluster_barrier();
  void reach_into(unsigned rank, const Site& site);
  void add_shared_variable(std::size_t offset, std::size_t bytes, const char* name) {
    variables_.add(offset, bytes, name);
  }
  void access_atomically(const void* data, unsigned bytes, const Site& site);
  void thread_fence() { order_.thread_fence(thread_); }
  void release_warp_barrier(unsigned warp, unsigned mask) { order_.warp_barrier(warp, mask); }
  void wait_for_previous_launch() { order_.wait_for_previous_launch(thread_); }
  void raise_flag(const unsigned* flag, const Site& site);
  void wait_for_flag(const unsigned* flag, const Site& site);
  void complete_copy(const float* smem, std::size_t bytes);
  void make_mbarrier(std::size_t offset, const Site& site);
  void use_mbarrier(std::size_t offset, const Site& site);
  void arrive(unsigned barrier) { order_.arrive(thread_, barrier); }
  void complete_phase(unsigned barrier, std::int64_t phase, bool copied) {
    order_.complete_phase(barrier, static_cast<Stamp>(phase), copied);
  }
  void pass_mbarrier(unsigned thread, unsigned barrier) { order_.pass(thread, barrier); }
  void start_bulk_copy(std::size_t offset, unsigned bytes, unsigned barrier, std::int64_t phase,
                       const Site& site);
  void access_global(const void* gmem, std::size_t bytes, bool store, const Site& site);
  void start_bulk_store(std::size_t offset, unsigned bytes, int group, const Site& site);
  void finish_bulk_stores(int group) {
    order_.finish(thread_, order_.agents().stores_of(thread_), static_cast<Stamp>(group));
  }
  void fence_async_proxy() { order_.fence_proxy(thread_); }
  void release_named_barrier(const std::vector<unsigned>& threads) { order_.meet(threads); }
  void start_multiplication(std::size_t offset, unsigned bytes, unsigned warpgroup, int group,
                            const Site& site);
  void finish_multiplications(unsigned warpgroup, int group) {
    const unsigned agent = order_.agents().multiplications_of(warpgroup);
    order_.finish(thread_, agent, static_cast<Stamp>(group));
  }
  void take_registers(const void* registers, std::size_t count, const Site& site);
  void finish_registers(const void* registers);
  void give_back_registers(const void* registers);
  void add_buffer(const void* data, std::size_t bytes) { global_.add_buffer(data, bytes); }
  void remove_buffer(const void* data) { global_.remove_buffer(data); }
  void begin_call(const Problem& problem, const Operands& operands) {
    global_.begin_call(problem, operands);
  }
  std::optional<std::string> end_call() { return global_.end_call(); }

 private:
  struct Access {
    std::uint64_t address;  // shared memory: offset in the cluster's shared memory
    std::uint32_t site;
    std::uint16_t bytes;
    Kind kind;
    std::uint64_t other_end;  // see WarpAccess
  };
  // Accesses of the lanes of a warp since the last block barrier.
  struct Warp {
    std::vector<Access> lanes[kWarpSize];
    unsigned stopped = 0;
  };

  // Accumulators that a multiplication owns.
  static constexpr std::size_t kRegisterBytes = 4;
  struct Registers {
    const void* begin;
    std::size_t count;
    Site site;
    bool is_waited_for = false;  // warpgroup_wait has returned, warpgroup_fence_operand is missing
  };

  // The last access of a thread to the shared memory of another block.
  struct Reach {
    unsigned thread, rank;
    Epoch epoch;
    Stamp stamp;
    std::uint32_t site;
  };

  Recorder() = default;
  Line& line_of(std::uint32_t site, Kind kind);
  void reach_into(unsigned rank, std::uint32_t site);
  void check_reaches();
  void check_unwritten_read();
  void start_async_read(const Hazards::Reader& reader, std::size_t offset, unsigned bytes);
  void check_registers(std::uintptr_t address, unsigned bytes, bool store,
                       std::uint32_t site) const;
  void check_flag(const unsigned* flag, const Site& site);
  void record(std::uint64_t address, unsigned bytes, Kind kind, std::uint32_t site,
              std::uint64_t other_end = kNoOtherEnd);
  void record_shared(std::uint64_t offset, unsigned bytes, bool store, std::uint32_t site);
  void check_variable(std::uint64_t offset, unsigned bytes, const char* access, std::uint32_t site);
  void check_foreign(std::uintptr_t address, unsigned bytes, bool store, std::uint32_t site) const;
  void group(const Warp& warp);
  void group_diverged(const Warp& warp);
  void count(const WarpAccess& access, Kind kind, std::uint32_t site);

  std::uintptr_t stack_ = 0, stack_bytes_ = 0;    // of the running thread
  std::uintptr_t shared_ = 0, shared_bytes_ = 0;  // of the running cluster
  unsigned thread_ = 0;
  unsigned threads_ = 0;  // of a cluster
  unsigned cluster_ = 1;
  std::size_t shared_stride_ = 0;  // between the blocks of a cluster
  bool is_running_ = false;
  bool is_counting_ = false;
  std::vector<Access>* trace_ = nullptr;  // of the running thread, while it counts
  std::vector<Warp> warps_;
  std::vector<std::vector<Registers>> taken_;  // per thread; empty until the launch needs it
  const std::vector<Registers>* taken_of_thread_ = nullptr;
  Order order_;
  SharedVariables variables_;
  Hazards hazards_{order_, variables_};
  GlobalMemory global_{order_};
  std::vector<Reach> reaches_;  // in this cluster
  std::uint64_t fma_ = 0, barriers_ = 0;
  std::map<std::pair<std::uint32_t, Kind>, Line> lines_;  // by location
};

}  // namespace tilegate::simt::counted
