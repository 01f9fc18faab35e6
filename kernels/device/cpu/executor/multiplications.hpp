// A thread's part in the multiplications of its warpgroup: its accumulators and its waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tilegate/device/async.cuh>

namespace tilegate::simt {

class Executor;
class MatrixTile;

using ShareOfA = std::array<std::uint32_t, 4>;

// The multiplications of one thread.
class Multiplications {
 public:
  void arrive() { has_arrived_ = true; }
  void start(Executor& executor, void* acc, const MatrixProduct& product, const Site& site);
  void commit() { ++open_group_; }
  void wait(Executor& executor, int pending_groups, const Site& site);
  void results(const void* registers);

  // The accumulators of the thread's operation `number`, while it runs.
  std::uint32_t* values_of(std::size_t number);
  // The thread's part of a, if a is in registers.
  const ShareOfA& share_of_a(std::size_t number) const { return running(number).share_of_a; }
  // The source line of a multiplication that the thread has not waited for.
  std::optional<Site> running_at() const {
    return running_.empty() ? std::nullopt : std::optional(running_.front().site);
  }
  // Equal for threads that have started the same multiplications.
  std::uint64_t history() const { return history_; }

 private:
  struct Multiplication {
    std::byte* acc;
    std::size_t number;
    int group;
    Site site;
    const std::uint32_t* registers_of_a;  // or null
    ShareOfA share_of_a;                  // their values at the start
  };
  // Registers that multiplications own until a wait.
  struct Accumulators {
    std::byte* registers;
    std::vector<std::uint32_t> values;  // the bits, of integers or floats
    Site site;
  };

  // A part of a that a multiplication has used, kept until warpgroup_fence_operand.
  struct UsedShare {
    const std::uint32_t* registers;
    ShareOfA share;
    Site site;
  };

  const Multiplication& running(std::size_t number) const;
  void use_share(Executor& executor, const UsedShare& share);
  static void check_share_of_a(Executor& executor, const Multiplication& multiplication);
  void observe(Executor& executor, const MatrixTile& tile, unsigned first_row, unsigned rows,
               const Site& site) const;
  void take(Executor& executor, std::byte* acc, unsigned n, const Site& site);
  void give_back(Executor& executor, const Accumulators& accumulators);

  std::vector<Multiplication> running_;
  std::vector<Accumulators> taken_;
  std::vector<UsedShare> used_shares_;
  std::size_t started_ = 0;
  int open_group_ = 0;
  bool has_arrived_ = false;
  std::uint64_t history_ = 0;
};

}  // namespace tilegate::simt
