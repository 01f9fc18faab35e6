// Hazards of bulk copies and of wgmma, and of words that other barriers than __syncthreads order.
#include <algorithm>

#include "hazards.hpp"

namespace tilegate::simt::counted {

// A later read of the same agent replaces its earlier one.
void Hazards::add(std::vector<Reader>* readers, const Reader& reader) {
  const auto known = std::find_if(readers->begin(), readers->end(),
                                  [&](const Reader& other) { return other.agent == reader.agent; });
  if (known == readers->end()) {
    readers->push_back(reader);
  } else {
    *known = reader;
  }
}

void Hazards::add_other_reader(unsigned thread, std::size_t word, std::uint32_t site) {
  if (other_readers_.empty()) other_readers_.resize(words_.size());
  OtherReaders& readers = other_readers_[word];
  if (readers.epoch != order_.now()) {
    readers.epoch = order_.now();
    readers.threads.clear();
  }
  add(&readers.threads, {thread, order_.stamp_of(thread), site});
}

// Without an error, and if the write is not an atomic update, forgets the readers: an access that
// is ordered after the write is ordered after them, too. An update orders nothing.
std::optional<std::string> Hazards::check_other_readers(unsigned thread, std::size_t word,
                                                        std::uint32_t site, bool is_update) {
  OtherReaders& readers = other_readers_[word];
  if (readers.epoch == order_.now()) {
    for (const Reader& reader : readers.threads) {
      if (!order_.is_ordered(reader.agent, reader.stamp, thread)) {
        return race(reader.agent, "read", reader.site, thread, "writes", word * word_bytes_, site);
      }
    }
    if (!is_update) readers.threads.clear();
  }
  for (const Reader& reader : readers.async) {
    if (!order_.is_after(thread, reader.agent, reader.stamp)) {
      return "write of " + at(word * word_bytes_) + " at " + place(site) + ", which " +
             order_.name_of_agent(reader.agent) + " at " + place(reader.site) +
             " still reads: its wait does not come before";
    }
  }
  if (!is_update) readers.async.clear();
  return std::nullopt;
}

std::optional<std::string> Hazards::check_filled(unsigned thread, const Word& word,
                                                 std::uint64_t offset, const char* verb,
                                                 std::uint32_t site) const {
  if (order_.is_after(thread, order_.agents().copies_of(word.filler - 1U), word.fill_phase))
    return std::nullopt;
  return std::string(verb) + " of " + at(offset) + " at " + place(site) +
         " before the barrier_wait for the bulk copy that thread " + order_.name_of(word.writer) +
         " started at " + place(word.write_site);
}

std::optional<std::string> Hazards::start_bulk_copy(unsigned thread, std::uint64_t offset,
                                                    unsigned bytes, unsigned barrier, Stamp phase,
                                                    std::uint32_t site) {
  if (auto problem = write(thread, offset, bytes, site)) return problem;
  for (std::uint64_t i = offset / word_bytes_; i * word_bytes_ < offset + bytes; ++i) {
    words_[i].filler = static_cast<std::uint16_t>(barrier + 1);
    words_[i].fill_phase = phase;
  }
  return std::nullopt;
}

std::optional<std::string> Hazards::start_async_read(unsigned thread, const Reader& reader,
                                                     std::uint64_t offset, unsigned bytes) {
  if (other_readers_.empty()) other_readers_.resize(words_.size());
  for (std::uint64_t i = offset / word_bytes_; i * word_bytes_ < offset + bytes; ++i) {
    const Word& word = words_[i];
    const auto what = [&] {
      return order_.name_of_agent(reader.agent) + " at " + place(reader.site) + " reads " +
             at(i * word_bytes_);
    };
    if (word.copy_pending) return check_pending(word, i * word_bytes_, reader.site, "read");
    if (word.write_epoch < order_.block_began()) {
      return what() + ", which nothing in the block has written";
    }
    if (is_filled(word)) {
      auto problem = check_filled(thread, word, i * word_bytes_, "read", reader.site);
      if (problem) return problem;
    } else if (word.write_epoch == order_.now() &&
               !order_.is_ordered(word.writer, word.write_stamp, thread)) {
      return race(word.writer, "wrote", word.write_site, thread, "reads", i * word_bytes_,
                  reader.site);
    } else if (!order_.is_fenced(word.writer, word.write_epoch, word.write_stamp, thread)) {
      return what() + ", which thread " + order_.name_of(word.writer) + " stored at " +
             place(word.write_site) + " and did not fence_async_proxy() before a barrier";
    }
    if (word.is_updated) {
      if (auto problem = check_updates(thread, i, "reads", reader.site)) return problem;
      const OtherReaders& others = other_readers_[i];
      for (const Reader& update : others.updates) {
        if (order_.is_fenced(update.agent, others.update_epoch, update.stamp, thread)) continue;
        return what() + ", which thread " + order_.name_of(update.agent) + " updated at " +
               place(update.site) + " and did not fence_async_proxy() before a barrier";
      }
    }
    add(&other_readers_[i].async, reader);
  }
  return std::nullopt;
}

}  // namespace tilegate::simt::counted
