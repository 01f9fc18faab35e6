// Hazards of bulk copies and of multiplications by tensor cores, and of words that more than
// __syncthreads orders.
#include <algorithm>

#include "hazards.hpp"

namespace tilegate::simt::counted {

void Hazards::add_other_reader(unsigned thread, std::size_t word, std::uint32_t site) {
  if (other_readers_.empty()) other_readers_.resize(words_.size());
  OtherReaders& readers = other_readers_[word];
  if (readers.epoch != order_.now()) {
    readers.epoch = order_.now();
    readers.threads.clear();
  }
  const auto number = static_cast<std::uint16_t>(thread);
  const auto known = std::find_if(readers.threads.begin(), readers.threads.end(),
                                  [&](const Reader& reader) { return reader.thread == number; });
  if (known == readers.threads.end()) {
    readers.threads.push_back({number, order_.stamp_of(thread), site});
  } else {
    *known = {number, order_.stamp_of(thread), site};
  }
}

// Forgets them if all is well: what comes after the write comes after them too.
std::optional<std::string> Hazards::check_other_readers(unsigned thread, std::size_t word,
                                                        std::uint32_t site) {
  OtherReaders& readers = other_readers_[word];
  if (readers.epoch == order_.now()) {
    for (const Reader& reader : readers.threads) {
      if (!order_.is_ordered(reader.thread, reader.stamp, thread)) {
        return race(reader.thread, "read", reader.site, thread, "writes", word * kWordBytes, site);
      }
    }
    readers.threads.clear();
  }
  for (const Reader& reader : readers.multiplications) {
    if (!order_.is_after_multiplications(thread, reader.thread, reader.stamp)) {
      return "write of " + at(word * kWordBytes) + " at " + place(site) +
             ", which the warpgroup_mma of warp " + std::to_string(reader.thread) + " at " +
             place(reader.site) + " still reads: no warpgroup_wait comes before";
    }
  }
  readers.multiplications.clear();
  return std::nullopt;
}

std::optional<std::string> Hazards::check_filled(unsigned thread, const Word& word,
                                                 std::uint64_t offset, const char* verb,
                                                 std::uint32_t site) const {
  if (order_.is_after_copies(thread, word.filler - 1U, word.fill_phase)) return std::nullopt;
  return std::string(verb) + " of " + at(offset) + " at " + place(site) +
         " before the barrier_wait for the bulk copy that thread " + order_.name_of(word.writer) +
         " started at " + place(word.write_site);
}

std::optional<std::string> Hazards::start_bulk_copy(unsigned thread, std::uint64_t offset,
                                                    unsigned bytes, unsigned barrier, Stamp phase,
                                                    std::uint32_t site) {
  if (auto problem = write(thread, offset, bytes, site)) return problem;
  for (std::uint64_t i = offset / kWordBytes; i * kWordBytes < offset + bytes; ++i) {
    words_[i].filler = static_cast<std::uint16_t>(barrier + 1);
    words_[i].fill_phase = phase;
  }
  return std::nullopt;
}

std::optional<std::string> Hazards::start_multiplication(unsigned thread, std::uint64_t offset,
                                                         unsigned bytes, Stamp group,
                                                         std::uint32_t site) {
  if (other_readers_.empty()) other_readers_.resize(words_.size());
  const auto warp = static_cast<std::uint16_t>(thread / kWarpSize);
  for (std::uint64_t i = offset / kWordBytes; i * kWordBytes < offset + bytes; ++i) {
    const Word& word = words_[i];
    const auto what = [&] {
      return "warpgroup_mma at " + place(site) + " reads " + at(i * kWordBytes);
    };
    if (word.copy_pending) return check_pending(word, i * kWordBytes, site, "read");
    if (word.write_epoch < order_.block_began()) {
      return what() + ", which nothing in the block has written: is its descriptor right?";
    }
    if (word.filler != 0) {
      if (auto problem = check_filled(thread, word, i * kWordBytes, "read", site)) return problem;
    } else if (word.write_epoch == order_.now() &&
               !order_.is_ordered(word.writer, word.write_stamp, thread)) {
      return race(word.writer, "wrote", word.write_site, thread, "reads", i * kWordBytes, site);
    } else if (!order_.is_fenced(word.writer, word.write_epoch, word.write_stamp, thread)) {
      return what() + ", which thread " + order_.name_of(word.writer) + " stored at " +
             place(word.write_site) + " and did not fence_async_proxy() before a barrier";
    }
    auto& readers = other_readers_[i].multiplications;
    const auto known = std::find_if(readers.begin(), readers.end(),
                                    [&](const Reader& reader) { return reader.thread == warp; });
    if (known == readers.end()) {
      readers.push_back({warp, group, site});
    } else {
      *known = {warp, group, site};
    }
  }
  return std::nullopt;
}

}  // namespace tilegate::simt::counted
