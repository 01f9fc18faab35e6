// Flags, with which blocks of a launch wait for other blocks; see recorder.hpp, order.hpp and
// global_memory.hpp.
#include "recorder.hpp"
#include "sites.hpp"

namespace tilegate::simt::counted {
namespace {

std::string used_at(std::uint32_t site) { return ", at " + Sites::all().describe(site); }

}  // namespace

void Recorder::check_flag(const unsigned* flag, const Site& site) {
  const auto address = reinterpret_cast<std::uintptr_t>(flag);
  const std::uint32_t number = Sites::number_of(site);
  if (!global_.holds(address, sizeof(*flag))) {
    check_foreign(address, sizeof(*flag), true, number);
  } else if (const auto problem = global_.use_flag(thread_, address, number)) {
    executor::fail(*problem);
  }
}

void Recorder::raise_flag(const unsigned* flag, const Site& site) {
  check_flag(flag, site);
  order_.raise_flag(thread_, flag);
}

void Recorder::wait_for_flag(const unsigned* flag, const Site& site) {
  check_flag(flag, site);
  order_.wait_for_flag(thread_, flag);
}

std::optional<std::string> GlobalMemory::use_flag(unsigned thread, std::uintptr_t address,
                                                  std::uint32_t site) {
  Region* const region = find_region(address);
  if (region == nullptr) return "flag in " + name_outside(address) + used_at(site);
  const auto element = static_cast<std::int64_t>((address - region->begin) / kElementBytes);
  if (region->not_stored != nullptr || region->words.empty()) {
    return "flag in " + name_of(*region, place_at(*region, element)) + used_at(site);
  }
  if (!order_.is_after_previous_launch(thread)) {
    return "flag in " + name_of(*region, element) + " before wait_for_previous_kernel()" +
           used_at(site);
  }
  const Epoch stored =
      region->words[static_cast<std::size_t>(element * (kElementBytes / region->word_bytes))]
          .store.epoch;
  if ((region->stored_first && stored < call_began_) || stored >= order_.launch_began()) {
    return "flag in " + name_of(*region, element) +
           ", which no earlier kernel of the call has stored" + used_at(site);
  }
  return std::nullopt;
}

void Order::raise_flag(unsigned thread, const void* flag) {
  if (!agents_.in_use()) use_agents();
  raises_.push_back({flag, block_, epoch_, clock_of(thread)});
  tick(thread);
}

void Order::wait_for_flag(unsigned thread, const void* flag) {
  if (!agents_.in_use()) use_agents();
  for (unsigned i = 0; i < raises_.size(); ++i) {
    if (raises_[i].flag == flag) agents_.learn(thread, agents_.raised(i), 1);
  }
}

void Order::thread_fence(unsigned thread) {
  if (!agents_.in_use()) use_agents();
  ThreadFence& fence = thread_fences_[thread];
  for (const unsigned number : fence.to_wait) agents_.learn(thread, agents_.raised(number), 1);
  fence = {epoch_, clock_of(thread), {}};
  tick(thread);
}

void Order::use_atomic(unsigned thread, const void* data) {
  if (!agents_.in_use()) return;
  ThreadFence& fence = thread_fences_[thread];
  for (unsigned i = 0; i < raises_.size(); ++i) {
    if (raises_[i].flag == data) fence.to_wait.push_back(i);
  }
  if (fence.epoch != 0) raises_.push_back({data, block_, fence.epoch, fence.clock});
}

bool Order::is_flagged(unsigned block, Epoch epoch, unsigned earlier, Stamp stamp,
                       unsigned thread) const {
  for (unsigned i = 0; i < raises_.size(); ++i) {
    const Raise& raise = raises_[i];
    if (raise.block != block || !agents_.knows(thread, agents_.raised(i), 1)) continue;
    if (epoch < raise.epoch) return true;
    if (epoch == raise.epoch && earlier < raise.clock.size() && raise.clock[earlier] >= stamp) {
      return true;
    }
  }
  return false;
}

}  // namespace tilegate::simt::counted
