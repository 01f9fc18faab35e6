// Whose turn it is to take much of a GPU's memory.
#pragma once

#include <cstddef>

namespace tilegate::ladder {

// While it lives no other test that asks has this user's turn for much device memory: two tests
// with tens of gigabytes each would not fit on one GPU. The constructor waits for the turn.
class MemoryTurn {
 public:
  static constexpr std::size_t kMuch = std::size_t{4} << 30;  // bytes; tests below it need no turn

  MemoryTurn();
  ~MemoryTurn();
  MemoryTurn(const MemoryTurn&) = delete;
  MemoryTurn& operator=(const MemoryTurn&) = delete;

 private:
  int file_;
};

}  // namespace tilegate::ladder
