// The yardstick of --yardstick=best: for each problem the faster of cublasSgemm and the algorithms
// that cublasLt's heuristics offer. One process times them all (--choose-yardstick) and writes its
// samples; the choice from them is timed in another, so that luck in the first does not count.
#pragma once

#include <map>
#include <string>

#include <tilegate/stage.hpp>

namespace tilegate::bench {

constexpr int kMostAlgorithms = 24;

// A stage whose configurations are the algorithms, in the order of the heuristics, each named by
// its bits; nullptr on the CPU.
const Stage* cublas_lt();

// Configurations of cublas_lt() by problem, as the names of benchmarks have it ("8x8x8/TN/cold");
// empty where cublasSgemm is the fastest.
using YardstickChoice = std::map<std::string, std::string>;

// From samples of --choose-yardstick. Throws UsageError.
YardstickChoice read_yardstick_choice(const std::string& path);

}  // namespace tilegate::bench
