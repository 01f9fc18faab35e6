// Checks every access of a kernel to global memory. The result does not depend on the schedule.
//
// The contract of a call: A and B are only read; each element of C is stored once, and read only if
// beta is not 0; a word of the workspace is read only after the call has written it. Padding
// between rows, and memory outside the operands, must not be accessed. Outside of a call every
// buffer may be read and written.
//
// Races on a word: barriers order the threads of a block. Flags, or fences with atomic operations,
// order the blocks of a launch. wait_for_previous_kernel() orders a launch that overlaps the
// previous one. Nothing else orders accesses.
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
  // `adds_to_c`: the launch may load and store elements of C that earlier launches of the call have
  // stored.
  void begin_launch(bool adds_to_c) { adds_to_c_ = adds_to_c; }
  // An error that names the first element of C that the call has not stored, or nothing.
  std::optional<std::string> end_call();

  // Whether a buffer contains the bytes.
  bool holds(std::uintptr_t address, unsigned bytes);
  // Checks an access to `bytes` bytes of a buffer: returns an error, or nothing.
  std::optional<std::string> access(unsigned thread, std::uintptr_t address, unsigned bytes,
                                    bool store, std::uint32_t site);
  // The same for a store by the copy engine. No thread of the launch can wait for it.
  std::optional<std::string> store_async(unsigned thread, std::uintptr_t address, unsigned bytes,
                                         std::uint32_t site);
  // The same for an atomic operation, which loads and stores.
  std::optional<std::string> update(unsigned thread, std::uintptr_t address, unsigned bytes,
                                    std::uint32_t site);

  // The same for a flag, which threads of all blocks may raise and wait for.
  std::optional<std::string> use_flag(unsigned thread, std::uintptr_t address, std::uint32_t site);

 private:
  struct Buffer {
    std::uintptr_t begin, bytes;
  };

  // The last access to a word; epoch 0: none.
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
  // Loads of a word by the lanes of a warp since the last barrier of its block.
  struct WarpLoads {
    Epoch epoch = 0;
    std::uint32_t block = 0;
    std::uint32_t site = 0;
    std::uint16_t warp = 0;
    std::uint32_t lanes = 0;
    std::array<Stamp, kWarpSize> stamp{};
  };
  // Earlier accesses to a word in this launch that are not ordered before the one in Word.
  struct Others {
    std::vector<WarpLoads> loads;
    Access store;                 // the last store before the updates
    std::vector<Access> updates;  // atomic operations since that store
  };

  // An operand, the workspace, or, outside of a call, a buffer.
  struct Region {
    std::string name;
    std::uintptr_t begin = 0, bytes = 0;
    std::int64_t rows = 1, cols = 0, ld = 0;  // in elements
    std::int64_t batch = 1, stride = 0;
    const char* not_loaded = nullptr;  // why loads are errors; null: they are allowed
    const char* not_stored = nullptr;  // the same for stores
    bool stored_once = false;      // each element at most once per call, or per launch if adds_to_c
    bool all_stored = false;       // each element at least once per call
    bool stored_first = false;     // each word must be stored before it is loaded
    std::vector<Word> words = {};  // empty for inputs
    unsigned word_bytes = kElementBytes;                   // less after accesses to smaller parts
    std::unordered_map<std::int64_t, Others> others = {};  // by word number
  };
  // A position in a region.
  struct Place {
    std::int64_t index = 0;  // batch index
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
  Access::Kind kind_ = Access::Kind::kPlain;  // kind of the current access
  std::vector<Buffer> buffers_;
  std::size_t last_buffer_ = 0, last_region_ = 0;  // the last ones accessed
  bool in_call_ = false;
  bool adds_to_c_ = false;
  Epoch call_began_ = 0;
  std::vector<Region> regions_;
};

}  // namespace tilegate::simt::counted
