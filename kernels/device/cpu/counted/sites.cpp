#include "sites.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

// The linker puts the modules' tables between these two symbols; see instrument.py.
extern "C" {
__attribute__((visibility("hidden"), weak)) extern const char __start_tilegate_sites[];
__attribute__((visibility("hidden"), weak)) extern const char __stop_tilegate_sites[];
}

namespace tilegate::simt::counted {
namespace {

// Takes the part of `text` before `end`, or all of it if there is no `end`.
std::string_view take(std::string_view& text, char end) {
  const std::string_view part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

std::uint32_t take_number(std::string_view& text, char end) {
  const std::string_view digits = take(text, end);
  std::uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

Frame parse_frame(std::string_view text) {
  Frame frame;
  frame.file = take(text, '|');
  frame.line = take_number(text, '|');
  frame.column = take_number(text, '|');
  frame.function = text;
  return frame;
}

}  // namespace

Sites& Sites::instance() {
  static Sites sites;
  return sites;
}

const Sites& Sites::all() { return instance(); }

// Module 0 has the run-time lines; instrumented modules are numbered from 1.
std::uint32_t Sites::number_of(const Site& site) {
  static std::map<std::pair<std::string_view, unsigned>, std::uint32_t> known;
  Sites& sites = instance();
  const auto [entry, is_new] =
      known.try_emplace({site.file_name(), site.line()}, sites.modules_[0].size());
  if (is_new) {
    sites.modules_[0].push_back(static_cast<std::uint32_t>(sites.chains_.size()));
    sites.chains_.push_back(sites.texts_.emplace_back(std::string(site.file_name()) + "|" +
                                                      std::to_string(site.line()) + "|0|"));
  }
  return entry->second;
}

Sites::Sites() : modules_(1) {
  std::unordered_map<std::string_view, std::uint32_t> known;
  std::string_view table(__start_tilegate_sites,
                         static_cast<std::size_t>(__stop_tilegate_sites - __start_tilegate_sites));
  while (!table.empty()) {
    std::string_view chain = take(table, '\n');
    std::string_view numbers = take(chain, '\t');
    const auto [entry, is_new] = known.try_emplace(chain, chains_.size());
    if (is_new) chains_.push_back(chain);
    while (!numbers.empty()) {
      const std::uint32_t site = take_number(numbers, ' ');
      if (modules_.size() <= site >> 16) modules_.resize((site >> 16) + 1);
      auto& module = modules_[site >> 16];
      if (module.size() <= (site & 0xffff)) module.resize((site & 0xffff) + 1);
      module[site & 0xffff] = entry->second;
    }
  }
}

Location Sites::at(std::uint32_t location) const {
  Location frames;
  for (std::string_view chain = chains_[location]; !chain.empty();) {
    frames.push_back(parse_frame(take(chain, '\t')));
  }
  return frames;
}

std::string Sites::describe(std::uint32_t site) const {
  std::string text;
  for (const Frame& frame : at(location(site))) {
    if (!text.empty()) text += ", called from ";
    text += frame.file + ":" + std::to_string(frame.line);
  }
  return text.empty() ? "a line that the compiler does not name" : text;
}

}  // namespace tilegate::simt::counted
