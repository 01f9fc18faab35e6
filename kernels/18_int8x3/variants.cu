// Int8x3 with more products than the device would choose, or in FP32, and with FP32 in launches of
// its own: for comparison, and for tests.
#include "panels.hpp"

namespace tilegate::int8x3 {

constexpr Stage kEight =
    make_stage<Path::kEight>("Int8x3.eight", "at least eight products of digits");
constexpr Stage kTen = make_stage<Path::kTen>("Int8x3.ten", "at least ten products of digits");
constexpr Stage kPlain = make_stage<Path::kFp32>("Int8x3.fp32", "always the product in FP32");
constexpr Stage kPlainApart = make_stage<Path::kFp32, true>(
    "Int8x3.fp32_apart", "always the product in FP32, in launches of its own");
constexpr Stage kApart =
    make_stage<Path::kSix, true>("Int8x3.apart", "FP32 in launches of its own, for small C too");
constexpr Stage kOutliers =
    make_stage<Path::kSix, false, true>("Int8x3.outliers", "outliers apart, for small C too");
constexpr const Stage* kVariants[] = {&kEight, &kTen, &kPlain, &kPlainApart, &kApart, &kOutliers};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::int8x3
