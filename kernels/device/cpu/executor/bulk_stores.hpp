// Copies from shared to global memory. They read at some time between the start and the wait.
#pragma once

#include <optional>
#include <vector>

#include <tilegate/device/async.cuh>

#include "transfers.hpp"

namespace tilegate::simt {

class Executor;

// The bulk stores of one thread.
class BulkStores {
 public:
  void start(Executor& executor, Transfer transfer, const Site& site);
  void commit() { ++open_group_; }
  void wait(Executor& executor, int pending_groups, const Site& site);

  // The source line of a store that the thread has not waited for.
  std::optional<Site> running_at() const {
    return running_.empty() ? std::nullopt : std::optional(running_.front().site);
  }

 private:
  struct Store {
    Transfer transfer;
    int group;
    bool is_late;  // performed at the wait
    Site site;
  };

  std::vector<Store> running_;
  int open_group_ = 0;
};

}  // namespace tilegate::simt
