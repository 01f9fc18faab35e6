// Checks the result in every copy of C. A wrong element throws Failure.
#pragma once

#include <cstdint>

#include <tilegate/stage.hpp>

#include "memory.hpp"
#include "references.hpp"

namespace tilegate::bench {

// The problem and its inputs.
struct Workload {
  Problem problem;
  Plan plan;
};

class Checks {
 public:
  // `seed`: of all inputs.
  explicit Checks(std::uint64_t seed);

  // Launches once on each copy of the operands, which hold `inputs`, and checks the results.
  void launch_and_verify(const Workload& work, const Memory& memory, verifier::Inputs inputs);

  // Checks the results of earlier launches on operands that hold `inputs`.
  void verify(const Workload& work, const Memory& memory, verifier::Inputs inputs);

  // Frees the cached references.
  void forget() { references_.clear(); }

 private:
  std::uint64_t seed_;
  References references_;
};

}  // namespace tilegate::bench
