// What kernels do to global memory, judged at every access, whichever schedule runs.
//
// By the contract of a call: elements of A and B are read, if at all; each of C is stored once, and
// read only if beta is not 0; a word of the workspace is read after the call has written it. What
// lies between the rows of an operand, or outside, is nobody's. Without a call every buffer may be
// read and written. And by what other threads did to the same word: flags alone order the blocks of
// a launch, barriers alone the threads of a block, and wait_for_previous_kernel() alone a launch
// that overlaps the one before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tilegate/stage.hpp>

#include "order.hpp"

namespace tilegate::simt::counted {

constexpr std::uintptr_t kElementBytes = sizeof(float);

class GlobalMemory {
 public:
  explicit GlobalMemory(const Order& order) : order_(order) {}

  void add_buffer(const void* data, std::size_t bytes);
  void remove_buffer(const void* data);

  void begin_call(const Problem& problem, const Operands& operands);
  // `adds_to_c`: the launch may load and store again what earlier ones of the call stored in C.
  void begin_launch(bool adds_to_c) { adds_to_c_ = adds_to_c; }
  // The first element of C that the call has not stored.
  std::optional<std::string> end_call();

  // Is it global memory at all? Otherwise nobody gave it to the kernel.
  bool holds(std::uintptr_t address, unsigned bytes);
  // What is wrong with an access of `bytes` bytes, which it holds, or nothing.
  std::optional<std::string> access(unsigned thread, std::uintptr_t address, unsigned bytes,
                                    bool store, std::uint32_t site);
  // The same of an atomic operation, which loads and stores.
  std::optional<std::string> update(unsigned thread, std::uintptr_t address, unsigned bytes,
                                    std::uint32_t site);

  // The same of a flag, which threads of all blocks may raise and wait for.
  std::optional<std::string> use_flag(unsigned thread, std::uintptr_t address, std::uint32_t site);

 private:
  struct Buffer {
    std::uintptr_t begin, bytes;
  };

  // Who last accessed a word, and when; never, if the epoch is 0.
  struct Access {
    Epoch epoch = 0;
    std::uint32_t block = 0;
    std::uint32_t site = 0;
    std::uint16_t thread = 0;
    bool is_update = false;
    Stamp stamp = 0;
  };
  struct Word {
    Access store, load;
  };
  // Loads that one in `words` has displaced: by an earlier block of the launch, and by another
  // thread of this block since its last barrier.
  struct OtherLoads {
    Access of_block, of_thread;
  };

  // An operand, the workspace, or, without a call, a buffer.
  struct Region {
    std::string name;
    std::uintptr_t begin = 0, bytes = 0;
    std::int64_t rows = 1, cols = 0, ld = 0;  // in elements
    std::int64_t batch = 1, stride = 0;
    const char* not_loaded = nullptr;  // why no kernel may; nullptr: one may
    const char* not_stored = nullptr;
    bool stored_once = false;      // each element, at the most, by a call or by each launch
    bool all_stored = false;       // each element, at the least
    bool stored_first = false;     // before it is loaded
    std::vector<Word> words = {};  // of its elements, where they may be stored to
    std::unordered_map<std::int64_t, OtherLoads> other_loads = {};  // by number of the element
  };
  // Where an access is in its region.
  struct Place {
    std::int64_t index = 0;  // of the matrix in its batch
    std::int64_t row = 0, col = 0;
  };

  void add_region(const Problem& problem, Operand operand, const float* data);
  Region* find_region(std::uintptr_t address);
  Place place_at(const Region& region, std::int64_t offset) const;
  std::string name_of(const Region& region, std::int64_t element) const;
  std::string name_of(const Region& region, const Place& place) const;
  std::string name_outside(std::uintptr_t address) const;
  std::optional<std::string> load(unsigned thread, Region& region, std::int64_t element,
                                  std::uint32_t site);
  std::optional<std::string> store(unsigned thread, Region& region, std::int64_t element,
                                   std::uint32_t site);
  bool is_own_sum(const Region& region, std::int64_t element, std::int64_t count) const;
  bool is_race(unsigned thread, const Access& earlier) const;
  std::string race(const Region& region, std::int64_t element, const Access& earlier,
                   const char* earlier_verb, const char* verb, std::uint32_t site) const;
  std::string name_of_thread(const Access& access) const;

  const Order& order_;
  bool in_update_ = false;
  std::vector<Buffer> buffers_;
  std::size_t last_buffer_ = 0, last_region_ = 0;  // that an access hit
  bool in_call_ = false;
  bool adds_to_c_ = false;
  Epoch call_began_ = 0;
  std::vector<Region> regions_;
};

}  // namespace tilegate::simt::counted
