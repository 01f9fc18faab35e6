// What is known of each boundary of a stage, the reasons why some are out of reach, and the
// committed files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tilegate/stage.hpp>

#include "reach/boundaries.hpp"
#include "reach/search.hpp"

namespace tilegate::reach {

struct Known {
  bool by_value = false,
       watched = false;     // some case reaches it, run as it is, or under the detector
  bool found = false;       // by the search
  std::string reason = {};  // why no case can
};
using Boundaries = std::map<Boundary, Known>;

// The rungs of this repository.
std::vector<const Stage*> rungs();

// What the suites reach, and the search with so many draws.
Boundaries boundaries_of(const Stage& stage, int draws);

// What tests/reach/unreachable.txt says of the boundary, or nothing.
std::string reason_of(const Stage& stage, const Boundary& boundary);

// Lines for tests/reach/cases.txt: fewest cases, of the least cost, that reach what the suites
// without them do not, on values and under the detector.
std::vector<std::string> find_cases(const Stage& stage, int draws);

// Its rows of the table in tests/reach/README.md.
std::vector<std::string> rows_of(const Stage& stage, const Boundaries& known);

}  // namespace tilegate::reach
