// The memory of a case as it is before the launch.
#pragma once

#include <tilegate/stage.hpp>

#include "verifier/case.hpp"
#include "verifier/guarded_matrix.hpp"

namespace tilegate::verifier {

// Filled as the case says; NaN in C at beta 0, and in the padding of A and B.
GuardedMatrix make_operand(const Case& test_case, Operand operand);

// NaN; aligned as the contract promises and no better.
GuardedMatrix make_workspace(const Plan& plan);

}  // namespace tilegate::verifier
