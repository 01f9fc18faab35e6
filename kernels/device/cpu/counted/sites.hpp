// Source lines of kernels, by the site numbers that instrument.py gave them.
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
  // The sites of all instrumented code in this program.
  static const Sites& all();

  // Number of a line that the portability layer passes at run time.
  static std::uint32_t number_of(const Site& site);

  // Sites of one line, such as the iterations of an unrolled loop, have the same location.
  std::uint32_t location(std::uint32_t site) const { return modules_[site >> 16][site & 0xffff]; }
  Location at(std::uint32_t location) const;
  std::size_t size() const { return chains_.size(); }

  // "kernels/common/…/tile_load.cuh:107, called from kernels/06_vectorized/vectorized.cu:91, …"
  std::string describe(std::uint32_t site) const;

 private:
  Sites();
  static Sites& instance();

  std::vector<std::vector<std::uint32_t>> modules_;
  std::vector<std::string_view> chains_;  // per location, in the format of instrument.py
  std::deque<std::string> texts_;         // storage of the chains of run-time lines
};

}  // namespace tilegate::simt::counted
