// What kernels do to global memory, judged at every access, whichever schedule runs.
//
// By the contract of a call: elements of A and B are read, if at all; each of C is stored once, and
// read only if beta is not 0; a word of the workspace is read after the call has written it. What
// lies between the rows of an operand, or outside, is nobody's. Without a call every buffer may be
// read and written. And by what other threads did to the same word: flags alone, or fences and
// atomic operations, order the blocks of a launch, barriers alone the threads of a block, and
// wait_for_previous_kernel() alone a launch that overlaps the one before it.
#pragma once

#include <array>
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
  // The same of a store by the copy engine, which no thread of the launch can wait for.
  std::optional<std::string> store_async(unsigned thread, std::uintptr_t address, unsigned bytes,
                                         std::uint32_t site);
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
    enum class Kind : std::uint8_t { kPlain, kUpdate, kAsync } kind = Kind::kPlain;
    Stamp stamp = 0;
  };
  struct Word {
    Access store, load;
  };
  // What a warp has loaded since the last barrier of its block, by lane.
  struct WarpLoads {
    Epoch epoch = 0;
    std::uint32_t block = 0;
    std::uint32_t site = 0;
    std::uint16_t warp = 0;
    std::uint32_t lanes = 0;
    std::array<Stamp, kWarpSize> stamp{};
  };
  // What those in a Word have displaced, in this launch, and did not come after.
  struct Others {
    std::vector<WarpLoads> loads;
    Access store;                 // before the updates
    std::vector<Access> updates;  // since that store
  };

  // An operand, the workspace, or, without a call, a buffer.
  struct Region {
    std::string name;
    std::uintptr_t begin = 0, bytes = 0;
    std::int64_t rows = 1, cols = 0, ld = 0;  // in elements
    std::int64_t batch = 1, stride = 0;
    const char* not_loaded = nullptr;  // why no kernel may; nullptr: one may
    const char* not_stored = nullptr;
    bool stored_once = false;             // each element, at the most, by a call or by each launch
    bool all_stored = false;              // each element, at the least
    bool stored_first = false;            // before it is loaded
    std::vector<Word> words = {};         // of its elements, where they may be stored to
    unsigned word_bytes = kElementBytes;  // less where smaller parts have been accessed
    std::unordered_map<std::int64_t, Others> others = {};  // by number of the word
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
  static void split_words(Region& region, unsigned bytes);
  std::optional<std::string> load(unsigned thread, Region& region, std::int64_t number,
                                  std::uint32_t site);
  std::optional<std::string> store(unsigned thread, Region& region, std::int64_t number,
                                   std::uint32_t site);
  void add_load(Region& region, std::int64_t number, const Access& load);
  std::optional<std::string> check_stores(unsigned thread, const Region& region,
                                          std::int64_t number, const char* verb,
                                          std::uint32_t site) const;
  std::optional<std::string> check_loads(unsigned thread, const Region& region, std::int64_t number,
                                         std::uint32_t site) const;
  bool is_own_sum(const Region& region, std::int64_t element, std::int64_t count) const;
  bool is_race(unsigned thread, const Access& earlier) const;
  bool is_before(const Access& earlier, unsigned thread) const;
  std::string race(const Region& region, std::int64_t number, const Access& earlier,
                   const char* earlier_verb, const char* verb, std::uint32_t site) const;
  std::string name_of_thread(const Access& access) const;

  const Order& order_;
  Access::Kind kind_ = Access::Kind::kPlain;  // of the running access
  std::vector<Buffer> buffers_;
  std::size_t last_buffer_ = 0, last_region_ = 0;  // that an access hit
  bool in_call_ = false;
  bool adds_to_c_ = false;
  Epoch call_began_ = 0;
  std::vector<Region> regions_;
};

}  // namespace tilegate::simt::counted
