// async_cases [FIRST COUNT]: runs random cases of asynchronous hardware on this build's device and
// prints a checksum of each, so that two devices can be compared with diff.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cases.hpp"

namespace {

using tilegate::Status;

using Run = Status (*)(std::uint32_t first, std::vector<std::uint32_t>* checksums);

bool print(const char* name, Run run, std::uint32_t first, std::size_t count) {
  constexpr std::size_t kPerLine = 8;
  std::vector<std::uint32_t> checksums(count);
  if (const Status status = run(first, &checksums); !status.ok()) {
    std::fprintf(stderr, "async_cases: %s\n", status.message().c_str());
    return false;
  }
  for (std::size_t i = 0; i < count; i += kPerLine) {
    std::printf("%s %zu", name, first + i);
    for (std::size_t j = i; j < count && j < i + kPerLine; ++j) std::printf(" %08x", checksums[j]);
    std::printf("\n");
  }
  return true;
}

template <tilegate::async_model::FloatType kType>
bool print_floats(const std::string& name, std::uint32_t first, std::size_t count) {
  namespace model = tilegate::async_model;
  return print((name + "_n64").c_str(), model::run_float_multiplications<kType, 64>, first,
               count) &&
         print((name + "_n128").c_str(), model::run_float_multiplications<kType, 128>, first,
               count);
}

}  // namespace

int main(int argc, char** argv) {
  namespace model = tilegate::async_model;
  if (argc != 1 && argc != 3) {
    std::fprintf(stderr, "usage: async_cases [FIRST COUNT]   by default 0 10000\n");
    return 2;
  }
  const auto first = static_cast<std::uint32_t>(argc == 3 ? std::strtoul(argv[1], nullptr, 10) : 0);
  const std::size_t count = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 10000;
  return print("copies", model::run_copies, first, count) &&
                 print("s8_n64", model::run_multiplications<64>, first, count) &&
                 print("s8_n128", model::run_multiplications<128>, first, count) &&
                 print_floats<model::FloatType::kF16>("f16", first, count) &&
                 print_floats<model::FloatType::kBf16>("bf16", first, count) &&
                 print_floats<model::FloatType::kTf32>("tf32", first, count) &&
                 print("boxes", model::run_boxes, first, count)
             ? 0
             : 1;
}
