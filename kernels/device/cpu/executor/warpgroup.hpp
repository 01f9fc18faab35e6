// Multiplications of a warpgroup. A multiplication of its 128 threads is one operation: it begins
// when the last thread has started it, and after a wait of any thread it is complete.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <tilegate/device/async.cuh>

#include "matrix_tile.hpp"

namespace tilegate::simt {

constexpr unsigned kWarpgroupSize = 128;

class Executor;

struct Operation {
  MatrixProduct product;
  unsigned threads = 0;  // how many have started it
  bool is_late = false;  // performed at a wait
};

class Warpgroup {
 public:
  // The current thread starts its operation `number`, counted from 0.
  void start(Executor& executor, std::size_t number, const Operation& operation);
  // The current thread waits for the first `count` operations.
  void wait(Executor& executor, std::size_t count, const Site& site);

 private:
  void complete(Executor& executor, std::size_t count);
  void compute(Executor& executor, std::size_t number) const;
  static std::array<RowBytes, kRowsOfA> rows_in_registers(Executor& executor, std::size_t number);
  template <typename Arithmetic>
  void compute_as(Executor& executor, std::size_t number) const;

  std::vector<Operation> operations_;
  std::size_t started_ = 0, done_ = 0;                     // by all threads
  std::vector<std::pair<unsigned, std::size_t>> waiting_;  // thread, number of started operations
};

}  // namespace tilegate::simt
