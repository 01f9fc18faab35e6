// Included before a source in which mutants stand as switches (rules.txt). A constant expression
// has the original, so that such mutants are compiled by themselves.
#pragma once

// An index outside of an array ends the program, as under the address sanitizer.
#define _GLIBCXX_ASSERTIONS

#include <functional>
#include <type_traits>

#include "../counters/removals.hpp"

namespace tilegate_mutants {

// 1 where mutant `number` is planted, else 0.
constexpr int planted(unsigned number) {
  return !std::is_constant_evaluated() && tilegate_removes(number) ? 1 : 0;
}

// `a < Less{n} > b` is `a < b`, and `a <= b` where mutant n is planted. Precedence is that of `<`;
// the same holds for the others. `a == Equal{n} == b`.
template <typename Original, typename Mutant>
struct Comparison {
  unsigned number;
};
using Less = Comparison<std::less<>, std::less_equal<>>;
using LessEqual = Comparison<std::less_equal<>, std::less<>>;
using Greater = Comparison<std::greater<>, std::greater_equal<>>;
using GreaterEqual = Comparison<std::greater_equal<>, std::greater<>>;
using Equal = Comparison<std::equal_to<>, std::not_equal_to<>>;
using NotEqual = Comparison<std::not_equal_to<>, std::equal_to<>>;

template <typename A, typename Original, typename Mutant>
struct Left {
  const A& a;
  unsigned number;

  template <typename B>
  constexpr bool with(const B& b) const {
    return planted(number) ? Mutant{}(a, b) : Original{}(a, b);
  }
  template <typename B>
  constexpr bool operator>(const B& b) const {
    return with(b);
  }
  template <typename B>
  constexpr bool operator==(const B& b) const {
    return with(b);
  }
};

template <typename A, typename Original, typename Mutant>
constexpr Left<A, Original, Mutant> operator<(const A& a, Comparison<Original, Mutant> comparison) {
  return {a, comparison.number};
}
template <typename A, typename Original, typename Mutant>
constexpr Left<A, Original, Mutant> operator<=(const A& a,
                                               Comparison<Original, Mutant> comparison) {
  return {a, comparison.number};
}
template <typename A, typename Original, typename Mutant>
constexpr Left<A, Original, Mutant> operator>(const A& a, Comparison<Original, Mutant> comparison) {
  return {a, comparison.number};
}
template <typename A, typename Original, typename Mutant>
constexpr Left<A, Original, Mutant> operator>=(const A& a,
                                               Comparison<Original, Mutant> comparison) {
  return {a, comparison.number};
}
template <typename A, typename Original, typename Mutant>
constexpr Left<A, Original, Mutant> operator==(const A& a,
                                               Comparison<Original, Mutant> comparison) {
  return {a, comparison.number};
}
template <typename A, typename Original, typename Mutant>
constexpr Left<A, Original, Mutant> operator!=(const A& a,
                                               Comparison<Original, Mutant> comparison) {
  return {a, comparison.number};
}

}  // namespace tilegate_mutants
