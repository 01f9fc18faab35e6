// The executor reports the events of a launch to the counters (counted/recorder.cpp). In builds
// without counters every function is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tilegate/device/cpu/executor.hpp>
#include <tilegate/device/launch_config.hpp>
#include <tilegate/stage.hpp>

#include "fault_sources.hpp"
#include "transfers.hpp"

namespace tilegate::simt::observer {

#if defined(TILEGATE_COUNTED)

constexpr bool kIsObserved = true;
// `shared`: shared memory of a whole cluster.
void begin_launch(const device::LaunchConfig& config, std::byte* shared, std::size_t shared_bytes);
void end_launch();
void begin_block(unsigned block);
void end_block();
// The thread runs from now on, on this stack.
void resume_thread(unsigned number, const StackBounds& stack);
// The thread has left the kernel, or waits at a block barrier.
void stop_thread(unsigned number);
// `rank`: of the block in its cluster.
void release_block_barrier(unsigned rank);
void release_cluster_barrier();
// The current thread accesses shared memory of the block of `rank`.
void reach_into(unsigned rank, const Site& site);
// A __shared__ variable of the launch occupies these bytes of the block's shared memory.
void add_shared_variable(std::size_t offset, std::size_t bytes, const char* name);
// The current thread performs an atomic operation.
void access_atomically(const void* data, std::size_t bytes, const Site& site);
void thread_fence();
// The lanes of `mask` have met in __syncwarp.
void release_warp_barrier(unsigned warp, unsigned mask);
// The current thread has waited for the previous launch.
void wait_for_previous_launch();
// The current thread raises a flag; its wait for a flag is over.
void raise_flag(const unsigned* flag, const Site& site);
void wait_for_flag(const unsigned* flag, const Site& site);
// An asynchronous copy of the current thread is complete.
void complete_copy(const float* smem, std::size_t bytes);
void add_buffer(const void* data, std::size_t bytes);
void remove_buffer(const void* data);
// Mbarriers are numbered from 0 in each cluster, their phases from 1.
void make_mbarrier(std::size_t offset, const Site& site);
// The current thread accesses the mbarrier; it arrives at it.
void use_mbarrier(std::size_t offset, const Site& site);
void arrive(unsigned barrier);
// `copied`: bytes arrived in this phase.
void complete_phase(unsigned barrier, std::int64_t phase, bool copied);
// A wait of `thread` for the latest complete phase is over.
void pass_mbarrier(unsigned thread, unsigned barrier);
void start_bulk_copy(std::size_t offset, unsigned bytes, unsigned barrier, std::int64_t phase,
                     const Site& site);
// The current thread starts a transfer by the copy engine. Also a multicast reads once.
void count_transfer(const Transfer& transfer, bool store, const Site& site);
// The current warp starts a multiplication that reads so much shared memory. All bytes are counted
// with the first warp of a warpgroup, because the four warps share the tile of b.
void count_multiplication(unsigned bytes, const Site& site);
// A transfer of the current thread accesses global memory.
void access_global(const void* gmem, std::size_t bytes, bool store, const Site& site);
void start_bulk_store(std::size_t offset, unsigned bytes, int group, const Site& site);
// The current thread has waited for its groups up to `group`, counted from 1.
void finish_bulk_stores(int group);
void fence_async_proxy();
void release_named_barrier(const std::vector<unsigned>& threads);
// The current thread's warpgroup reads these bytes for a multiplication of its group `group`,
// counted from 1.
void start_multiplication(std::size_t offset, unsigned bytes, unsigned warpgroup, int group,
                          const Site& site);
// The current thread has waited for the groups up to `group`.
void finish_multiplications(unsigned warpgroup, int group);
// A multiplication owns registers of the current thread from take_registers on, and its results are
// in them from finish_registers on. After give_back_registers (warpgroup_fence_operand) the thread
// may use them again.
void take_registers(const void* registers, std::size_t count, const Site& site);
void finish_registers(const void* registers);
void give_back_registers(const void* registers);
// The launches between these two are a call of a stage, on these operands.
void begin_call(const Problem& problem, const Operands& operands);
// Returns an error if the call has not stored all of C.
std::optional<std::string> end_call();

#else

constexpr bool kIsObserved = false;
inline void begin_launch(const device::LaunchConfig& /*config*/, std::byte* /*shared*/,
                         std::size_t /*shared_bytes*/) {}
inline void end_launch() {}
inline void begin_block(unsigned /*block*/) {}
inline void end_block() {}
inline void resume_thread(unsigned /*number*/, const StackBounds& /*stack*/) {}
inline void stop_thread(unsigned /*number*/) {}
inline void release_block_barrier(unsigned /*rank*/) {}
inline void release_cluster_barrier() {}
inline void reach_into(unsigned /*rank*/, const Site& /*site*/) {}
inline void add_shared_variable(std::size_t /*offset*/, std::size_t /*bytes*/,
                                const char* /*name*/) {}
inline void access_atomically(const void* /*data*/, std::size_t /*bytes*/, const Site& /*site*/) {}
inline void thread_fence() {}
inline void release_warp_barrier(unsigned /*warp*/, unsigned /*mask*/) {}
inline void wait_for_previous_launch() {}
inline void raise_flag(const unsigned* /*flag*/, const Site& /*site*/) {}
inline void wait_for_flag(const unsigned* /*flag*/, const Site& /*site*/) {}
inline void complete_copy(const float* /*smem*/, std::size_t /*bytes*/) {}
inline void add_buffer(const void* /*data*/, std::size_t /*bytes*/) {}
inline void remove_buffer(const void* /*data*/) {}
inline void make_mbarrier(std::size_t /*offset*/, const Site& /*site*/) {}
inline void use_mbarrier(std::size_t /*offset*/, const Site& /*site*/) {}
inline void arrive(unsigned /*barrier*/) {}
inline void complete_phase(unsigned /*barrier*/, std::int64_t /*phase*/, bool /*copied*/) {}
inline void pass_mbarrier(unsigned /*thread*/, unsigned /*barrier*/) {}
inline void start_bulk_copy(std::size_t /*offset*/, unsigned /*bytes*/, unsigned /*barrier*/,
                            std::int64_t /*phase*/, const Site& /*site*/) {}
inline void count_transfer(const Transfer& /*transfer*/, bool /*store*/, const Site& /*site*/) {}
inline void count_multiplication(unsigned /*bytes*/, const Site& /*site*/) {}
inline void access_global(const void* /*gmem*/, std::size_t /*bytes*/, bool /*store*/,
                          const Site& /*site*/) {}
inline void start_bulk_store(std::size_t /*offset*/, unsigned /*bytes*/, int /*group*/,
                             const Site& /*site*/) {}
inline void finish_bulk_stores(int /*group*/) {}
inline void fence_async_proxy() {}
inline void release_named_barrier(const std::vector<unsigned>& /*threads*/) {}
inline void start_multiplication(std::size_t /*offset*/, unsigned /*bytes*/, unsigned /*warpgroup*/,
                                 int /*group*/, const Site& /*site*/) {}
inline void finish_multiplications(unsigned /*warpgroup*/, int /*group*/) {}
inline void take_registers(const void* /*registers*/, std::size_t /*count*/, const Site& /*site*/) {
}
inline void finish_registers(const void* /*registers*/) {}
inline void give_back_registers(const void* /*registers*/) {}
inline void begin_call(const Problem& /*problem*/, const Operands& /*operands*/) {}
inline std::optional<std::string> end_call() { return std::nullopt; }

#endif

}  // namespace tilegate::simt::observer
