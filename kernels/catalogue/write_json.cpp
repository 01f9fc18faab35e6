// write_catalogue FILE: writes the catalogue as JSON, build/<preset>/stages.json, for the commands
// in ci/.
#include <array>
#include <fstream>
#include <iostream>
#include <string>

#include <tilegate/catalogue.hpp>

namespace {

using tilegate::CatalogueEntry;

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string to_list(const auto& items, const auto& to_json) {
  std::string list;
  for (const auto& item : items) list += (list.empty() ? "" : ", ") + to_json(item);
  return '[' + list + ']';
}

// "10 Warptile": the number is that of the folder.
std::string title_of(const CatalogueEntry& entry) {
  const std::string_view folder = entry.folder.substr(entry.folder.rfind('/') + 1);
  const std::string_view number = folder.substr(0, folder.find_first_not_of("0123456789"));
  return std::string(number) + (number.empty() ? "" : " ") + std::string(entry.stage->name);
}

// `words` are separated by spaces.
std::string list_of_words(std::string_view words, const std::string& before) {
  std::string list;
  for (std::string_view rest = words; !rest.empty();) {
    const std::size_t end = rest.find(' ');
    list += (list.empty() ? "" : ", ") + quoted(before + std::string(rest.substr(0, end)));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return '[' + list + ']';
}

std::string to_json(const CatalogueEntry& entry) {
  const tilegate::Stage& stage = *entry.stage;
  const tilegate::Shape& whole = stage.restrictions.multiple_of;
  const auto number = [](std::int64_t size) { return std::to_string(size); };
  const auto name = [](const tilegate::Stage* variant) { return quoted(variant->name); };
  const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
  return "{\"name\": " + quoted(stage.name) + ", \"title\": " + quoted(title_of(entry)) +
         ", \"idea\": " + quoted(stage.idea) + ",\n   \"folder\": " + quoted(entry.folder) +
         ", \"library\": " + quoted(entry.library) +
         ", \"chooses_from\": " + list_of_words(entry.chooses_from, "") +
         ", \"sources\": " + list_of_words(entry.sources, std::string(entry.folder) + '/') +
         ",\n   \"tile_sizes\": " + to_list(stage.tile_sizes, number) +
         ", \"compute_capability\": " + number(stage.requirements.compute_capability) +
         ", \"multiple_of\": " + to_list(std::array{whole.m, whole.n, whole.k}, number) +
         ", \"not_on_simt\": " + quoted(stage.requirements.not_on_simt) +
         ",\n   \"splits\": " + flag(stage.math == tilegate::Math::fp32_split) +
         ", \"yardstick\": " + flag(entry.yardstick) + ", \"external\": " + flag(entry.external) +
         ", \"variants\": " + to_list(entry.variants, name) + '}';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tilegate_write_catalogue FILE\n";
    return 2;
  }
  std::string list;
  for (const CatalogueEntry& entry : tilegate::catalogue()) {
    list += (list.empty() ? "  " : ",\n  ") + to_json(entry);
  }
  std::ofstream file(argv[1]);
  file << "{\"device\": \"" TILEGATE_DEVICE_NAME "\", \"stages\": [\n" << list << "]}\n";
  if (!file.flush()) {
    std::cerr << "tilegate_write_catalogue: cannot write " << argv[1] << '\n';
    return 1;
  }
  return 0;
}
