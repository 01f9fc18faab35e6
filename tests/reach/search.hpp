// Draws small problems and asks a stage for its plans; nothing is run.
#pragma once

#include <functional>

#include <tilegate/stage.hpp>

#include "verifier/case.hpp"

namespace tilegate::reach {

using verifier::Case;

// A call with a plan. `problem`: the normalised problem that `choice` was made for.
using Visit = std::function<void(const Case& call, const Problem& problem, const Choice& choice)>;

// Visits every configuration of the stage for each of `draws` problems, with every decision that
// the device can make. Problems are drawn near the edges of the tiles of earlier plans.
void search(const Stage& stage, int draws, const Visit& visit);

// The same for one problem, unless it is slow on the executor.
void visit_decided(const Stage& stage, const Case& call, const Visit& visit);

// Calls visit(choice) for each choice of the stage's own for the case; `all`: not only the one that
// the stage takes.
void for_each_choice(const Stage& stage, const Case& call, bool all, const Visit& visit);

}  // namespace tilegate::reach
