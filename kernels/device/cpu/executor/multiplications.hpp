// Multiplications by a warpgroup's tensor cores. Each thread computes its own elements of the
// result, at its own time between the start and the wait.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tilegate/device/async.cuh>

namespace tilegate::simt {

constexpr unsigned kWarpgroupSize = 128;

class Executor;
class MatrixTile;

// Those of one thread.
class Multiplications {
 public:
  void arrive() { has_arrived_ = true; }
  void start(Executor& executor, std::int32_t* acc, unsigned n, device::MatrixDescriptor a,
             device::MatrixDescriptor b, const Site& site);
  void commit() { ++open_group_; }
  void wait(Executor& executor, int pending_groups, const Site& site);

  // The start of one that the thread has not waited for.
  std::optional<Site> running_at() const {
    return running_.empty() ? std::nullopt : std::optional(running_.front().site);
  }
  // Equal for threads that have started the same multiplications.
  std::uint64_t history() const { return history_; }

 private:
  struct Multiplication {
    std::int32_t* acc;
    unsigned n;
    device::MatrixDescriptor a, b;
    int group;
    bool is_late;  // computed at the wait
    Site site;
  };
  // Registers that belong to multiplications until a wait.
  struct Accumulators {
    std::int32_t* registers;
    std::vector<std::int32_t> values;
    Site site;
  };

  void observe(const MatrixTile& tile, unsigned first_row, unsigned rows, const Site& site) const;
  void take(Executor& executor, std::int32_t* acc, unsigned n, const Site& site);
  void give_back(Executor& executor, const Accumulators& accumulators);
  void compute(Executor& executor, const Multiplication& multiplication);

  std::vector<Multiplication> running_;
  std::vector<Accumulators> taken_;
  int open_group_ = 0;
  bool has_arrived_ = false;
  std::uint64_t history_ = 0;
};

}  // namespace tilegate::simt
