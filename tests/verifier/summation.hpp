// Finds the order in which a stage adds the products of an element of C, from its results alone.
//
// Xie, Gao, Wang, Xue, "Revealing Floating-Point Accumulation Orders in Software/Hardware
// Implementations", USENIX ATC 2025 (FPRev): let product i of the sum be M, product j be -M, and
// all others 1, with M so large that M + 1 is M. Ones that are added to M or -M before the two
// cancel are lost; the result counts the others. So K minus the result is the size of the smallest
// subtree of the sum that contains both i and j. Over all j there are as many different sizes as
// there are additions between product i and the result.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <tilegate/stage.hpp>

namespace tilegate::verifier {

struct SummationDepth {
  Status status = {};  // of the calls; or names an element that is not a sum of its products
  std::int64_t additions = 0;  // the most additions between a product and its element of C
  std::string where = {};      // that product and element
};

// The depth of the products with these numbers in [0, K), over all elements of C. Each of them
// takes K - 1 calls. The problem's alpha is a power of two; C is zero.
SummationDepth find_depth(const Stage& stage, const Plan& plan,
                          std::span<const std::int64_t> products);

}  // namespace tilegate::verifier
