// Hazards of shared memory. Every access is compared with the accesses to the same word since the
// last block barrier, so the result does not depend on the schedule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "order.hpp"
#include "shared_variables.hpp"

namespace tilegate::simt::counted {

class Hazards {
 public:
  Hazards(const Order& order, const SharedVariables& variables)
      : order_(order), variables_(variables) {}

  void begin_launch(std::size_t shared_bytes);
  void begin_block();
  void block_barrier() { unwritten_read_.reset(); }

  struct Finding {
    unsigned thread;
    std::string what;
  };
  // A read of a word that no thread had written. Checked before a block barrier and at the end of a
  // block: if a thread writes the word in between, the race is reported instead.
  const std::optional<Finding>& unwritten_read() const { return unwritten_read_; }

  // Each checks an access to `bytes` bytes at `offset` and returns an error, or nothing. Only the
  // first error of a launch is meaningful.
  std::optional<std::string> read(unsigned thread, std::uint64_t offset, unsigned bytes,
                                  std::uint32_t site);
  std::optional<std::string> write(unsigned thread, std::uint64_t offset, unsigned bytes,
                                   std::uint32_t site);
  // An atomic operation: it reads and writes.
  std::optional<std::string> update(unsigned thread, std::uint64_t offset, unsigned bytes,
                                    std::uint32_t site);
  // An asynchronous copy writes at some time between its start and its end.
  std::optional<std::string> start_copy(unsigned thread, std::uint64_t offset, unsigned bytes,
                                        std::uint32_t site);
  std::optional<std::string> end_copy(unsigned thread, std::uint64_t offset, unsigned bytes);
  // A bulk copy writes from its start until phase `phase` of mbarrier `barrier` is complete.
  std::optional<std::string> start_bulk_copy(unsigned thread, std::uint64_t offset, unsigned bytes,
                                             unsigned barrier, Stamp phase, std::uint32_t site);
  // A read of a word by an agent, at a time of its clock.
  struct Reader {
    unsigned agent;  // see agents.hpp
    Stamp stamp;
    std::uint32_t site;
  };
  // The thread starts a multiplication or a store, which reads until a thread waits for the agent.
  std::optional<std::string> start_async_read(unsigned thread, const Reader& reader,
                                              std::uint64_t offset, unsigned bytes);

 private:
  static constexpr unsigned kWordBytes = 4;
  std::string at(std::uint64_t offset) const;
  static std::string place(std::uint32_t site);

  // Splits words into words of `bytes` bytes, 1 or 2. Each inherits the history of the larger word.
  void split_words(unsigned bytes);

  // The history of a word.
  struct Word {
    Epoch write_epoch = 0;
    std::uint32_t write_site = 0;
    std::uint16_t writer = 0;
    Stamp write_stamp = 0;
    bool is_updated = false;  // by atomic operations since that write
    bool copy_pending = false;
    std::uint16_t filler = 0;  // if a bulk copy wrote it: number of its mbarrier, plus one
    Stamp fill_phase = 0;      // phase of that mbarrier in which the copy completes
    Epoch read_epoch = 0;
    std::uint32_t read_site = 0;
    std::uint32_t read_lanes = 0;    // lanes of read_warp that have read
    std::uint16_t read_warp = 0;     // the first warp that read in this epoch
    std::uint16_t other_reader = 0;  // a thread of another warp, plus one
    std::uint32_t other_warps = 0;   // bits of all such warps among the first 32
    std::uint32_t other_site = 0;
    std::array<Stamp, kWarpSize> read_stamp{};
  };

  struct OtherReaders {
    Epoch epoch = 0;
    std::vector<Reader> threads;  // threads of other warps than `read_warp`, in this epoch
    std::vector<Reader> async;    // asynchronous readers since the last write
    Epoch update_epoch = 0;
    std::vector<Reader> updates;  // atomic operations in that epoch
  };

  // Whether the last write was a bulk copy of this block.
  bool is_filled(const Word& word) const {
    return word.filler != 0 && word.write_epoch >= order_.block_began();
  }
  std::optional<unsigned> unmet_reader(unsigned thread, const Word& word) const;
  void check_written(unsigned thread, std::uint64_t word, std::uint32_t site);
  void add_update(unsigned thread, std::uint64_t word, std::uint32_t site);
  std::optional<std::string> check_updates(unsigned thread, std::uint64_t word, const char* verb,
                                           std::uint32_t site) const;
  static void add(std::vector<Reader>* readers, const Reader& reader);
  void add_other_reader(unsigned thread, std::size_t word, std::uint32_t site);
  std::optional<std::string> check_other_readers(unsigned thread, std::size_t word,
                                                 std::uint32_t site, bool is_update);
  std::optional<std::string> check_filled(unsigned thread, const Word& word, std::uint64_t offset,
                                          const char* verb, std::uint32_t site) const;
  std::optional<std::string> check_write(unsigned thread, Word& word, std::uint64_t offset,
                                         std::uint32_t site, bool is_update = false);
  std::optional<std::string> check_pending(const Word& word, std::uint64_t offset,
                                           std::uint32_t site, const char* verb) const;
  std::string race(unsigned other, const char* other_verb, std::uint32_t other_site,
                   unsigned thread, const char* verb, std::uint64_t offset,
                   std::uint32_t site) const;

  const Order& order_;
  const SharedVariables& variables_;
  std::optional<Finding> unwritten_read_;
  bool copies_started_ = false;       // in this block
  unsigned word_bytes_ = kWordBytes;  // size of the smallest access in this launch, at most 4
  std::vector<Word> words_;
  std::vector<OtherReaders> other_readers_;  // per word; empty until the launch needs it
};

}  // namespace tilegate::simt::counted
