// The boundaries of a plan: of each kernel and each discrete parameter, the classes of values at
// whose edges kernels err. README.md says which.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include <tilegate/stage.hpp>

namespace tilegate::reach {

struct Boundary {
  std::string kernel;  // empty: of the stage's plans
  std::string parameter, value;

  auto operator<=>(const Boundary&) const = default;
};

// Boundaries that a call of the plan reaches. `problem`: as plans have it, normalised; `decision`:
// that the device comes to, 0 if that is not known.
std::vector<Boundary> reached(const Stage& stage, const Problem& problem, const Choice& choice,
                              int decision);

// Boundaries that the parameters of the same call have, reached or not.
std::vector<Boundary> possible(const Stage& stage, const Problem& problem, const Choice& choice,
                               int decision);

// What the device may decide on: 0 where there is nothing to decide.
std::vector<int> decisions_of(const Choice& choice);

// Multiply-adds of whole tiles: how long the executor takes, about.
double cost_of(const Problem& problem, const Choice& choice);

}  // namespace tilegate::reach
