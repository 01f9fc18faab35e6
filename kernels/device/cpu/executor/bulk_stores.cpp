#include "bulk_stores.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "executor_impl.hpp"
#include "observer.hpp"

namespace tilegate::simt {
namespace {

// Stores whole pieces, as the hardware does: up to 16 bytes may lie past the end of a row.
void store(Executor& executor, const Transfer& transfer) {
  for (const Piece& piece : transfer) {
    if (piece.bytes == 0) continue;
    std::memcpy(piece.gmem, executor.cluster_memory() + piece.offset, kPieceBytes);
  }
}

}  // namespace

void BulkStores::start(Executor& executor, Transfer transfer, const Site& site) {
  observer::count_transfer(transfer, true, site);
  for (const Piece& piece : transfer) {
    if (piece.bytes == 0) continue;
    observer::start_bulk_store(piece.offset, kPieceBytes, open_group_ + 1, site);
    observer::access_global(piece.gmem, kPieceBytes, true, site);
  }
  running_.push_back({std::move(transfer), open_group_, executor.reads_are_late(), site});
  if (!running_.back().is_late) store(executor, running_.back().transfer);
}

void BulkStores::wait(Executor& executor, int pending_groups, const Site& site) {
  const int first_pending = open_group_ - pending_groups;
  const auto is_covered = [&](const Store& s) { return s.group < first_pending; };
  const auto is_late = [&](const Store& s) { return is_covered(s) && s.is_late; };
  if (std::any_of(running_.begin(), running_.end(), is_late)) {
    executor.wait_as(State::kLate, site);  // other threads run as far as they can
  }
  for (const Store& s : running_) {
    if (is_late(s)) store(executor, s.transfer);
  }
  std::erase_if(running_, is_covered);
  observer::finish_bulk_stores(std::max(first_pending, 0));
}

}  // namespace tilegate::simt
