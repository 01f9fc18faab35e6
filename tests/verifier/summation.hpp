// The order in which a stage adds up an element of C, found from outside.
//
// Xie, Gao, Wang, Xue, "Revealing Floating-Point Accumulation Orders in Software/Hardware
// Implementations", USENIX ATC 2025 (FPRev): let product i of the sum be M, product j be -M, and
// all others 1, with M so large that M + 1 is M. What is added to one of the two before they meet
// is lost; the result counts the others. So it tells the size of the smallest subtree of the sum
// that holds both. Over all j these are the subtrees around i, and there are as many sizes as
// additions on the way of product i to the result.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <tilegate/stage.hpp>

namespace tilegate::verifier {

struct SummationDepth {
  Status status = {};          // of the calls; or which element is no sum of its products
  std::int64_t additions = 0;  // most on the way of one of the products to its element of C
  std::string where = {};      // that product and element
};

// Of the products with these numbers in [0, K), for every element of C; takes a call for each pair
// of one of them and another product. The problem's alpha is a power of two; C is zero.
SummationDepth find_depth(const Stage& stage, const Plan& plan,
                          std::span<const std::int64_t> products);

}  // namespace tilegate::verifier
