// async_cases [FIRST COUNT [GROUP]]: runs random cases of asynchronous hardware on this build's
// device and prints a checksum of each, or of each GROUP of them, so that two devices can be
// compared with diff.
#include <cstdio>
#include <cstdlib>

#include "cases.hpp"

namespace {

using tilegate::Status;
namespace model = tilegate::async_model;

bool print(const model::Kind& kind, std::uint32_t first, std::size_t count, std::size_t group) {
  constexpr std::size_t kPerLine = 8;
  std::vector<std::uint32_t> checksums(count);
  if (const Status status = kind.run(first, &checksums); !status.ok()) {
    std::fprintf(stderr, "async_cases: %s: %s\n", kind.name, status.message().c_str());
    return false;
  }
  const std::vector<std::uint32_t> groups = model::of_groups(checksums, group);
  for (std::size_t i = 0; i < groups.size(); i += kPerLine) {
    std::printf("%s %zu", kind.name, first + i * group);
    for (std::size_t j = i; j < groups.size() && j < i + kPerLine; ++j) {
      std::printf(" %08x", groups[j]);
    }
    std::printf("\n");
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 1 && argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: async_cases [FIRST COUNT [GROUP]]   by default 0 10000 1\n");
    return 2;
  }
  const auto number = [&](int at, unsigned long without) {
    return argc > at ? std::strtoul(argv[at], nullptr, 10) : without;
  };
  const std::size_t group = number(3, 1);
  if (group == 0) {
    std::fprintf(stderr, "async_cases: a GROUP has at least 1 case\n");
    return 2;
  }
  bool all_ran = true;
  for (const model::Kind& kind : model::kinds()) {
    all_ran =
        print(kind, static_cast<std::uint32_t>(number(1, 0)), number(2, 10000), group) && all_ran;
  }
  return all_ran ? 0 : 1;
}
