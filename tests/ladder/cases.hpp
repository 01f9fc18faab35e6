// The tables of cases that every stage is tested on. They depend on the stage and on the device
// that this build is for, never on the machine: listing the tests touches no device.
#pragma once

#include <cstdint>
#include <vector>

#include <tilegate/stage.hpp>

#include "verifier/case.hpp"

namespace tilegate::ladder {

using verifier::Case;

// Shapes: 0 and 1 in every place, 2 … 17, every tile size and its neighbours, primes, skinny ones;
// alpha, beta, padding and offsets take turns. Each with integer and with uniform inputs, on the
// executor large ones with one of them. A variant has no small shapes.
std::vector<Case> integer_shape_cases(const Stage& stage);
std::vector<Case> uniform_shape_cases(const Stage& stage);

// Base offsets of 0, 4, 8 and 12 bytes in all combinations, paddings, operands past 2^31 elements,
// and 2 100 000 rows or columns: more than 65535 blocks along one side. Batches whose products
// overlap, lie far apart, or are more than 65535.
std::vector<Case> memory_cases(const Stage& stage);

// The executor runs a sample of the blocks of such a case.
bool is_long(const Case& test_case);

// beta == 0, alpha == 0, K == 0, empty C, and NaN and Inf in every operand and factor.
std::vector<Case> semantics_cases(const Stage& stage);

// For every configuration of a stage, in all forms: several tiles, whole vectors and none; rows
// that end within a vector; one k past a multiple; K in many parts; more rows of tiles than a
// group.
std::vector<Case> configuration_cases(const Stage& stage);

// Found by search (tests/reach): what reaches the boundaries of plans that no other case reaches.
// Cases that take the executor long only if TILEGATE_THOROUGH is set.
std::vector<Case> reach_cases(const Stage& stage);

// The same for the counted kernels.
std::vector<Case> watched_reach_cases(const Stage& stage);

// All of them with the mark: v for the kernels, w for the counted ones.
std::vector<Case> marked_reach_cases(const Stage& stage, char mark);

// Operands with all 24 bits of their significands, in every form; alpha and beta are exact.
std::vector<Case> significand_cases(const Stage& stage);

// To find the order of summation: K of several k tiles, small and larger C, every form; alpha 2,
// beta 1.
std::vector<Case> summation_cases(const Stage& stage);

// Few, but large enough for several tiles.
std::vector<Case> repeat_cases(const Stage& stage);

// Shapes drawn log-uniformly, everything else uniformly, from `sweep_seed`.
std::vector<Case> random_cases(const Stage& stage);

// TILEGATE_SWEEP_SEED in the environment, or a fixed number.
std::uint64_t sweep_seed();

}  // namespace tilegate::ladder
