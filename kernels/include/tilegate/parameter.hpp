// The kernels of a plan and the discrete parameters on which they depend, as the plan states them:
// the tests cover every boundary of each (tests/reach).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/problem.hpp>

namespace tilegate {

struct Parameter {
  enum class Kind : std::uint8_t {
    kRows,     // M in tiles of `unit`
    kColumns,  // N in tiles of `unit`
    kDepth,    // K in tiles of `unit`
    kTiles,    // `value` in groups of `unit`
    kRing,     // `value` trips through `unit` stages
    kCount,    // `value`, of which `unit` is the most; 0: there is no limit
    kEach,     // each `value` that plans have is a boundary
  };
  Kind kind;
  // "part: what": of a part that kernels of the rung have in common, however they differ elsewhere.
  std::string name;
  std::int64_t value = 0, unit = 0;
};

namespace parameter {

using Kind = Parameter::Kind;

inline Parameter rows(std::int64_t unit) { return {Kind::kRows, "rows", 0, unit}; }
inline Parameter columns(std::int64_t unit) { return {Kind::kColumns, "columns", 0, unit}; }
inline Parameter depth(std::int64_t unit) { return {Kind::kDepth, "k", 0, unit}; }
inline Parameter tiles(std::string name, std::int64_t value, std::int64_t unit) {
  return {Kind::kTiles, std::move(name), value, unit};
}
inline Parameter ring(std::string name, std::int64_t trips, std::int64_t stages) {
  return {Kind::kRing, std::move(name), trips, stages};
}
inline Parameter count(std::string name, std::int64_t value, std::int64_t most = 0) {
  return {Kind::kCount, std::move(name), value, most};
}
inline Parameter each(std::string name, std::int64_t value) {
  return {Kind::kEach, std::move(name), value, 0};
}

}  // namespace parameter

struct PlannedKernel {
  std::string name;  // with each path that the kernel takes for this problem
  std::vector<Parameter> parameters = {};
  // Runs only where the device decides so: see Choice::decides_on_device. 0: always.
  int decision = 0;
};

// "NT": how op(A) and op(B) are stored, for names of kernels.
inline std::string form_name(const Problem& problem) {
  return {problem.op_a == Op::kT ? 'T' : 'N', problem.op_b == Op::kT ? 'T' : 'N'};
}

}  // namespace tilegate
