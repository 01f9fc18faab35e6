// The yardstick of --yardstick=best: for each problem the fastest of cublasSgemm and the algorithms
// of cublasLt's heuristics. One process times them all (--choose-yardstick) and writes samples.
// Another process times the choice again, so that the choice is not biased by luck.
#pragma once

#include <map>
#include <string>

#include <tilegate/stage.hpp>

namespace tilegate::bench {

constexpr int kMostAlgorithms = 24;

// A stage whose configurations are the algorithms, in the order of the heuristics and named by
// their bits; nullptr on the CPU.
const Stage* cublas_lt();

// Configurations of cublas_lt() by problem, in the format of benchmark names ("8x8x8/TN/cold");
// empty if cublasSgemm is the fastest.
using YardstickChoice = std::map<std::string, std::string>;

// Reads samples of --choose-yardstick. Throws UsageError.
YardstickChoice read_yardstick_choice(const std::string& path);

}  // namespace tilegate::bench
