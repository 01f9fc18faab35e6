// Int8x3 with more products than the device would choose, or in FP32, for comparison.
#include "panels.hpp"

namespace tilegate::int8x3 {

constexpr Stage kEight =
    make_stage<Path::kEight>("Int8x3.eight", "at least eight products of digits");
constexpr Stage kTen = make_stage<Path::kTen>("Int8x3.ten", "at least ten products of digits");
constexpr Stage kPlain = make_stage<Path::kFp32>("Int8x3.fp32", "always the product in FP32");
constexpr const Stage* kVariants[] = {&kEight, &kTen, &kPlain};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::int8x3
