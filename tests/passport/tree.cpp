// FPRev, as in tests/verifier/summation.hpp: if product i is M, product j is -M and all others are
// 1, the result counts the products outside the smallest subtree that contains both. The sizes of
// the subtrees around one product give its path to the root; the subtrees beside the path follow
// recursively.
#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"

namespace tilegate::passport {
namespace {

constexpr Shape kShape = {4, 4, 256};
constexpr float kMask = 0x1p40F;  // absorbs ones in FP32, not in FP64

using Products = std::vector<std::int64_t>;

struct Tree {
  int depth = 0;  // additions on the longest way
  std::string text = "1";
};

class Summation {
 public:
  explicit Summation(const Stage& stage) : stage_(stage) {
    std::fill(inputs_.a.begin(), inputs_.a.end(), 1.0F);
    std::fill(inputs_.b.begin(), inputs_.b.end(), 1.0F);
  }

  Tree tree_of(const Products& products);

 private:
  std::int64_t subtree(std::int64_t i, std::int64_t j);

  const Stage& stage_;
  Inputs inputs_ = inputs_for(kShape);
};

// Products in the smallest subtree that holds i and j, of element (0, 0).
std::int64_t Summation::subtree(std::int64_t i, std::int64_t j) {
  float* row = inputs_.a.data();
  row[i] = kMask;
  row[j] = -kMask;
  const float counted = call(stage_, Problem::dense(kShape), inputs_).front();
  row[i] = row[j] = 1.0F;
  const auto outside = static_cast<std::int64_t>(counted);
  if (counted < 0 || static_cast<float>(outside) != counted || outside > kShape.k - 2) {
    throw std::runtime_error("the result is not a sum of the products");
  }
  return kShape.k - outside;
}

std::string chain_of(std::int64_t products) {
  return products == 1 ? "1" : "chain of " + std::to_string(products);
}

// "3 × chain of 8 + chain of 4": equal neighbours are counted.
std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t end = i;
    while (end < parts.size() && parts[end] == parts[i]) ++end;
    const bool is_sum = parts[i].find_first_of("+×") != std::string::npos;
    text += text.empty() ? "" : " + ";
    if (end - i > 1) text += std::to_string(end - i) + " × ";
    text += is_sum ? '(' + parts[i] + ')' : parts[i];
    i = end;
  }
  return text;
}

Tree Summation::tree_of(const Products& products) {
  if (products.size() == 1) return {};
  std::map<std::int64_t, Products>
      joins;  // by the size of the subtree in which they meet the first
  for (std::size_t j = 1; j < products.size(); ++j) {
    joins[subtree(products[0], products[j])].push_back(products[j]);
  }
  Tree tree;
  std::int64_t chain = 1, size = 1;  // products added singly so far; products in all
  std::vector<std::string> parts;
  for (const auto& [together, others] : joins) {
    size += static_cast<std::int64_t>(others.size());
    if (size != together) return {tree.depth + 1, "more than two at a time"};
    const Tree other = tree_of(others);
    tree.depth = std::max(tree.depth, other.depth) + 1;
    if (others.size() == 1 && parts.empty()) {
      ++chain;
    } else {
      if (parts.empty()) parts.push_back(chain_of(chain));
      parts.push_back(other.text);
    }
  }
  tree.text = parts.empty() ? chain_of(chain) : joined(parts);
  return tree;
}

}  // namespace

std::string tree_json(const Stage& stage) {
  Products all;
  for (std::int64_t k = 0; k < kShape.k; ++k) all.push_back(k);
  const Plan plan = stage.plan(Problem::dense(kShape));
  Object object;
  object.add_text("problem", to_string(Problem::dense(kShape)));
  object.add_text("configuration", plan.configuration());
  object.add("declared", std::to_string(plan.rounding_chain()));
  const Tree tree = Summation(stage).tree_of(all);
  return object.add("additions", std::to_string(tree.depth)).add_text("tree", tree.text).json();
}

}  // namespace tilegate::passport
