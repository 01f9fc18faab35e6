#include "global_memory.hpp"

#include <algorithm>
#include <utility>

#include "sites.hpp"

namespace tilegate::simt::counted {
namespace {

std::string at(std::uint32_t site) { return ", at " + Sites::all().describe(site); }

}  // namespace

void GlobalMemory::add_buffer(const void* data, std::size_t bytes) {
  buffers_.push_back({reinterpret_cast<std::uintptr_t>(data), bytes});
}

void GlobalMemory::remove_buffer(const void* data) {
  std::erase_if(buffers_, [&](const Buffer& buffer) {
    return buffer.begin == reinterpret_cast<std::uintptr_t>(data);
  });
  regions_.clear();  // outside of a call a region refers to a buffer
}

void GlobalMemory::begin_call(const Problem& problem, const Operands& operands) {
  in_call_ = true;
  call_began_ = order_.now() + 1;  // the next launch begins with a new epoch
  regions_.clear();
  if (problem.is_empty()) return;
  add_region(problem, Operand::kA, operands.a);
  add_region(problem, Operand::kB, operands.b);
  for (Region& input : regions_) {
    input.not_stored = "an input";
    if (!problem.reads_a_and_b()) input.not_loaded = "although alpha or K is 0";
  }
  add_region(problem, Operand::kC, operands.c);
  Region& c = regions_.back();
  if (problem.beta == 0.0F) c.not_loaded = "although beta is 0";
  c.stored_once = true;
  c.all_stored = problem.reads_a_and_b() || problem.beta != 1.0F;  // otherwise C does not change
  const auto elements_of_c = problem.batch * problem.shape.m * problem.shape.n;
  c.words.resize(static_cast<std::size_t>(elements_of_c));
  if (operands.workspace_bytes == 0) return;
  Region workspace{.name = "the workspace",
                   .begin = reinterpret_cast<std::uintptr_t>(operands.workspace),
                   .bytes = operands.workspace_bytes};
  workspace.cols = static_cast<std::int64_t>(workspace.bytes / kElementBytes);
  workspace.ld = workspace.cols;
  workspace.stored_first = true;
  workspace.words.resize(static_cast<std::size_t>(workspace.cols));
  regions_.push_back(std::move(workspace));
}

void GlobalMemory::add_region(const Problem& problem, Operand operand, const float* data) {
  if (data == nullptr || problem.extent(operand).rows == 0 || problem.extent(operand).cols == 0) {
    return;
  }
  const auto [rows, cols] = problem.extent(operand);
  regions_.push_back({.name = kOperandNames[static_cast<std::size_t>(operand)],
                      .begin = reinterpret_cast<std::uintptr_t>(data),
                      .bytes = static_cast<std::uintptr_t>(problem.span(operand)) * kElementBytes,
                      .rows = rows,
                      .cols = cols,
                      .ld = problem.ld(operand),
                      .batch = problem.batch,
                      .stride = problem.stride(operand)});
}

std::optional<std::string> GlobalMemory::end_call() {
  in_call_ = false;
  std::optional<std::string> missing;
  for (const Region& region : regions_) {
    if (!region.all_stored) continue;
    const auto is_stored = [&](const Word& word) { return word.store.epoch >= call_began_; };
    const auto found = std::find_if_not(region.words.begin(), region.words.end(), is_stored);
    if (found == region.words.end()) continue;
    missing = name_of(region, found - region.words.begin()) + " was never stored";
  }
  regions_.clear();
  return missing;
}

bool GlobalMemory::holds(std::uintptr_t address, unsigned bytes) {
  const auto holds = [&](const Buffer& buffer) {
    return address - buffer.begin < buffer.bytes && address - buffer.begin + bytes <= buffer.bytes;
  };
  if (last_buffer_ < buffers_.size() && holds(buffers_[last_buffer_])) return true;
  for (last_buffer_ = 0; last_buffer_ < buffers_.size(); ++last_buffer_) {
    if (holds(buffers_[last_buffer_])) return true;
  }
  return false;
}

GlobalMemory::Region* GlobalMemory::find_region(std::uintptr_t address) {
  const auto holds = [&](const Region& region) { return address - region.begin < region.bytes; };
  if (last_region_ < regions_.size() && holds(regions_[last_region_])) {
    return &regions_[last_region_];
  }
  for (last_region_ = 0; last_region_ < regions_.size(); ++last_region_) {
    if (holds(regions_[last_region_])) return &regions_[last_region_];
  }
  if (in_call_) return nullptr;
  const Buffer& buffer = buffers_[last_buffer_];  // holds() has found the address there
  regions_.push_back({.name = "memory", .begin = buffer.begin, .bytes = buffer.bytes});
  Region& region = regions_.back();
  region.cols = region.ld = static_cast<std::int64_t>(buffer.bytes / kElementBytes);
  region.words.resize(static_cast<std::size_t>(region.cols));
  return &region;
}

std::optional<std::string> GlobalMemory::access(unsigned thread, std::uintptr_t address,
                                                unsigned bytes, bool is_store, std::uint32_t site) {
  const char* const verb = is_store ? "store to " : "load of ";
  Region* const region = find_region(address);
  if (region == nullptr) return verb + name_outside(address) + at(site);
  const auto first = static_cast<std::int64_t>((address - region->begin) / kElementBytes);
  const auto count = static_cast<std::int64_t>((bytes + kElementBytes - 1) / kElementBytes);
  const Place place = place_at(*region, first);
  if (place.index >= region->batch || place.row >= region->rows ||
      place.col + count > region->cols) {
    const std::int64_t beyond = std::max<std::int64_t>(region->cols - place.col, 0);
    return verb + name_of(*region, place_at(*region, first + beyond)) + at(site);
  }
  const std::int64_t element = (place.index * region->rows + place.row) * region->cols + place.col;
  const char* const why = is_store ? region->not_stored : region->not_loaded;
  if (why != nullptr && (is_store || !is_own_sum(*region, element, count))) {
    return verb + name_of(*region, place) + ", " + why + at(site);
  }
  if (!order_.is_after_previous_launch(thread)) {
    return verb + name_of(*region, place) + " before wait_for_previous_kernel()" + at(site);
  }
  if (region->words.empty()) return std::nullopt;
  if (bytes < region->word_bytes && !region->stored_once) split_words(*region, bytes);
  const unsigned word_bytes = region->word_bytes;
  const auto parts = static_cast<std::int64_t>(kElementBytes / word_bytes);
  const auto part = static_cast<std::int64_t>((address - region->begin) % kElementBytes);
  const std::int64_t begin = element * parts + part / word_bytes;
  const std::int64_t words = std::max<std::int64_t>(bytes / word_bytes, 1);
  for (std::int64_t i = begin; i < begin + words; ++i) {
    auto problem = is_store ? store(thread, *region, i, site) : load(thread, *region, i, site);
    if (problem) return problem;
  }
  return std::nullopt;
}

std::optional<std::string> GlobalMemory::update(unsigned thread, std::uintptr_t address,
                                                unsigned bytes, std::uint32_t site) {
  kind_ = Access::Kind::kUpdate;
  auto problem = access(thread, address, bytes, false, site);
  if (!problem) problem = access(thread, address, bytes, true, site);
  kind_ = Access::Kind::kPlain;
  return problem;
}

std::optional<std::string> GlobalMemory::store_async(unsigned thread, std::uintptr_t address,
                                                     unsigned bytes, std::uint32_t site) {
  kind_ = Access::Kind::kAsync;
  auto problem = access(thread, address, bytes, true, site);
  kind_ = Access::Kind::kPlain;
  return problem;
}

// Splits the words of the region into words of `bytes` bytes, 1 or 2. Each inherits the history of
// the larger word.
void GlobalMemory::split_words(Region& region, unsigned bytes) {
  const unsigned parts = bytes == 2 ? region.word_bytes / 2 : region.word_bytes;
  region.word_bytes /= parts;
  std::vector<Word> words;
  words.reserve(region.words.size() * parts);
  for (const Word& word : region.words) words.insert(words.end(), parts, word);
  region.words = std::move(words);
  std::unordered_map<std::int64_t, Others> all;
  for (const auto& [number, others] : region.others) {
    for (unsigned i = 0; i < parts; ++i) all[number * parts + i] = others;
  }
  region.others = std::move(all);
}

// Whether earlier kernels of the call have stored these elements of C, and the launch adds to them.
bool GlobalMemory::is_own_sum(const Region& region, std::int64_t element,
                              std::int64_t count) const {
  if (!adds_to_c_ || !region.stored_once) return false;
  const auto begin = region.words.begin() + element;
  const auto is_stored = [&](const Word& word) { return word.store.epoch >= call_began_; };
  return std::all_of(begin, begin + count, is_stored);
}

std::optional<std::string> GlobalMemory::load(unsigned thread, Region& region, std::int64_t number,
                                              std::uint32_t site) {
  Word& word = region.words[static_cast<std::size_t>(number)];
  if (region.stored_first && word.store.epoch < call_began_) {
    return "load of " + name_of(region, number * region.word_bytes / kElementBytes) +
           ", which no kernel of the call has stored" + at(site);
  }
  if (auto problem = check_stores(thread, region, number, "loads", site)) return problem;
  if (kind_ == Access::Kind::kUpdate) return std::nullopt;  // the store of the update follows
  if (is_race(thread, word.load)) add_load(region, number, word.load);
  word.load = {order_.now(), order_.block(),         site, static_cast<std::uint16_t>(thread),
               kind_,        order_.stamp_of(thread)};
  return std::nullopt;
}

// Loads of a block before its last barrier need not be kept: later loads of the block follow them.
void GlobalMemory::add_load(Region& region, std::int64_t number, const Access& load) {
  std::vector<WarpLoads>& loads = region.others[number].loads;
  const auto warp = static_cast<std::uint16_t>(load.thread / kWarpSize);
  while (!loads.empty() &&
         (loads.back().epoch < order_.launch_began() ||
          (loads.back().block == load.block && loads.back().epoch < load.epoch))) {
    loads.pop_back();
  }
  auto known = loads.rbegin();
  while (known != loads.rend() && known->block == load.block && known->warp != warp) ++known;
  if (known == loads.rend() || known->block != load.block) {
    loads.push_back({.epoch = load.epoch, .block = load.block, .warp = warp});
    known = loads.rbegin();
  }
  known->site = load.site;
  known->lanes |= 1U << load.thread % kWarpSize;
  known->stamp[load.thread % kWarpSize] = load.stamp;
}

std::optional<std::string> GlobalMemory::check_stores(unsigned thread, const Region& region,
                                                      std::int64_t number, const char* verb,
                                                      std::uint32_t site) const {
  const Access& last = region.words[static_cast<std::size_t>(number)].store;
  const auto check = [&](const Access& store) -> std::optional<std::string> {
    if (!is_race(thread, store)) return std::nullopt;
    return race(region, number, store, "stored", verb, site);
  };
  if (last.epoch < order_.launch_began() || last.kind != Access::Kind::kUpdate) return check(last);
  const Others& others = region.others.at(number);
  if (auto problem = check(others.store)) return problem;
  for (const Access& update : others.updates) {
    if (auto problem = check(update)) return problem;
  }
  return std::nullopt;
}

std::optional<std::string> GlobalMemory::check_loads(unsigned thread, const Region& region,
                                                     std::int64_t number,
                                                     std::uint32_t site) const {
  const Access& last = region.words[static_cast<std::size_t>(number)].load;
  if (is_race(thread, last)) return race(region, number, last, "loaded", "stores", site);
  const auto others = region.others.find(number);
  if (others == region.others.end()) return std::nullopt;
  for (const WarpLoads& loads : others->second.loads) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      if ((loads.lanes >> lane & 1) == 0) continue;
      const Access load{.epoch = loads.epoch,
                        .block = loads.block,
                        .site = loads.site,
                        .thread = static_cast<std::uint16_t>(loads.warp * kWarpSize + lane),
                        .stamp = loads.stamp[lane]};
      if (is_race(thread, load)) return race(region, number, load, "loaded", "stores", site);
    }
  }
  return std::nullopt;
}

std::optional<std::string> GlobalMemory::store(unsigned thread, Region& region, std::int64_t number,
                                               std::uint32_t site) {
  Word& word = region.words[static_cast<std::size_t>(number)];
  const Epoch stored_since = adds_to_c_ ? order_.launch_began() : call_began_;
  const bool is_update = kind_ == Access::Kind::kUpdate;
  const bool only_updates = is_update && word.store.kind == Access::Kind::kUpdate;
  if (region.stored_once && word.store.epoch >= stored_since && !only_updates) {
    return "second store to " + name_of(region, number) + at(site) + "; " +
           name_of_thread(word.store) + " stored it" + at(word.store.site);
  }
  if (auto problem = check_stores(thread, region, number, "stores", site)) return problem;
  if (auto problem = check_loads(thread, region, number, site)) return problem;
  const Access store{order_.now(), order_.block(),         site, static_cast<std::uint16_t>(thread),
                     kind_,        order_.stamp_of(thread)};
  if (is_update) {
    Others& others = region.others[number];
    if (!only_updates || word.store.epoch < order_.launch_began()) {
      others.store = word.store;
      others.updates.clear();
    }
    while (!others.updates.empty() && is_before(others.updates.back(), thread)) {
      others.updates.pop_back();
    }
    others.updates.push_back(store);
  } else if (!region.others.empty()) {
    region.others.erase(number);  // all of them happened before this store
  }
  word.store = store;
  return std::nullopt;
}

// Whether nothing orders the earlier access before the thread's current one.
bool GlobalMemory::is_race(unsigned thread, const Access& earlier) const {
  if (earlier.epoch < order_.launch_began()) return false;  // it was in an earlier launch
  if (earlier.kind == Access::Kind::kAsync) return true;
  if (kind_ == Access::Kind::kUpdate && earlier.kind == Access::Kind::kUpdate) return false;
  return !is_before(earlier, thread);
}

// Whether a flag or a barrier orders an access of this launch before the thread's current one.
bool GlobalMemory::is_before(const Access& earlier, unsigned thread) const {
  if (earlier.epoch < order_.block_began()) {
    return order_.is_flagged(earlier.block, earlier.epoch, earlier.thread, earlier.stamp, thread);
  }
  return earlier.epoch < order_.now() || order_.is_ordered(earlier.thread, earlier.stamp, thread);
}

std::string GlobalMemory::race(const Region& region, std::int64_t number, const Access& earlier,
                               const char* earlier_verb, const char* verb,
                               std::uint32_t site) const {
  const bool one_block = earlier.block == order_.block();
  const char* missing =
      one_block ? "; no barrier between" : "; nothing orders the blocks of a launch";
  if (earlier.kind == Access::Kind::kAsync) {
    missing = "; store_wait() does not wait until global memory is written";
  }
  return "race at " + name_of(region, number * region.word_bytes / kElementBytes) +
         ": this thread " + verb + " it" + at(site) + "; " + name_of_thread(earlier) + " " +
         earlier_verb + " it" + at(earlier.site) + missing;
}

std::string GlobalMemory::name_of_thread(const Access& access) const {
  return "block " + std::to_string(access.block) + ", thread " + order_.name_of(access.thread);
}

}  // namespace tilegate::simt::counted
