// What a GPU gave for random cases, this build's device gives, too, bit for bit: the executor for
// some of them, a GPU for all. measured/floats.txt, transposed.txt and multicasts.txt are what
// `async_cases 0 10000 100` printed; copies.txt says what it holds.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cases.hpp"
#include "simt/async_test.hpp"
#include "simt/device_array.hpp"
#include "thorough.hpp"

namespace tilegate::async_model {
namespace {

constexpr std::size_t kGroup = 100;

struct Line {
  std::string name;
  std::uint32_t first = 0;
  std::vector<std::uint32_t> groups;
};

std::vector<Line> lines_of(const char* file) {
  std::ifstream in(std::string(TILEGATE_SOURCE_DIR "/tests/async_model/measured/") + file);
  std::vector<Line> lines;
  for (std::string text; std::getline(in, text);) {
    if (text.starts_with('#')) continue;
    std::istringstream words(text);
    Line line;
    words >> line.name >> line.first;
    for (std::string word; words >> word;) {
      line.groups.push_back(static_cast<std::uint32_t>(std::stoul(word, nullptr, 16)));
    }
    lines.push_back(line);
  }
  return lines;
}

const Kind& kind_of(const Line& line) {
  const auto kind = std::find_if(kinds().begin(), kinds().end(),
                                 [&](const Kind& k) { return line.name == k.name; });
  if (kind == kinds().end()) throw std::runtime_error("there is no kind of cases " + line.name);
  return *kind;
}

class Measured : public Async {
 protected:
  // Of each kind as many groups as `most`; returns how many cases were compared.
  static std::size_t expect_as_measured(const char* file, std::size_t most) {
    std::size_t cases = 0;
    for (const Line& line : lines_of(file)) {
      const std::size_t before = line.first / kGroup;
      const std::size_t count = std::min(line.groups.size(), most - std::min(most, before));
      if (count == 0) continue;
      std::vector<std::uint32_t> checksums(count * kGroup);
      EXPECT_TRUE(is_ok(kind_of(line).run(line.first, &checksums)));
      EXPECT_EQ(of_groups(checksums, kGroup),
                std::vector<std::uint32_t>(
                    line.groups.begin(), line.groups.begin() + static_cast<std::ptrdiff_t>(count)))
          << line.name << " from case " << line.first << " on";
      cases += checksums.size();
    }
    return cases;
  }
};

// A line has the sum of kSummed checksums, each times its place.
TEST_F(Measured, CopiesMatchAnH200) {
  constexpr std::uint32_t kSummed = 80;
  const bool all = device::current().is_cuda || is_thorough();
  const std::size_t step = all ? 1 : 5;
  const std::vector<Line> lines = lines_of("copies.txt");
  EXPECT_EQ(lines.size() * kSummed, 5 * 10000U);
  for (std::size_t i = 0; i < lines.size(); i += step) {
    const Line& line = lines[i];
    std::vector<std::uint32_t> checksums(kSummed);
    EXPECT_TRUE(is_ok(kind_of(line).run(line.first, &checksums)));
    std::uint32_t sum = 0, place = 0;
    for (const std::uint32_t checksum : checksums) sum += ++place * checksum;
    EXPECT_EQ(sum, line.groups.at(0)) << line.name << " from case " << line.first << " on";
  }
}

TEST_F(Measured, MulticastsMatchAnH200) {
  const bool is_cuda = device::current().is_cuda;
  EXPECT_EQ(expect_as_measured("multicasts.txt", is_cuda ? 100 : 1), is_cuda ? 10000U : 100U);
}

TEST_F(Measured, FloatMmaMatchesAnH200) {
  const bool is_cuda = device::current().is_cuda;
  EXPECT_EQ(expect_as_measured("floats.txt", is_cuda ? 100 : 1), is_cuda ? 60000U : 600U);
}

TEST_F(Measured, TransposedFloatMmaMatchesAnH200) {
  const bool is_cuda = device::current().is_cuda;
  EXPECT_EQ(expect_as_measured("transposed.txt", is_cuda ? 100 : 1), is_cuda ? 40000U : 400U);
}

}  // namespace
}  // namespace tilegate::async_model
