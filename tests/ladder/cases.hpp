// The tables of cases for every stage. They depend on the stage and on the build's device, not on
// the machine: listing the tests uses no device.
#pragma once

#include <cstdint>
#include <vector>

#include <tilegate/stage.hpp>

#include "verifier/case.hpp"

namespace tilegate::ladder {

using verifier::Case;

// Shapes: 0 and 1 for every extent, 2 … 17, every tile size and its neighbours, primes, skinny
// ones; alpha, beta, padding and offsets take turns. Each shape has integer and uniform inputs; on
// the executor a large shape has only one of them. Variants have no small shapes.
std::vector<Case> integer_shape_cases(const Stage& stage);
std::vector<Case> uniform_shape_cases(const Stage& stage);

// Base offsets of 0, 4, 8 and 12 bytes in all combinations, paddings, operands past 2^31 elements,
// and 2 100 000 rows or columns: more than 65535 blocks along one side. Batches whose matrices
// overlap or lie far apart, and batches of more than 65535.
std::vector<Case> memory_cases(const Stage& stage);

// Whether the executor runs only a sample of the blocks of the case.
bool is_long(const Case& test_case);

// beta == 0, alpha == 0, K == 0, empty C, and NaN and Inf in every operand and factor.
std::vector<Case> semantics_cases(const Stage& stage);

// For every configuration of a stage, in all forms: several tiles, with and without vector
// accesses; rows that end within a vector; one k past a multiple of the k tile; K in many parts;
// more rows of tiles than the scheduler has in a group.
std::vector<Case> configuration_cases(const Stage& stage);

// Cases that a search has found (tests/reach): they reach boundaries of plans that no other case
// reaches. Cases that are slow on the executor only if TILEGATE_THOROUGH is set.
std::vector<Case> reach_cases(const Stage& stage);

// The same for the instrumented kernels.
std::vector<Case> watched_reach_cases(const Stage& stage);

// All cases with the mark: v for the kernels, w for the instrumented kernels.
std::vector<Case> marked_reach_cases(const Stage& stage, char mark);

// Operands with all 24 bits of their significands, in every form; alpha and beta are exact.
std::vector<Case> significand_cases(const Stage& stage);

// For the order of summation: K of several k tiles, small and larger C, every form; alpha 2,
// beta 1.
std::vector<Case> summation_cases(const Stage& stage);

// A few problems of several tiles.
std::vector<Case> repeat_cases(const Stage& stage);

// Shapes drawn log-uniformly, everything else uniformly, from `sweep_seed`.
std::vector<Case> random_cases(const Stage& stage);

// The environment's TILEGATE_SWEEP_SEED, or a fixed number.
std::uint64_t sweep_seed();

}  // namespace tilegate::ladder
