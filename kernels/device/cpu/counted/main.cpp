// tilegate_count: counts cases of the ladder, or the cost of lane patterns.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include <tilegate/catalogue.hpp>

#include "count.hpp"

namespace {

constexpr const char* kUsage =
    "usage: tilegate_count --list | --patterns | CASE...\n"
    "A CASE is a benchmark's name, as Warptile/256x256x256/beta0.5; prints a JSON list, one "
    "element "
    "per case.\n"
    "--patterns reads warp accesses, one per line, and prints units and excess of each:\n"
    "  shared_load|shared_store|global_load|global_store BYTES MASK(hex) OFFSET*32\n"
    "Exit code: 0, also for cases with a hazard (their element has an `error`); 2 for usage.\n";

int cost_of_patterns() {
  using namespace tilegate::simt::counted;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string kind;
    WarpAccess access;
    in >> kind >> access.bytes >> std::hex >> access.mask >> std::dec;
    for (std::uint64_t& address : access.address) in >> address;
    if (!in) {
      std::fprintf(stderr, "tilegate_count: error: not a pattern: %s\n", line.c_str());
      return 2;
    }
    const Cost cost =
        kind.starts_with("shared") ? wavefronts(access, kind == "shared_store") : sectors(access);
    std::printf("%u %u\n", cost.units, cost.units - cost.ideal);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tilegate::simt::counted;
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const tilegate::CatalogueEntry& entry : tilegate::catalogue()) {
      if (entry.stage->requirements.not_on_simt.empty()) {
        std::printf("%s\n", std::string(entry.stage->name).c_str());
      }
    }
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--patterns") return cost_of_patterns();
  if (argc < 2) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  std::string list = "[";
  for (int i = 1; i < argc; ++i) {
    const Outcome outcome = count(std::string(argv[i]));
    if (outcome.status.code() == tilegate::Status::Code::kInvalidArgument) {
      std::fprintf(stderr, "tilegate_count: error: %s: %s\n%s", argv[i],
                   outcome.status.message().c_str(), kUsage);
      return 2;
    }
    if (i > 1) list += ",\n";
    list += to_json(argv[i], outcome);
  }
  std::printf("%s]\n", list.c_str());
  return 0;
}
