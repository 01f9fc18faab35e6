// Draws small problems and asks a stage for its plans; nothing is run.
#pragma once

#include <functional>

#include <tilegate/stage.hpp>

#include "verifier/case.hpp"

namespace tilegate::reach {

using verifier::Case;

// A call that a plan was made for. `problem`: normalised, as `choice` is of.
using Visit = std::function<void(const Case& call, const Problem& problem, const Choice& choice)>;

// Every configuration of the stage's own for each of `draws` problems, each with every decision
// that the device may come to. The draws are near the edges of the tiles that the plans so far had.
void search(const Stage& stage, int draws, const Visit& visit);

// The same for one problem, unless it takes the executor long.
void visit_decided(const Stage& stage, const Case& call, const Visit& visit);

// Calls visit(choice) for each choice of the stage's own for the case; `all`: not only the one that
// the stage takes.
void for_each_choice(const Stage& stage, const Case& call, bool all, const Visit& visit);

}  // namespace tilegate::reach
