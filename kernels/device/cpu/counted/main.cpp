// tilegate_count: counts cases of the ladder, or the cost of lane patterns.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include <tilegate/catalogue.hpp>

#include "count.hpp"
#include "transfer_sectors.hpp"

namespace {

constexpr const char* kUsage =
    "usage: tilegate_count --list | --patterns | CASE...\n"
    "A CASE is a benchmark's name, such as Warptile/256x256x256/beta0.5. Prints a JSON list with "
    "one element per case.\n"
    "--patterns reads accesses, one per line, and prints units and excess of each:\n"
    "  shared_load|shared_store|global_load|global_store BYTES MASK(hex) OFFSET*32\n"
    "  shared_copy|copy_load BYTES MASK(hex) OFFSET*32 SOURCE*32, a source of -1: zeros\n"
    "  bulk BYTES SOURCE OFFSET\n"
    "  box ELEMENT_BYTES DIMENSIONS SIZE*3 STRIDE*2 BOX*3 SWIZZLE SOURCE PLACE*3\n"
    "Exit code: 0, also for cases with a hazard (their element has an `error`); 2 for usage.\n";

// Redirects the output of kernels to stderr, so that stdout has only this program's results.
std::FILE* take_stdout() {
  std::FILE* const results = fdopen(dup(STDOUT_FILENO), "w");
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return results;
}

using tilegate::simt::Transfer;

// An aligned address with room below it, for boxes that begin before the tensor.
std::byte* memory_at(std::size_t offset) {
  constexpr std::uintptr_t kBegin = 1U << 16;
  return reinterpret_cast<std::byte*>(kBegin + offset);
}

Transfer read_bulk(std::istream& in) {
  unsigned bytes = 0;
  std::size_t source = 0, offset = 0;
  in >> bytes >> source >> offset;
  return tilegate::simt::contiguous(offset, memory_at(source), bytes);
}

Transfer read_box(std::istream& in) {
  tilegate::device::TensorLayout tensor;
  tilegate::simt::Coordinates place{};
  unsigned swizzle = 0;
  std::size_t source = 0;
  in >> tensor.element_bytes >> tensor.dimensions;
  for (auto& size : tensor.size) in >> size;
  in >> tensor.stride_bytes[1] >> tensor.stride_bytes[2];
  for (auto& size : tensor.box) in >> size;
  in >> swizzle >> source;
  for (int& coordinate : place) in >> coordinate;
  tensor.swizzle = static_cast<tilegate::device::Swizzle>(swizzle);
  tensor.data = memory_at(source);
  return in ? tilegate::simt::box_of(tensor, place, 0) : Transfer{};
}

using namespace tilegate::simt::counted;

// The global load of a copy to shared memory.
WarpAccess as_load(WarpAccess copy) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (copy.other_end[lane] == kNoOtherEnd) copy.mask &= ~(1U << lane);
  }
  std::swap(copy.address, copy.other_end);
  return copy;
}

Cost read_warp_access(const std::string& kind, std::istream& in) {
  WarpAccess access;
  access.other_end.fill(kNoOtherEnd);
  in >> access.bytes >> std::hex >> access.mask >> std::dec;
  for (std::uint64_t& address : access.address) in >> address;
  if (kind == "shared_copy" || kind == "copy_load") {
    for (std::uint64_t& end : access.other_end) {
      std::int64_t source = 0;
      in >> source;
      if (source >= 0) end = static_cast<std::uint64_t>(source);
    }
  }
  if (kind == "shared_copy") return copy_wavefronts(access);
  if (kind == "copy_load") return sectors(as_load(access));
  return kind.starts_with("shared") ? wavefronts(access, kind == "shared_store") : sectors(access);
}

int cost_of_patterns() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string kind;
    in >> kind;
    const Cost cost = kind == "bulk"  ? transfer_sectors(read_bulk(in), false)
                      : kind == "box" ? transfer_sectors(read_box(in), false)
                                      : read_warp_access(kind, in);
    if (!in) {
      std::fprintf(stderr, "tilegate_count: error: not a pattern: %s\n", line.c_str());
      return 2;
    }
    std::printf("%u %u\n", cost.units, cost.units - cost.ideal);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const tilegate::CatalogueEntry& entry : tilegate::catalogue()) {
      if (entry.stage->requirements.not_on_simt.empty()) {
        std::printf("%s\n", std::string(entry.stage->name).c_str());
      }
    }
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--patterns") return cost_of_patterns();
  const bool asks = argc == 2 && std::string_view(argv[1]) == "--help";
  if (asks || argc < 2) {
    std::fputs(kUsage, asks ? stdout : stderr);
    return asks ? 0 : 2;
  }
  std::FILE* const results = take_stdout();
  if (results == nullptr) {
    std::perror("tilegate_count: error: stdout");
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
  std::fprintf(results, "%s]\n", list.c_str());
  return std::fclose(results) == 0 ? 0 : 2;
}
