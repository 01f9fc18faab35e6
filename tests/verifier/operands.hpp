// The memory of a case before its launch.
#pragma once

#include <tilegate/stage.hpp>

#include "verifier/case.hpp"
#include "verifier/guarded_matrix.hpp"

namespace tilegate::verifier {

// Filled with the case's inputs; NaN in C at beta 0, and in the padding of A and B.
GuardedMatrix make_operand(const Case& test_case, Operand operand);

// Has exactly the alignment that the contract promises. Depending on the name of the case it holds
// NaN, raised flags or large numbers, as an earlier call may have left them.
GuardedMatrix make_workspace(const Case& test_case, const Plan& plan);

}  // namespace tilegate::verifier
