// The memory of a case as it is before the launch.
#pragma once

#include <tilegate/stage.hpp>

#include "verifier/case.hpp"
#include "verifier/guarded_matrix.hpp"

namespace tilegate::verifier {

// Filled as the case says; NaN in C at beta 0, and in the padding of A and B.
GuardedMatrix make_operand(const Case& test_case, Operand operand);

// Aligned as the contract promises and no better. It holds what an earlier call may have left: NaN,
// raised flags, large numbers, by the name of the case.
GuardedMatrix make_workspace(const Case& test_case, const Plan& plan);

}  // namespace tilegate::verifier
