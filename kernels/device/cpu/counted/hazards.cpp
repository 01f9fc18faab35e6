#include "hazards.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "sites.hpp"

namespace tilegate::simt::counted {

std::string Hazards::at(std::uint64_t offset) const { return variables_.name_of(offset); }

std::string Hazards::place(std::uint32_t site) { return Sites::all().describe(site); }

void Hazards::begin_launch(std::size_t shared_bytes) {
  word_bytes_ = kWordBytes;
  words_.assign((shared_bytes + kWordBytes - 1) / kWordBytes, Word{});
  other_readers_.clear();
}

void Hazards::split_words(unsigned bytes) {
  const unsigned parts = bytes == 2 ? word_bytes_ / 2 : word_bytes_;
  word_bytes_ /= parts;
  const auto split = [&](auto& all) {
    std::remove_reference_t<decltype(all)> result;
    result.reserve(all.size() * parts);
    for (const auto& one : all) result.insert(result.end(), parts, one);
    all = std::move(result);
  };
  split(words_);
  split(other_readers_);
}

void Hazards::begin_block() {
  unwritten_read_.reset();
  for (OtherReaders& readers : other_readers_) readers.async.clear();
  // Copies that the last block did not wait for ended with the block.
  if (!copies_started_) return;
  for (Word& word : words_) word.copy_pending = false;
  copies_started_ = false;
}

std::optional<std::string> Hazards::read(unsigned thread, std::uint64_t offset, unsigned bytes,
                                         std::uint32_t site) {
  if (bytes < word_bytes_) split_words(bytes);
  const Stamp stamp = order_.stamp_of(thread);
  const auto warp = static_cast<std::uint16_t>(thread / kWarpSize);
  for (std::uint64_t i = offset / word_bytes_; i * word_bytes_ < offset + bytes; ++i) {
    Word& word = words_[i];
    if (word.copy_pending) return check_pending(word, i * word_bytes_, site, "read");
    check_written(thread, i, site);
    if (is_filled(word)) {
      if (auto problem = check_filled(thread, word, i * word_bytes_, "read", site)) return problem;
    } else if (word.write_epoch == order_.now() &&
               !order_.is_ordered(word.writer, word.write_stamp, thread)) {
      return race(word.writer, "wrote", word.write_site, thread, "reads", i * word_bytes_, site);
    }
    if (word.is_updated) {
      if (auto problem = check_updates(thread, i, "reads", site)) return problem;
    }
    if (word.read_epoch != order_.now()) {
      word.read_epoch = order_.now();
      word.read_lanes = 0;
      word.read_warp = warp;
      word.other_reader = 0;
      word.other_warps = 0;
    }
    if (word.read_warp == warp) {
      word.read_site = site;
      word.read_lanes |= 1U << thread % kWarpSize;
      word.read_stamp[thread % kWarpSize] = stamp;
    } else if (order_.orders_warps()) {
      add_other_reader(thread, i, site);
    } else {
      word.other_site = site;
      if (warp < kWarpSize) word.other_warps |= 1U << warp;
      word.other_reader = static_cast<std::uint16_t>(thread + 1);
    }
  }
  return std::nullopt;
}

std::optional<std::string> Hazards::check_write(unsigned thread, Word& word, std::uint64_t offset,
                                                std::uint32_t site, bool is_update) {
  const std::uint64_t number = offset / word_bytes_;
  if (is_filled(word)) {
    if (auto problem = check_filled(thread, word, offset, "write", site)) return problem;
  } else if (word.write_epoch == order_.now() &&
             !order_.is_ordered(word.writer, word.write_stamp, thread)) {
    return race(word.writer, "wrote", word.write_site, thread, "writes", offset, site);
  }
  if (word.is_updated && !is_update) {
    if (auto problem = check_updates(thread, number, "writes", site)) return problem;
  }
  if (word.read_epoch == order_.now()) {
    if (const auto reader = unmet_reader(thread, word)) {
      return race(*reader, "read", word.other_site, thread, "writes", offset, site);
    }
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const unsigned reader = word.read_warp * kWarpSize + lane;
      if ((word.read_lanes >> lane & 1) != 0 &&
          !order_.is_ordered(reader, word.read_stamp[lane], thread)) {
        return race(reader, "read", word.read_site, thread, "writes", offset, site);
      }
    }
  }
  if (!other_readers_.empty()) {
    if (auto problem = check_other_readers(thread, number, site, is_update)) return problem;
  }
  if (is_update) {
    add_update(thread, number, site);
    word.is_updated = true;
    return std::nullopt;
  }
  word.is_updated = false;
  word.filler = 0;
  word.write_epoch = order_.now();
  word.write_site = site;
  word.writer = static_cast<std::uint16_t>(thread);
  word.write_stamp = order_.stamp_of(thread);
  return std::nullopt;
}

std::optional<std::string> Hazards::write(unsigned thread, std::uint64_t offset, unsigned bytes,
                                          std::uint32_t site) {
  if (bytes < word_bytes_) split_words(bytes);
  for (std::uint64_t i = offset / word_bytes_; i * word_bytes_ < offset + bytes; ++i) {
    if (words_[i].copy_pending) return check_pending(words_[i], i * word_bytes_, site, "write");
    if (auto problem = check_write(thread, words_[i], i * word_bytes_, site)) return problem;
  }
  return std::nullopt;
}

std::optional<std::string> Hazards::update(unsigned thread, std::uint64_t offset, unsigned bytes,
                                           std::uint32_t site) {
  if (bytes < word_bytes_) split_words(bytes);
  for (std::uint64_t i = offset / word_bytes_; i * word_bytes_ < offset + bytes; ++i) {
    if (words_[i].copy_pending) return check_pending(words_[i], i * word_bytes_, site, "update");
    check_written(thread, i, site);
    if (auto problem = check_write(thread, words_[i], i * word_bytes_, site, true)) return problem;
  }
  return std::nullopt;
}

// A reader of another warp than `read_warp` that no barrier orders before the thread. These reads
// were recorded by warp, before the launch first used other barriers than __syncthreads. Named
// barriers take whole warps, so one ordered lane is enough.
std::optional<unsigned> Hazards::unmet_reader(unsigned thread, const Word& word) const {
  if (word.other_reader == 0) return std::nullopt;
  if (!order_.orders_warps()) {
    if (word.read_warp != thread / kWarpSize)
      return std::nullopt;  // reported as a race with that warp
    return word.other_reader - 1U;
  }
  for (unsigned warp = 0; warp < kWarpSize; ++warp) {
    if ((word.other_warps >> warp & 1) == 0) continue;
    bool has_met = false;
    for (unsigned lane = 0; lane < kWarpSize && !has_met; ++lane) {
      has_met = order_.is_ordered(warp * kWarpSize + lane, 1, thread);
    }
    if (!has_met) return warp * kWarpSize;
  }
  return std::nullopt;
}

void Hazards::check_written(unsigned thread, std::uint64_t word, std::uint32_t site) {
  if (words_[word].write_epoch >= order_.block_began() || unwritten_read_) return;
  unwritten_read_ = {thread, "read of " + at(word * word_bytes_) +
                                 ", which no thread of the block has written, at " + place(site)};
}

void Hazards::add_update(unsigned thread, std::uint64_t word, std::uint32_t site) {
  if (other_readers_.empty()) other_readers_.resize(words_.size());
  OtherReaders& others = other_readers_[word];
  if (others.update_epoch != order_.now() || !words_[word].is_updated) others.updates.clear();
  others.update_epoch = order_.now();
  add(&others.updates, {thread, order_.stamp_of(thread), site});
}

std::optional<std::string> Hazards::check_updates(unsigned thread, std::uint64_t word,
                                                  const char* verb, std::uint32_t site) const {
  const OtherReaders& others = other_readers_[word];
  if (others.update_epoch != order_.now()) return std::nullopt;
  for (const Reader& update : others.updates) {
    if (!order_.is_ordered(update.agent, update.stamp, thread)) {
      return race(update.agent, "wrote", update.site, thread, verb, word * word_bytes_, site);
    }
  }
  return std::nullopt;
}

std::optional<std::string> Hazards::start_copy(unsigned thread, std::uint64_t offset,
                                               unsigned bytes, std::uint32_t site) {
  auto problem = write(thread, offset, bytes, site);
  copies_started_ = true;
  for (std::uint64_t i = offset / word_bytes_; i * word_bytes_ < offset + bytes; ++i) {
    words_[i].copy_pending = true;
  }
  return problem;
}

std::optional<std::string> Hazards::end_copy(unsigned thread, std::uint64_t offset,
                                             unsigned bytes) {
  for (std::uint64_t i = offset / word_bytes_; i * word_bytes_ < offset + bytes; ++i) {
    words_[i].copy_pending = false;
  }
  return write(thread, offset, bytes, words_[offset / word_bytes_].write_site);
}

std::optional<std::string> Hazards::check_pending(const Word& word, std::uint64_t offset,
                                                  std::uint32_t site, const char* verb) const {
  return std::string(verb) + " of " + at(offset) + " at " + place(site) +
         " before the wait of the async copy that thread " + order_.name_of(word.writer) +
         " started at " + place(word.write_site);
}

std::string Hazards::race(unsigned other, const char* other_verb, std::uint32_t other_site,
                          unsigned thread, const char* verb, std::uint64_t offset,
                          std::uint32_t site) const {
  const bool one_warp = other / kWarpSize == thread / kWarpSize;
  const char* const missing =
      order_.orders_warps() ? "; no barrier between" : "; no __syncthreads between";
  return "race at " + at(offset) + ": this thread " + verb + " at " + place(site) + "; thread " +
         order_.name_of(other) + " " + other_verb + " at " + place(other_site) +
         (one_warp ? "; lanes of one warp, and no __syncwarp or __syncthreads between" : missing);
}

}  // namespace tilegate::simt::counted
