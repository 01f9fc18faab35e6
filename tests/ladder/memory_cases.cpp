#include <array>
#include <cstdint>
#include <vector>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"

namespace tilegate::ladder {
namespace {

constexpr std::int64_t kHalfway = std::int64_t{1} << 30;  // elements; two rows on: past 2^31
constexpr std::int64_t kPastInt = std::int64_t{1} << 31;  // elements; does not fit an int itself
#if TILEGATE_ON_SIMT
constexpr std::int64_t kLong = 70'000;  // the executor's grid has no limit to pass, and fibers cost
#else
constexpr std::int64_t kLong = 2'100'000;  // in tiles of 32: more than 65535 blocks
#endif

void add_offsets(CaseList& list) {
  std::size_t turn = 0;
  for (const int a : {0, 4, 8, 12}) {
    for (const int b : {0, 4, 8, 12}) {
      for (const int c : {0, 4, 8, 12}) {
        const Factors& f = factors(Inputs::kUniform, turn++);
        list.add({.shape = {20, 36, 12},
                  .pad = {4, 4, 4},
                  .offset = {a, b, c},
                  .alpha = f.alpha == 0.0F ? 1.0F : f.alpha,
                  .beta = f.beta});
      }
    }
  }
}

void add_paddings(CaseList& list) {
  for (const std::int64_t pad : {1, 2, 3, 4, 5, 31, 32, 33, 64, 129}) {
    for (const std::size_t operand : {0, 1, 2}) {
      Case test_case{.shape = {37, 44, 28}, .alpha = 1, .beta = 1};
      test_case.pad[operand] = pad;
      list.add(test_case);
    }
    list.add({.shape = {37, 45, 27}, .pad = {pad, pad, pad}, .alpha = -1, .beta = 0});
  }
}

// The last row of one operand past 2^31 elements, for the wide and for the narrow path.
void add_far_rows(CaseList& list) {
  for (const std::size_t operand : {0, 1, 2}) {
    Case wide{.shape = {3, 8, 4}, .alpha = 1, .beta = 1, .inputs = Inputs::kIntegers};
    if (operand == 1) wide.shape.k = 4;
    wide.pad[operand] = kHalfway + 12;
    list.add(wide);

    Case narrow{.shape = {2, 7, 2}, .alpha = 2, .beta = -1, .inputs = Inputs::kIntegers};
    narrow.pad[operand] = kPastInt + 5;
    narrow.offset[operand] = 4;
    list.add(narrow);
  }
}

}  // namespace

std::vector<Case> memory_cases(const Stage& /*stage*/) {
  CaseList list;
  add_offsets(list);
  add_paddings(list);
  add_far_rows(list);
  list.add({.shape = {kLong, 1, 2}, .pad = {0, 0, 1}, .inputs = Inputs::kIntegers});
  list.add({.shape = {1, kLong, 2}, .inputs = Inputs::kIntegers});
  return list.take();
}

}  // namespace tilegate::ladder
