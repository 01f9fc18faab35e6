// Int8x3 with more products than the device would choose, or without digits: for comparison, and
// for tests.
#include "panels.hpp"

namespace tilegate::int8x3 {

constexpr Stage kEight =
    make_stage<Path::kEight>("Int8x3.eight", "at least eight products of digits");
constexpr Stage kTen = make_stage<Path::kTen>("Int8x3.ten", "at least ten products of digits");
constexpr Stage kWithoutDigits =
    make_stage<Path::kFp64>("Int8x3.fp64", "splits the operands, and multiplies in FP64");
constexpr Stage kOutliers =
    make_stage<Path::kSix, true>("Int8x3.outliers", "outliers apart, for small C too");
constexpr const Stage* kVariants[] = {&kEight, &kTen, &kWithoutDigits, &kOutliers};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::int8x3
