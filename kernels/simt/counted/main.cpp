// tilegate_count: counts cases of the ladder and prints one JSON object a line group.
#include <cstdio>
#include <string>
#include <string_view>

#include <tilegate/sgemm.hpp>

#include "count.hpp"

namespace {

constexpr const char* kUsage =
    "usage: tilegate_count --list | CASE...\n"
    "A CASE is <Rung>/<M>x<N>x<K>[/beta<value>]; prints a JSON list, one element a case.\n"
    "Exit code: 0, also for cases with a hazard (their element has an `error`); 2 for usage.\n";

}  // namespace

int main(int argc, char** argv) {
  using namespace tilegate::simt::counted;
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const tilegate::Stage* stage : tilegate::stages()) {
      if (stage->requirements.not_on_simt.empty()) {
        std::printf("%s\n", std::string(stage->name).c_str());
      }
    }
    return 0;
  }
  if (argc < 2) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  std::string list = "[";
  for (int i = 1; i < argc; ++i) {
    const auto parsed = Case::parse(argv[i]);
    const tilegate::Stage* stage = parsed ? tilegate::find_stage(parsed->stage) : nullptr;
    if (stage == nullptr) {
      std::fprintf(stderr, "tilegate_count: error: %s: %s\n%s", argv[i],
                   parsed ? "no such rung" : "not a case", kUsage);
      return 2;
    }
    if (i > 1) list += ",\n";
    list += to_json(argv[i], count(*stage, parsed->shape, parsed->beta));
  }
  std::printf("%s]\n", list.c_str());
  return 0;
}
