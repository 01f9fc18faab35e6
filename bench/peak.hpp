#pragma once

#include <tilegate/stage.hpp>

namespace tilegate::bench {

// GFLOP/s of float32 fused multiply-adds in registers on all multiprocessors; about 40 ms. Throws
// Failure.
double measure_ffma_gflops(int multiprocessors, Stream stream);

}  // namespace tilegate::bench
