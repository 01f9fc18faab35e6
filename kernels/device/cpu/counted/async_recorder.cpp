// Checks of asynchronous work; see recorder.hpp.
#include <algorithm>
#include <string>

#include <tilegate/device/async.cuh>

#include "recorder.hpp"
#include "sites.hpp"
#include "transfer_sectors.hpp"

namespace tilegate::simt::counted {

void Recorder::make_mbarrier(std::size_t offset, const Site& site) {
  order_.make_mbarrier();
  const auto problem =
      hazards_.write(thread_, offset, sizeof(device::Barrier), Sites::number_of(site));
  if (problem) executor::fail(*problem);
}

void Recorder::use_mbarrier(std::size_t offset, const Site& site) {
  const auto problem =
      hazards_.read(thread_, offset, sizeof(device::Barrier), Sites::number_of(site));
  if (problem) executor::fail(*problem);
}

void Recorder::start_bulk_copy(std::size_t offset, unsigned bytes, unsigned barrier,
                               std::int64_t phase, const Site& site) {
  const auto problem = hazards_.start_bulk_copy(thread_, offset, bytes, barrier,
                                                static_cast<Stamp>(phase), Sites::number_of(site));
  if (problem) executor::fail(*problem);
}

// Global memory is checked by whole words, also where only a part of a word is accessed.
void Recorder::access_global(const void* gmem, std::size_t bytes, bool store, const Site& site) {
  constexpr std::uintptr_t kWord = 4;
  const std::uint32_t number = Sites::number_of(site);
  const auto begin = reinterpret_cast<std::uintptr_t>(gmem);
  for (std::uintptr_t word = begin / kWord * kWord; word < begin + bytes; word += kWord) {
    if (!global_.holds(word, 1)) check_foreign(word, kWord, store, number);
    const auto problem = store ? global_.store_async(thread_, word, kWord, number)
                               : global_.access(thread_, word, kWord, false, number);
    if (problem) executor::fail(*problem);
  }
}

void Recorder::count_transfer(const Transfer& transfer, bool store, const Site& site) {
  if (!is_counting_) return;
  std::uint64_t bytes = 0;
  for (const Piece& piece : transfer) bytes += piece.bytes;
  line_of(Sites::number_of(site), store ? Kind::kBulkStore : Kind::kBulkLoad)
      .traffic.add(transfer_sectors(transfer, store), bytes);
}

void Recorder::count_multiplication(unsigned bytes, const Site& site) {
  if (!is_counting_) return;
  const unsigned wavefronts = bytes / (kBanks * kBankBytes);
  line_of(Sites::number_of(site), Kind::kSharedMultiply)
      .traffic.add({wavefronts, wavefronts}, bytes);
}

void Recorder::start_bulk_store(std::size_t offset, unsigned bytes, int group, const Site& site) {
  start_async_read(
      {order_.agents().stores_of(thread_), static_cast<Stamp>(group), Sites::number_of(site)},
      offset, bytes);
}

void Recorder::start_multiplication(std::size_t offset, unsigned bytes, unsigned warpgroup,
                                    int group, const Site& site) {
  start_async_read({order_.agents().multiplications_of(warpgroup), static_cast<Stamp>(group),
                    Sites::number_of(site)},
                   offset, bytes);
}

void Recorder::start_async_read(const Hazards::Reader& reader, std::size_t offset, unsigned bytes) {
  const auto problem = hazards_.start_async_read(thread_, reader, offset, bytes);
  if (problem) executor::fail(*problem);
}

void Recorder::release_cluster_barrier() {
  check_unwritten_read();
  order_.block_barrier();
}

void Recorder::reach_into(unsigned rank, const Site& site) {
  reach_into(rank, Sites::number_of(site));
}

void Recorder::reach_into(unsigned rank, std::uint32_t site) {
  if (rank == thread_ / (threads_ / cluster_)) return;
  const Reach reach{thread_, rank, order_.now(), order_.stamp_of(thread_), site};
  const auto known = std::find_if(reaches_.begin(), reaches_.end(), [&](const Reach& other) {
    return other.thread == reach.thread && other.rank == reach.rank;
  });
  if (known == reaches_.end()) {
    reaches_.push_back(reach);
  } else {
    *known = reach;
  }
}

// At the end of a cluster: before a block ends, it must have waited for all accesses of its peers
// to its shared memory.
void Recorder::check_reaches() {
  const unsigned block_threads = threads_ / cluster_;
  for (const Reach& reach : reaches_) {
    bool is_known = reach.epoch < order_.now();
    for (unsigned i = 0; i < block_threads && !is_known; ++i) {
      is_known = order_.is_ordered(reach.thread, reach.stamp, reach.rank * block_threads + i);
    }
    if (is_known) continue;
    executor::report(reach.thread, "accesses the shared memory of block " +
                                       std::to_string(reach.rank) + " of its cluster at " +
                                       Sites::all().describe(reach.site) +
                                       ", which may have ended: no barrier makes it wait");
    break;
  }
  reaches_.clear();
}

void Recorder::take_registers(const void* registers, std::size_t count, const Site& site) {
  if (taken_.empty()) taken_.resize(threads_);
  std::erase_if(taken_[thread_], [&](const Registers& taken) { return taken.begin == registers; });
  taken_[thread_].push_back({registers, count, site});
  taken_of_thread_ = &taken_[thread_];
}

void Recorder::finish_registers(const void* registers) {
  for (Registers& taken : taken_[thread_]) taken.is_waited_for |= taken.begin == registers;
}

void Recorder::give_back_registers(const void* registers) {
  if (taken_.empty()) return;
  std::erase_if(taken_[thread_], [&](const Registers& taken) {
    return taken.begin == registers && taken.is_waited_for;
  });
}

void Recorder::check_registers(std::uintptr_t address, unsigned bytes, bool store,
                               std::uint32_t site) const {
  for (const Registers& taken : *taken_of_thread_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(taken.begin);
    if (address + bytes <= begin || address - begin >= taken.count * kRegisterBytes) continue;
    executor::fail(std::string(store ? "store" : "load") + " of acc[" +
                   std::to_string((address - begin) / kRegisterBytes) + "] at " +
                   Sites::all().describe(site) +
                   (taken.is_waited_for ? " before the warpgroup_fence_operand of"
                                        : " before the warpgroup_wait for") +
                   " the warpgroup_mma at " + Sites::all().describe(Sites::number_of(taken.site)));
  }
}

}  // namespace tilegate::simt::counted
