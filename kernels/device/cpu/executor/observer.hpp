// What the executor tells the counters (counted/recorder.cpp) about a launch. Plain builds have no
// counters: there every call is empty.
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
// `shared`: of a whole cluster.
void begin_launch(const device::LaunchConfig& config, std::byte* shared, std::size_t shared_bytes);
void end_launch();
void begin_block(unsigned block);
void end_block();
// The thread runs now, on this stack.
void resume_thread(unsigned number, const StackBounds& stack);
// It has left the kernel, or waits at a block barrier.
void stop_thread(unsigned number);
// Of the block of this rank in its cluster.
void release_block_barrier(unsigned rank);
void release_cluster_barrier();
// The current thread accesses shared memory of the block of `rank`.
void reach_into(unsigned rank, const Site& site);
// Shared memory of the block that a __shared__ variable of the launch takes.
void add_shared_variable(std::size_t offset, std::size_t bytes, const char* name);
// The current thread's atomic operation.
void access_atomically(const void* data, std::size_t bytes, const Site& site);
void thread_fence();
// The lanes of `mask` have met in __syncwarp.
void release_warp_barrier(unsigned warp, unsigned mask);
// The current thread has waited for the launch before.
void wait_for_previous_launch();
// The current thread does so; a wait is over.
void raise_flag(const unsigned* flag, const Site& site);
void wait_for_flag(const unsigned* flag, const Site& site);
// An asynchronous copy of the current thread is complete.
void complete_copy(const float* smem, std::size_t bytes);
void add_buffer(const void* data, std::size_t bytes);
void remove_buffer(const void* data);
// Mbarriers are numbered from 0 on in each block, their phases from 1 on.
void make_mbarrier(std::size_t offset, const Site& site);
// The current thread does something with it, or arrives there.
void use_mbarrier(std::size_t offset, const Site& site);
void arrive(unsigned barrier);
// `copied`: bytes arrived in this phase.
void complete_phase(unsigned barrier, std::int64_t phase, bool copied);
// `thread` goes on after the last complete phase.
void pass_mbarrier(unsigned thread, unsigned barrier);
void start_bulk_copy(std::size_t offset, unsigned bytes, unsigned barrier, std::int64_t phase,
                     const Site& site);
// The current thread starts a copy by the copy engine; multicast or not, it reads once.
void count_transfer(const Transfer& transfer, bool store, const Site& site);
// The current warp starts a multiplication; so much shared memory is read, counted with the first
// warp of a warpgroup, because all four share the tile of b.
void count_multiplication(unsigned bytes, const Site& site);
// For a copy of the current thread.
void access_global(const void* gmem, std::size_t bytes, bool store, const Site& site);
void start_bulk_store(std::size_t offset, unsigned bytes, int group, const Site& site);
// The current thread has waited for the groups up to `group`, from 1 on.
void finish_bulk_stores(int group);
void fence_async_proxy();
void release_named_barrier(const std::vector<unsigned>& threads);
// The current thread's warpgroup reads this for a multiplication in its group `group`, from 1 on.
void start_multiplication(std::size_t offset, unsigned bytes, unsigned warpgroup, int group,
                          const Site& site);
// The current thread has waited for the groups up to `group`.
void finish_multiplications(unsigned warpgroup, int group);
// Registers of the current thread belong to a multiplication from the first of these on, hold its
// results from the second on, and are the thread's again with the third, warpgroup_results.
void take_registers(const void* registers, std::size_t count, const Site& site);
void finish_registers(const void* registers);
void give_back_registers(const void* registers);
// The launches between these two are a call of a stage, on these operands.
void begin_call(const Problem& problem, const Operands& operands);
// What the call left undone.
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
