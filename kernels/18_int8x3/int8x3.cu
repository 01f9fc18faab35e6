// The stage Int8x3; the plan is in plan.hpp and panels.hpp.
#include "panels.hpp"

namespace tilegate::int8x3 {

extern const Stage stage;
const Stage stage = make_stage<Path::kSix>(
    "Int8x3", "exact products of 8-bit digits on tensor cores, as accurate as FP32");

}  // namespace tilegate::int8x3
