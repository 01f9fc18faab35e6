#include "sites.hpp"

#include <map>
#include <sstream>
#include <string_view>

// The linker gathers the modules' tables between these two; see instrument.py.
extern "C" {
__attribute__((visibility("hidden"), weak)) extern const char __start_tilegate_sites[];
__attribute__((visibility("hidden"), weak)) extern const char __stop_tilegate_sites[];
}

namespace tilegate::simt::counted {
namespace {

Frame parse_frame(const std::string& text) {
  std::istringstream in(text);
  std::string line, column;
  Frame frame;
  std::getline(in, frame.file, '|');
  std::getline(in, line, '|');
  std::getline(in, column, '|');
  std::getline(in, frame.function);
  frame.line = static_cast<unsigned>(std::stoul(line));
  frame.column = static_cast<unsigned>(std::stoul(column));
  return frame;
}

}  // namespace

Sites& Sites::instance() {
  static Sites sites;
  return sites;
}

const Sites& Sites::all() { return instance(); }

// Modules are numbered from 1 on: 0 is for these.
std::uint32_t Sites::number_of(const Site& site) {
  static std::map<std::pair<std::string_view, unsigned>, std::uint32_t> known;
  Sites& sites = instance();
  const auto [entry, is_new] =
      known.try_emplace({site.file_name(), site.line()}, sites.modules_[0].size());
  if (is_new) {
    sites.modules_[0].push_back(static_cast<std::uint32_t>(sites.locations_.size()));
    sites.locations_.push_back({Frame{site.file_name(), site.line(), 0, {}}});
  }
  return entry->second;
}

Sites::Sites() : modules_(1) {
  std::map<std::string, std::uint32_t> known;
  std::istringstream table(
      std::string(__start_tilegate_sites,
                  static_cast<std::size_t>(__stop_tilegate_sites - __start_tilegate_sites)));
  for (std::string line; std::getline(table, line);) {
    const auto tab = line.find('\t');
    const std::string chain = line.substr(tab + 1);
    const auto [entry, is_new] = known.try_emplace(chain, locations_.size());
    if (is_new) {
      Location location;
      std::istringstream frames(chain);
      for (std::string frame; std::getline(frames, frame, '\t');) {
        location.push_back(parse_frame(frame));
      }
      locations_.push_back(std::move(location));
    }
    std::istringstream numbers(line.substr(0, tab));
    for (std::uint32_t site = 0; numbers >> site;) {
      if (modules_.size() <= site >> 16) modules_.resize((site >> 16) + 1);
      auto& module = modules_[site >> 16];
      if (module.size() <= (site & 0xffff)) module.resize((site & 0xffff) + 1);
      module[site & 0xffff] = entry->second;
    }
  }
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
