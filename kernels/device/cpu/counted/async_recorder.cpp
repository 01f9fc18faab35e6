// What the executor tells of asynchronous work, judged; see recorder.hpp.
#include <string>

#include <tilegate/device/async.cuh>

#include "recorder.hpp"
#include "sites.hpp"

namespace tilegate::simt::counted {
namespace {

constexpr unsigned kBulkUnit = 16;  // bytes that are checked at a time

}  // namespace

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

void Recorder::start_bulk_copy(std::size_t offset, const void* gmem, unsigned bytes,
                               unsigned barrier, std::int64_t phase, const Site& site) {
  const std::uint32_t number = Sites::number_of(site);
  const auto from = reinterpret_cast<std::uintptr_t>(gmem);
  for (unsigned i = 0; i < bytes; i += kBulkUnit) {
    if (!global_.holds(from + i, kBulkUnit)) check_foreign(from + i, kBulkUnit, false, number);
    if (const auto problem = global_.access(thread_, from + i, kBulkUnit, false, number)) {
      executor::fail(*problem);
    }
  }
  const auto problem =
      hazards_.start_bulk_copy(thread_, offset, bytes, barrier, static_cast<Stamp>(phase), number);
  if (problem) executor::fail(*problem);
}

void Recorder::start_multiplication(std::size_t offset, unsigned bytes, int group,
                                    const Site& site) {
  const auto problem = hazards_.start_multiplication(
      thread_, offset, bytes, static_cast<Stamp>(group), Sites::number_of(site));
  if (problem) executor::fail(*problem);
}

void Recorder::take_registers(const std::int32_t* registers, std::size_t count, const Site& site) {
  if (taken_.empty()) taken_.resize(threads_);
  taken_[thread_].push_back({registers, count, site});
  taken_of_thread_ = &taken_[thread_];
}

void Recorder::give_back_registers(const std::int32_t* registers) {
  std::erase_if(taken_[thread_], [&](const Registers& taken) { return taken.begin == registers; });
}

void Recorder::check_registers(std::uintptr_t address, unsigned bytes, bool store,
                               std::uint32_t site) const {
  for (const Registers& taken : *taken_of_thread_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(taken.begin);
    if (address + bytes <= begin || address - begin >= taken.count * sizeof(*taken.begin)) continue;
    executor::fail(std::string(store ? "store" : "load") + " of acc[" +
                   std::to_string((address - begin) / sizeof(*taken.begin)) + "] at " +
                   Sites::all().describe(site) +
                   " before the warpgroup_wait for the warpgroup_mma at " +
                   Sites::all().describe(Sites::number_of(taken.site)));
  }
}

}  // namespace tilegate::simt::counted
