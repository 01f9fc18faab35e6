#include "yardstick.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "errors.hpp"

namespace tilegate::bench {
namespace {

constexpr const char* kHeader = "benchmark,place,rung_s,cublas_s\n";

YardstickChoice read(const std::string& text) {
  const std::string path = testing::TempDir() + "tilegate_yardstick.csv";
  std::ofstream(path) << text;
  return read_yardstick_choice(path);
}

// By the median of its ratios to cublasSgemm, each of which was timed beside it.
TEST(Yardstick, IsTheFastestAlgorithmOrCublasSgemm) {
  const YardstickChoice choice = read(std::string(kHeader) +
                                      "CublasLt@1_a/8x8x8/TN,0,2e-6,3e-6\n"
                                      "CublasLt@1_a/8x8x8/TN,0,2e-6,3e-6\n"
                                      "CublasLt@1_a/8x8x8/TN,1,9e-6,3e-6\n"
                                      "CublasLt@2_b/8x8x8/TN,0,2e-6,2.5e-6\n"
                                      "CublasLt@1_a/9x9x9,0,2e-6,1.9e-6\n"
                                      "CublasLt@2_b/9x9x9/cold,0,1e-6,1.9e-6\n");
  EXPECT_EQ(choice, (YardstickChoice{{"8x8x8/TN", "1_a"}, {"9x9x9", ""}, {"9x9x9/cold", "2_b"}}));
}

TEST(Yardstick, FileOfAnotherFormIsAnError) {
  for (const char* row :
       {"", "Sgemm@1_a/8x8x8,0,1e-6,1e-6\n", "CublasLt/8x8x8,0,1e-6,1e-6\n",
        "CublasLt@1_a,0,1e-6,1e-6\n", "CublasLt@1_a/8x8x8,0,1e-6\n",
        "CublasLt@1_a/8x8x8,0,1e-6,0\n", "CublasLt@1_a/8x8x8,0,1e-6s,1e-6\n",
        "CublasLt@1_a/8x8x8,0,inf,1e-6\n", "CublasLt@1_a/8x8x8,0,1e-6,1e-6,1\n"}) {
    EXPECT_THROW(read(std::string(kHeader) + row), UsageError) << row;
  }
  EXPECT_THROW(read_yardstick_choice("no/such.csv"), UsageError);
}

}  // namespace
}  // namespace tilegate::bench
