// Hazards of shared memory, decided exactly: every access is compared with what the same word saw
// since the last block barrier, ordered by barriers alone. Which schedule ran does not matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warp_access.hpp"

namespace tilegate::simt::counted {

class Hazards {
 public:
  void begin_launch(unsigned threads, unsigned threads_x, std::size_t shared_bytes);
  void begin_block();
  void block_barrier();

  struct Finding {
    unsigned thread;
    std::string what;
  };
  // To be asked before a block barrier and after a block: a read of a word that nobody had written,
  // and that nobody wrote since; that would be a race.
  const std::optional<Finding>& unwritten_read() const { return unwritten_read_; }
  void warp_barrier(unsigned warp, unsigned mask);

  // Each gives what is wrong with an access of `bytes` at `offset`, or nothing. Only the first
  // finding of a launch is meaningful.
  std::optional<std::string> read(unsigned thread, std::uint64_t offset, unsigned bytes,
                                  std::uint32_t site);
  std::optional<std::string> write(unsigned thread, std::uint64_t offset, unsigned bytes,
                                   std::uint32_t site);
  // An asynchronous copy writes at some time between its start and its end.
  std::optional<std::string> start_copy(unsigned thread, std::uint64_t offset, unsigned bytes,
                                        std::uint32_t site);
  std::optional<std::string> end_copy(unsigned thread, std::uint64_t offset, unsigned bytes);

 private:
  using Stamp = std::uint16_t;  // how many warp barriers a lane has passed since the block barrier

  // What a word saw. Epochs count block barriers over the whole launch.
  struct Word {
    std::uint32_t write_epoch = 0;
    std::uint32_t write_site = 0;
    std::uint16_t writer = 0;
    Stamp write_stamp = 0;
    bool copy_pending = false;
    std::uint32_t read_epoch = 0;
    std::uint32_t read_site = 0;
    std::uint32_t read_lanes = 0;    // of read_warp
    std::uint16_t read_warp = 0;     // the first warp that read in this epoch
    std::uint16_t other_reader = 0;  // a thread of another warp, plus one
    std::uint32_t other_site = 0;
    std::array<Stamp, kWarpSize> read_stamp{};
  };

  struct Clock {
    std::array<Stamp, kWarpSize> seen{};  // of each lane of the warp; its own is its clock
  };

  bool is_ordered(unsigned earlier, Stamp stamp, unsigned thread) const;
  std::optional<std::string> check_write(unsigned thread, Word& word, std::uint64_t offset,
                                         std::uint32_t site);
  std::optional<std::string> check_pending(const Word& word, std::uint64_t offset,
                                           std::uint32_t site, const char* verb) const;
  std::string race(unsigned other, const char* other_verb, std::uint32_t other_site,
                   unsigned thread, const char* verb, std::uint64_t offset,
                   std::uint32_t site) const;
  std::string name(unsigned thread) const;
  Stamp stamp_of(unsigned thread) const { return clocks_[thread].seen[thread % kWarpSize]; }

  unsigned threads_x_ = 1;
  std::uint32_t epoch_ = 0;
  std::uint32_t first_epoch_ = 0;  // of this block
  std::optional<Finding> unwritten_read_;
  bool clocks_moved_ = false;
  bool copies_started_ = false;  // in this block
  std::vector<Word> words_;
  std::vector<Clock> clocks_;  // of each thread
};

}  // namespace tilegate::simt::counted
