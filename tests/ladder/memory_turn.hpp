// A lock between test processes that use much of a GPU's memory.
#pragma once

#include <cstddef>

namespace tilegate::ladder {

// Holds the lock of this user's tests: two tests with tens of gigabytes each would not fit on one
// GPU. The constructor waits for the lock.
class MemoryTurn {
 public:
  static constexpr std::size_t kMuch = std::size_t{4} << 30;  // bytes; below this no lock is needed

  MemoryTurn();
  ~MemoryTurn();
  MemoryTurn(const MemoryTurn&) = delete;
  MemoryTurn& operator=(const MemoryTurn&) = delete;

 private:
  int file_;
};

}  // namespace tilegate::ladder
