#include "mbarriers.hpp"

#include <algorithm>
#include <cstring>

#include "executor_impl.hpp"
#include "observer.hpp"

namespace tilegate::simt {
namespace {

// A barrier in memory holds this mark and its number. Any other value means that it was never
// initialized, or overwritten.
constexpr std::uint64_t kMark = 0x6D62'6172'0000'0000;

constexpr unsigned kMaxCount = (1U << 20) - 1;  // of arrivals, and of bytes in a phase

std::string name_of(const Mbarrier& barrier) {
  return "the barrier at byte " + std::to_string(barrier.offset) + " of shared memory, made at " +
         to_string(barrier.made);
}

std::string phase_of(const Mbarrier& barrier) {
  return "phase " + std::to_string(barrier.phase) + " of " + name_of(barrier);
}

}  // namespace

void Mbarriers::init(device::Barrier& barrier, unsigned arrivals, const Site& site) {
  const std::size_t offset =
      executor_.shared_offset(&barrier, sizeof(barrier), "barrier_init", site);
  if (arrivals < 1 || arrivals > kMaxCount) {
    executor_.fail("barrier_init at " + to_string(site) + " for " + std::to_string(arrivals) +
                   " arrivals: from 1 to " + std::to_string(kMaxCount) + " are possible");
  }
  for (const Mbarrier& other : all_) {
    if (other.offset == offset) {
      executor_.fail("barrier_init at " + to_string(site) + " of " + name_of(other) +
                     " already: a barrier is initialized once");
    }
  }
  Mbarrier made;
  made.offset = offset;
  made.made = site;
  made.maker = executor_.current().number;
  made.arrivals = arrivals;
  made.seen.assign(executor_.num_threads(), Mbarrier::kNever);
  made.number = static_cast<unsigned>(all_.size());
  observer::make_mbarrier(offset, site);
  barrier.state = kMark | made.number;
  all_.push_back(std::move(made));
}

void Mbarriers::init_fence() {
  for (Mbarrier& barrier : all_) {
    if (barrier.maker == executor_.current().number) barrier.is_fenced = true;
  }
}

Mbarrier& Mbarriers::find(unsigned rank, const device::Barrier& barrier, const char* use,
                          const Site& site) {
  const std::size_t offset = executor_.peer_offset(
      executor_.shared_offset(&barrier, sizeof(barrier), use, site), rank, use, site);
  observer::use_mbarrier(offset, site);
  std::uint64_t state = 0;
  std::memcpy(&state, executor_.cluster_memory() + offset, sizeof(state));
  const std::uint64_t number = state ^ kMark;
  if (number >= all_.size() || all_[number].offset != offset) {
    executor_.fail(std::string(use) + " at " + to_string(site) + " of a barrier at byte " +
                   std::to_string(offset) +
                   " of shared memory that barrier_init has not made, or that was overwritten");
  }
  if (!all_[number].is_fenced) {
    executor_.fail(std::string(use) + " at " + to_string(site) + " of " + name_of(all_[number]) +
                   ", before barrier_init_fence() by the thread that made it");
  }
  return all_[number];
}

void Mbarriers::arrive(device::Barrier& state, unsigned expected_bytes, const Site& site) {
  Mbarrier& barrier = find(executor_.rank(), state, "barrier_arrive", site);
  barrier.bytes_expected += expected_bytes;
  add_arrival(barrier, site);
}

void Mbarriers::arrive_at(unsigned rank, device::Barrier& state, const Site& site) {
  add_arrival(find(rank, state, "barrier_arrive_remote", site), site);
}

void Mbarriers::add_arrival(Mbarrier& barrier, const Site& site) {
  if (barrier.arrived == barrier.arrivals) {
    executor_.fail("barrier_arrive at " + to_string(site) + " is one more than the " +
                   std::to_string(barrier.arrivals) + " arrivals of " + phase_of(barrier));
  }
  ++barrier.arrived;
  observer::arrive(barrier.number);
  complete_phase(barrier, executor_.current().number);
}

void Mbarriers::wait(device::Barrier& state, unsigned parity, const Site& site) {
  Mbarrier& barrier = find(executor_.rank(), state, "barrier_wait", site);
  if (parity > 1) {
    executor_.fail("barrier_wait at " + to_string(site) + " for parity " + std::to_string(parity) +
                   ": it is 0 or 1");
  }
  const unsigned thread = executor_.current().number;
  const bool is_complete = (barrier.phase & 1) != parity;
  const std::int64_t awaited = barrier.phase - (is_complete ? 1 : 0);
  if (barrier.seen[thread] == awaited) {
    executor_.fail("wait on the wrong phase: barrier_wait at " + to_string(site) + " for parity " +
                   std::to_string(parity) + " is for phase " + std::to_string(awaited) + " of " +
                   name_of(barrier) + ", which this thread has waited for before");
  }
  barrier.seen[thread] = awaited;
  if (is_complete) {
    observer::pass_mbarrier(thread, barrier.number);
    return;
  }
  barrier.waiting.push_back(thread);
  executor_.wait_as(State::kAtMbarrier, site);
}

unsigned Mbarriers::parity(device::Barrier& state, const Site& site) {
  return static_cast<unsigned>(find(executor_.rank(), state, "barrier_arrive", site).phase & 1);
}

void Mbarriers::copy_to(unsigned rank, Transfer transfer, device::Barrier& state,
                        const Site& site) {
  Mbarrier& barrier = find(rank, state, "copy to shared memory", site);
  for (const Piece& piece : transfer) {
    if (piece.bytes > 0) observer::access_global(piece.gmem, piece.bytes, false, site);
  }
  start_copy(barrier, std::move(transfer), site);
}

void Mbarriers::store_to(unsigned rank, std::size_t offset, const void* vector,
                         device::Barrier& state, const Site& site) {
  Mbarrier& barrier = find(rank, state, "store_remote", site);
  observer::arrive(barrier.number);  // a thread that waits for the store sees this arrival
  start_copy(barrier, contiguous(offset, vector, kPieceBytes), site);
}

void Mbarriers::start_copy(Mbarrier& barrier, Transfer transfer, const Site& site) {
  BulkCopy copy{
      executor_.current().number, {}, std::vector<std::byte>(transfer.size() * kPieceBytes)};
  std::byte* to = copy.bytes.data();
  for (const Piece& piece : transfer) {
    // Read now, so that a fault is reported for the thread that starts the copy.
    if (piece.bytes > 0) std::memcpy(to, piece.gmem, piece.bytes);
    observer::start_bulk_copy(piece.offset, kPieceBytes, barrier.number, barrier.phase + 1, site);
    to += kPieceBytes;
  }
  copy.transfer = std::move(transfer);
  barrier.bytes_started += copy.bytes.size();
  barrier.last_copy = site;
  if (executor_.copies_are_late()) {
    barrier.copies.push_back(std::move(copy));
  } else {
    complete(barrier, copy);
  }
}

void Mbarriers::complete(Mbarrier& barrier, const BulkCopy& copy) {
  const std::byte* from = copy.bytes.data();
  for (const Piece& piece : copy.transfer) {
    std::memcpy(executor_.cluster_memory() + piece.offset, from, kPieceBytes);
    from += kPieceBytes;
  }
  barrier.bytes_arrived += copy.bytes.size();
  complete_phase(barrier, copy.thread);
}

void Mbarriers::complete_phase(Mbarrier& barrier, unsigned thread) {
  if (barrier.arrived < barrier.arrivals || barrier.bytes_arrived != barrier.bytes_expected) return;
  if (barrier.bytes_started != barrier.bytes_expected) {
    executor_.report(thread, phase_of(barrier) + " expects " +
                                 std::to_string(barrier.bytes_expected) + " bytes, and copies of " +
                                 std::to_string(barrier.bytes_started) +
                                 " were started, the last at " + to_string(barrier.last_copy));
    return;
  }
  if (barrier.bytes_expected != 0) barrier.last_filled = barrier.phase;
  ++barrier.phase;
  observer::complete_phase(barrier.number, barrier.phase, barrier.bytes_expected != 0);
  barrier.arrived = 0;
  barrier.bytes_expected = barrier.bytes_started = barrier.bytes_arrived = 0;
  for (const unsigned waiting : barrier.waiting) {
    observer::pass_mbarrier(waiting, barrier.number);
    executor_.wake(waiting);
  }
  barrier.waiting.clear();
}

bool Mbarriers::complete_a_copy() {
  for (Mbarrier& barrier : all_) {
    if (barrier.waiting.empty() || barrier.copies.empty()) continue;
    const BulkCopy copy = std::move(barrier.copies.front());
    barrier.copies.erase(barrier.copies.begin());
    complete(barrier, copy);
    return true;
  }
  return false;
}

void Mbarriers::end_block() {
  for (const Mbarrier& barrier : all_) {
    if (barrier.bytes_started != 0 || barrier.bytes_expected != 0) {
      executor_.report(barrier.maker,
                       "the block ends in " + phase_of(barrier) + ", which expects " +
                           std::to_string(barrier.bytes_expected) + " bytes; copies of " +
                           std::to_string(barrier.bytes_started) + " were started");
      return;
    }
    if (*std::max_element(barrier.seen.begin(), barrier.seen.end()) < barrier.last_filled) {
      executor_.report(barrier.maker, "no thread has waited for phase " +
                                          std::to_string(barrier.last_filled) + " of " +
                                          name_of(barrier) + ", in which copies arrived");
      return;
    }
  }
}

std::string Mbarriers::describe_wait(unsigned thread) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const Mbarrier& barrier) {
    const auto& waiting = barrier.waiting;
    return std::find(waiting.begin(), waiting.end(), thread) != waiting.end();
  });
  const Mbarrier& barrier = *found;
  std::string text = "for " + phase_of(barrier) + ", which has " + std::to_string(barrier.arrived) +
                     " of " + std::to_string(barrier.arrivals) + " arrivals";
  if (barrier.bytes_expected != 0 || barrier.bytes_arrived != 0) {
    text += " and " + std::to_string(barrier.bytes_arrived) + " of " +
            std::to_string(barrier.bytes_expected) + " bytes";
  }
  return text;
}

}  // namespace tilegate::simt
