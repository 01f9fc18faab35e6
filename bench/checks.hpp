// Whether C holds the right result, in every copy: an element that is wrong throws Failure.
#pragma once

#include <cstdint>

#include <tilegate/stage.hpp>

#include "memory.hpp"
#include "references.hpp"

namespace tilegate::bench {

// What is multiplied, and how.
struct Workload {
  Problem problem;
  Plan plan;
};

class Checks {
 public:
  // `seed`: of all inputs.
  explicit Checks(std::uint64_t seed);

  // What one launch on each copy of the operands, which hold `inputs`, comes to.
  void launch_and_verify(const Workload& work, const Memory& memory, verifier::Inputs inputs);

  // What the launches before have come to, with operands that hold `inputs`.
  void verify(const Workload& work, const Memory& memory, verifier::Inputs inputs);

  // Frees the references that it keeps.
  void forget() { references_.clear(); }

 private:
  std::uint64_t seed_;
  References references_;
};

}  // namespace tilegate::bench
