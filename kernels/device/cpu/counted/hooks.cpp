// The functions that instrumented kernels and the executor call.
#include <algorithm>
#include <cstring>

#include <tilegate/device/cpu/device.hpp>
#include <tilegate/device/cpu/executor.hpp>

#include "../executor/observer.hpp"
#include "recorder.hpp"

using tilegate::simt::counted::Recorder;

namespace {

// A global, because a function-local static would check its initialisation at every access.
Recorder& recorder = Recorder::instance();

constexpr unsigned kWordBytes = 4;

template <typename V>
V load(const float* p, unsigned site) {
  recorder.access(p, sizeof(V), false, site);
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}

template <typename V>
void store(float* p, V v, unsigned site) {
  recorder.access(p, sizeof(V), true, site);
  std::memcpy(p, &v, sizeof(V));
}

}  // namespace

extern "C" {

void tilegate_counted_load1(const void* p, unsigned site) { recorder.access(p, 1, false, site); }
void tilegate_counted_load2(const void* p, unsigned site) { recorder.access(p, 2, false, site); }
void tilegate_counted_load4(const void* p, unsigned site) { recorder.access(p, 4, false, site); }
void tilegate_counted_load8(const void* p, unsigned site) { recorder.access(p, 8, false, site); }
void tilegate_counted_load16(const void* p, unsigned site) { recorder.access(p, 16, false, site); }
void tilegate_counted_store1(const void* p, unsigned site) { recorder.access(p, 1, true, site); }
void tilegate_counted_store2(const void* p, unsigned site) { recorder.access(p, 2, true, site); }
void tilegate_counted_store4(const void* p, unsigned site) { recorder.access(p, 4, true, site); }
void tilegate_counted_store8(const void* p, unsigned site) { recorder.access(p, 8, true, site); }
void tilegate_counted_store16(const void* p, unsigned site) { recorder.access(p, 16, true, site); }
void tilegate_counted_fma(unsigned count) { recorder.count_fma(count); }

float2 tilegate_counted_load_float2(const float* p, unsigned site) { return load<float2>(p, site); }
float4 tilegate_counted_load_float4(const float* p, unsigned site) { return load<float4>(p, site); }
void tilegate_counted_store_float2(float* p, float2 v, unsigned site) { store(p, v, site); }
void tilegate_counted_store_float4(float* p, float4 v, unsigned site) { store(p, v, site); }

// A structure that is copied or set as a whole counts word by word. Kernel parameters are copied in
// this way from host memory, whose loads do not count.
void tilegate_counted_copy(const void* to, const void* from, std::uint64_t bytes, unsigned site) {
  for (std::uint64_t at = 0; at < bytes; at += kWordBytes) {
    const auto word = static_cast<unsigned>(std::min<std::uint64_t>(kWordBytes, bytes - at));
    const std::byte* const source = static_cast<const std::byte*>(from) + at;
    if (recorder.holds(source)) recorder.access(source, word, false, site);
    recorder.access(static_cast<const std::byte*>(to) + at, word, true, site);
  }
}
void tilegate_counted_set(const void* to, std::uint64_t bytes, unsigned site) {
  for (std::uint64_t at = 0; at < bytes; at += kWordBytes) {
    const auto word = static_cast<unsigned>(std::min<std::uint64_t>(kWordBytes, bytes - at));
    recorder.access(static_cast<const std::byte*>(to) + at, word, true, site);
  }
}

void tilegate_counted_copy_async(float* smem, const float* gmem, unsigned bytes, unsigned site) {
  recorder.start_copy(smem, gmem, bytes, site);
  tilegate::simt::executor::copy_async(smem, gmem, bytes);
}

}  // extern "C"

namespace tilegate::simt::observer {

void begin_launch(const device::LaunchConfig& config, std::byte* shared, std::size_t shared_bytes) {
  recorder.begin_launch(config, shared, shared_bytes);
}
void end_launch() { recorder.end_launch(); }
void begin_block(unsigned block) { recorder.begin_block(block); }
void end_block() { recorder.end_block(); }
void resume_thread(unsigned number, const StackBounds& stack) {
  recorder.resume_thread(number, stack.bottom, stack.size);
}
void stop_thread(unsigned number) { recorder.stop_thread(number); }
void release_block_barrier(unsigned rank) { recorder.release_block_barrier(rank); }
void release_cluster_barrier() { recorder.release_cluster_barrier(); }
void reach_into(unsigned rank, const Site& site) { recorder.reach_into(rank, site); }
void add_shared_variable(std::size_t offset, std::size_t bytes, const char* name) {
  recorder.add_shared_variable(offset, bytes, name);
}
void access_atomically(const void* data, std::size_t bytes, const Site& site) {
  recorder.access_atomically(data, static_cast<unsigned>(bytes), site);
}
void thread_fence() { recorder.thread_fence(); }
void release_warp_barrier(unsigned warp, unsigned mask) {
  recorder.release_warp_barrier(warp, mask);
}
void wait_for_previous_launch() { recorder.wait_for_previous_launch(); }
void raise_flag(const unsigned* flag, const Site& site) { recorder.raise_flag(flag, site); }
void wait_for_flag(const unsigned* flag, const Site& site) { recorder.wait_for_flag(flag, site); }
void complete_copy(const float* smem, std::size_t bytes) { recorder.complete_copy(smem, bytes); }
void make_mbarrier(std::size_t offset, const Site& site) { recorder.make_mbarrier(offset, site); }
void use_mbarrier(std::size_t offset, const Site& site) { recorder.use_mbarrier(offset, site); }
void arrive(unsigned barrier) { recorder.arrive(barrier); }
void complete_phase(unsigned barrier, std::int64_t phase, bool copied) {
  recorder.complete_phase(barrier, phase, copied);
}
void pass_mbarrier(unsigned thread, unsigned barrier) { recorder.pass_mbarrier(thread, barrier); }
void start_bulk_copy(std::size_t offset, unsigned bytes, unsigned barrier, std::int64_t phase,
                     const Site& site) {
  recorder.start_bulk_copy(offset, bytes, barrier, phase, site);
}
void count_transfer(const Transfer& transfer, bool store, const Site& site) {
  recorder.count_transfer(transfer, store, site);
}
void count_multiplication(unsigned bytes, const Site& site) {
  recorder.count_multiplication(bytes, site);
}
void access_global(const void* gmem, std::size_t bytes, bool store, const Site& site) {
  recorder.access_global(gmem, bytes, store, site);
}
void start_bulk_store(std::size_t offset, unsigned bytes, int group, const Site& site) {
  recorder.start_bulk_store(offset, bytes, group, site);
}
void finish_bulk_stores(int group) { recorder.finish_bulk_stores(group); }
void fence_async_proxy() { recorder.fence_async_proxy(); }
void release_named_barrier(const std::vector<unsigned>& threads) {
  recorder.release_named_barrier(threads);
}
void start_multiplication(std::size_t offset, unsigned bytes, unsigned warpgroup, int group,
                          const Site& site) {
  recorder.start_multiplication(offset, bytes, warpgroup, group, site);
}
void finish_multiplications(unsigned warpgroup, int group) {
  recorder.finish_multiplications(warpgroup, group);
}
void take_registers(const void* registers, std::size_t count, const Site& site) {
  recorder.take_registers(registers, count, site);
}
void finish_registers(const void* registers) { recorder.finish_registers(registers); }
void give_back_registers(const void* registers) { recorder.give_back_registers(registers); }
void begin_call(const Problem& problem, const Operands& operands) {
  recorder.begin_call(problem, operands);
}
std::optional<std::string> end_call() { return recorder.end_call(); }
void add_buffer(const void* data, std::size_t bytes) {
  Recorder::instance().add_buffer(data, bytes);
}
void remove_buffer(const void* data) { Recorder::instance().remove_buffer(data); }

}  // namespace tilegate::simt::observer
