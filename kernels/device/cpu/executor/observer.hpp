// What the executor tells the counters (counted/recorder.cpp) about a launch. Plain builds have no
// counters: there every call is empty.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <tilegate/device/launch_config.hpp>
#include <tilegate/stage.hpp>

#include "fault_sources.hpp"

namespace tilegate::simt::observer {

#if defined(TILEGATE_COUNTED)

void begin_launch(const device::LaunchConfig& config, std::byte* shared);
void end_launch();
void begin_block(unsigned block);
void end_block();
// The thread runs now, on this stack.
void resume_thread(unsigned number, const StackBounds& stack);
// It has left the kernel, or waits at a block barrier.
void stop_thread(unsigned number);
void release_block_barrier();
// The lanes of `mask` have met in __syncwarp.
void release_warp_barrier(unsigned warp, unsigned mask);
// The current thread has waited for the launch before.
void wait_for_previous_launch();
// An asynchronous copy of the current thread is complete.
void complete_copy(const float* smem, std::size_t bytes);
void add_buffer(const void* data, std::size_t bytes);
void remove_buffer(const void* data);
// The launches between these two are a call of a stage, on these operands.
void begin_call(const Problem& problem, const Operands& operands);
// What the call left undone.
std::optional<std::string> end_call();

#else

inline void begin_launch(const device::LaunchConfig& /*config*/, std::byte* /*shared*/) {}
inline void end_launch() {}
inline void begin_block(unsigned /*block*/) {}
inline void end_block() {}
inline void resume_thread(unsigned /*number*/, const StackBounds& /*stack*/) {}
inline void stop_thread(unsigned /*number*/) {}
inline void release_block_barrier() {}
inline void release_warp_barrier(unsigned /*warp*/, unsigned /*mask*/) {}
inline void wait_for_previous_launch() {}
inline void complete_copy(const float* /*smem*/, std::size_t /*bytes*/) {}
inline void add_buffer(const void* /*data*/, std::size_t /*bytes*/) {}
inline void remove_buffer(const void* /*data*/) {}
inline void begin_call(const Problem& /*problem*/, const Operands& /*operands*/) {}
inline std::optional<std::string> end_call() { return std::nullopt; }

#endif

}  // namespace tilegate::simt::observer
