// Int8x3 with more products than the device would choose, or in FP32, for comparison.
#include "panels.hpp"

namespace tilegate::int8x3 {

constexpr Stage kEight =
    make_stage<Path::kEight>("Int8x3.eight", "at least eight products of digits");
constexpr Stage kTen = make_stage<Path::kTen>("Int8x3.ten", "at least ten products of digits");
constexpr Stage kPlain = make_stage<Path::kFp32>("Int8x3.fp32", "always the product in FP32");
constexpr Stage kApart = make_stage<Path::kFp32, true>(
    "Int8x3.fp32_apart", "always the product in FP32, in launches of its own");
constexpr const Stage* kVariants[] = {&kEight, &kTen, &kPlain, &kApart};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::int8x3
