#include "recorder.hpp"

#include <cstdio>
#include <string>
#include <utility>

#include <pthread.h>

#include <tilegate/device/cpu/device.hpp>
#include <tilegate/device/cpu/executor.hpp>

#include "sites.hpp"

// Bounds of this program or library in memory; the linker defines both.
extern "C" {
__attribute__((visibility("hidden"))) extern const char __ehdr_start[];
__attribute__((visibility("hidden"))) extern const char _end[];
}

namespace tilegate::simt::counted {
namespace {

struct Range {
  std::uintptr_t begin, bytes;
  bool holds(std::uintptr_t address) const { return address - begin < bytes; }
};

Range host_stack() {
  pthread_attr_t attributes;
  void* bottom = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &bottom, &bytes);
    pthread_attr_destroy(&attributes);
  }
  return {reinterpret_cast<std::uintptr_t>(bottom), bytes};
}

const Range kImage{reinterpret_cast<std::uintptr_t>(__ehdr_start),
                   static_cast<std::uintptr_t>(_end - __ehdr_start)};

// threadIdx and its like: the compiler reads them by address.
bool is_index(std::uintptr_t address) {
  for (const Index3* index : {&threadIdx, &blockIdx, &blockDim, &gridDim}) {
    if (address - reinterpret_cast<std::uintptr_t>(index) < sizeof(Index3)) return true;
  }
  return false;
}

std::string verb(bool store) { return store ? "store" : "load"; }

}  // namespace

void Recorder::begin_launch(const device::LaunchConfig& config, const std::byte* shared,
                            std::size_t shared_bytes) {
  cluster_ = config.cluster;
  threads_ = config.block_threads() * cluster_;
  shared_ = reinterpret_cast<std::uintptr_t>(shared);
  shared_bytes_ = shared_bytes;
  shared_stride_ = cluster_ == 1 ? 0 : (shared_bytes - config.shared_bytes) / (cluster_ - 1);
  if (is_counting_) warps_.assign((threads_ + kWarpSize - 1) / kWarpSize, Warp{});
  order_.begin_launch(config);
  hazards_.begin_launch(shared_bytes);
  variables_.begin_launch(config.shared_bytes, cluster_ == 1 ? shared_bytes : 0);
  global_.begin_launch(config.adds_to_c);
  is_running_ = true;
}

void Recorder::end_launch() {
  is_running_ = false;
  warps_.clear();
  trace_ = nullptr;
  taken_.clear();
  taken_of_thread_ = nullptr;
  stack_bytes_ = shared_bytes_ = 0;
}

void Recorder::begin_block(unsigned block) {
  order_.begin_block(block);
  hazards_.begin_block();
  for (std::vector<Registers>& taken : taken_) taken.clear();
}

void Recorder::end_block() {
  check_unwritten_read();
  if (!reaches_.empty()) check_reaches();
}

void Recorder::check_unwritten_read() {
  if (const auto& found = hazards_.unwritten_read()) executor::report(found->thread, found->what);
  hazards_.block_barrier();
}

void Recorder::resume_thread(unsigned number, const void* stack, std::size_t stack_bytes) {
  stack_ = reinterpret_cast<std::uintptr_t>(stack);
  stack_bytes_ = stack_bytes;
  thread_ = number;
  taken_of_thread_ = taken_.empty() ? nullptr : &taken_[number];
  trace_ = warps_.empty() ? nullptr : &warps_[number / kWarpSize].lanes[number % kWarpSize];
}

void Recorder::release_block_barrier(unsigned rank) {
  ++barriers_;
  check_unwritten_read();
  if (cluster_ == 1) {
    order_.block_barrier();
  } else {
    order_.meet(threads_ / cluster_ * rank, threads_ / cluster_);
  }
}

void Recorder::access(const void* pointer, unsigned bytes, bool store, std::uint32_t site,
                      std::uint64_t other_end) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address - stack_ < stack_bytes_) {
    if (taken_of_thread_ != nullptr) check_registers(address, bytes, store, site);
    return;
  }
  if (!is_running_) return;  // host code
  if (address - shared_ < shared_bytes_) {
    record_shared(address - shared_, bytes, store, site);
  } else if (global_.holds(address, bytes)) {
    if (address % bytes != 0) {
      executor::fail("misaligned " + std::to_string(bytes * 8) + "-bit " + verb(store) + ", at " +
                     Sites::all().describe(site));
    }
    if (const auto problem = global_.access(thread_, address, bytes, store, site)) {
      executor::fail(*problem);
    }
    record(address, bytes, store ? Kind::kGlobalStore : Kind::kGlobalLoad, site, other_end);
  } else {
    check_foreign(address, bytes, store, site);
  }
}

void Recorder::record_shared(std::uint64_t offset, unsigned bytes, bool store, std::uint32_t site) {
  if (offset + bytes > shared_bytes_) check_foreign(shared_ + offset, bytes, store, site);
  if (offset % bytes != 0) {
    executor::fail("misaligned " + std::to_string(bytes * 8) + "-bit " + verb(store) + " at " +
                   variables_.name_of(offset) + ", at " + Sites::all().describe(site));
  }
  check_variable(offset, bytes, store ? "store" : "load", site);
  const auto problem = store ? hazards_.write(thread_, offset, bytes, site)
                             : hazards_.read(thread_, offset, bytes, site);
  if (problem) executor::fail(*problem);
  if (cluster_ > 1) reach_into(static_cast<unsigned>(offset / shared_stride_), site);
  record(offset, bytes, store ? Kind::kSharedStore : Kind::kSharedLoad, site);
}

void Recorder::check_variable(std::uint64_t offset, unsigned bytes, const char* access,
                              std::uint32_t site) {
  if (variables_.holds(offset, bytes)) return;
  executor::fail(std::to_string(bytes * 8) + "-bit " + access + " outside every __shared__ " +
                 "variable, " + variables_.name_outside(offset) + ", at " +
                 Sites::all().describe(site));
}

// One access that loads and stores. Atomic operations do not race with each other.
void Recorder::access_atomically(const void* data, unsigned bytes, const Site& site) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uint32_t number = Sites::number_of(site);
  if (address - shared_ < shared_bytes_) {
    const std::uint64_t offset = address - shared_;
    check_variable(offset, bytes, "atomic operation", number);
    if (const auto problem = hazards_.update(thread_, offset, bytes, number)) {
      executor::fail(*problem);
    }
    record(offset, bytes, Kind::kSharedAtomic, number);
  } else if (global_.holds(address, bytes)) {
    if (const auto problem = global_.update(thread_, address, bytes, number)) {
      executor::fail(*problem);
    }
    order_.use_atomic(thread_, data);
    record(address, bytes, Kind::kGlobalAtomic, number);
  } else {
    check_foreign(address, bytes, true, number);
  }
}

void Recorder::start_copy(const float* smem, const float* gmem, unsigned bytes,
                          std::uint32_t site) {
  const auto offset = reinterpret_cast<std::uintptr_t>(smem) - shared_;
  if (offset >= shared_bytes_ || offset + bytes > shared_bytes_) {
    check_foreign(shared_ + offset, bytes, true, site);
  }
  check_variable(offset, bytes, "copy", site);
  if (gmem != nullptr) access(gmem, bytes, false, site, offset);
  if (const auto problem = hazards_.start_copy(thread_, offset, bytes, site)) {
    executor::fail(*problem);
  }
  record(offset, bytes, Kind::kSharedCopy, site,
         gmem == nullptr ? kNoOtherEnd : reinterpret_cast<std::uintptr_t>(gmem));
}

void Recorder::complete_copy(const float* smem, std::size_t bytes) {
  const auto offset = reinterpret_cast<std::uintptr_t>(smem) - shared_;
  const auto problem = hazards_.end_copy(thread_, offset, static_cast<unsigned>(bytes));
  if (problem) executor::fail(*problem);
}

void Recorder::record(std::uint64_t address, unsigned bytes, Kind kind, std::uint32_t site,
                      std::uint64_t other_end) {
  if (trace_ == nullptr) return;
  trace_->push_back({address, site, static_cast<std::uint16_t>(bytes), kind, other_end});
}

// Checks an address outside of the thread's stack, shared memory and buffers. Loads of kernel
// parameters (on the launching thread's stack) and of constants (in this program) are allowed;
// any other access is an error.
void Recorder::check_foreign(std::uintptr_t address, unsigned bytes, bool store,
                             std::uint32_t site) const {
  static thread_local const Range kHostStack = host_stack();
  if (!store && (kHostStack.holds(address) || kImage.holds(address) || is_index(address))) return;
  char where[64];
  const std::uintptr_t past = address - shared_;
  if (past < shared_bytes_ + (1U << 20)) {
    std::snprintf(where, sizeof(where), "byte %zu of %zu bytes of shared memory",
                  static_cast<std::size_t>(past), static_cast<std::size_t>(shared_bytes_));
  } else {
    std::snprintf(where, sizeof(where), "%p", reinterpret_cast<void*>(address));
  }
  executor::fail(std::to_string(bytes * 8) + "-bit " + verb(store) + " outside every operand, at " +
                 where + ", at " + Sites::all().describe(site));
}

}  // namespace tilegate::simt::counted
