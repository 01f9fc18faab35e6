// Places in the kernels' source, as instrument.py numbered them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <tilegate/device/cpu/executor.hpp>

namespace tilegate::simt::counted {

struct Frame {
  std::string file;  // from the root of the repository
  unsigned line = 0, column = 0;
  std::string function;
};

// Innermost first: the access itself, then the calls that were inlined around it.
using Location = std::vector<Frame>;

class Sites {
 public:
  // Of all instrumented code in this program.
  static const Sites& all();

  // Of a place that only the portability layer names.
  static std::uint32_t number_of(const Site& site);

  // Copies of one place, such as the rounds of an unrolled loop, have one number here.
  std::uint32_t location(std::uint32_t site) const { return modules_[site >> 16][site & 0xffff]; }
  Location at(std::uint32_t location) const;
  std::size_t size() const { return chains_.size(); }

  // "kernels/common/…/tile_load.cuh:107, called from kernels/06_vectorized/vectorized.cu:91, …"
  std::string describe(std::uint32_t site) const;

 private:
  Sites();
  static Sites& instance();

  std::vector<std::vector<std::uint32_t>> modules_;
  std::vector<std::string_view> chains_;  // of each location, as instrument.py wrote it
  std::deque<std::string> texts_;         // of those that only the portability layer names
};

}  // namespace tilegate::simt::counted
