#include "shapes.hpp"

#include <cstdio>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "errors.hpp"

namespace tilegate::bench {
namespace {

// The message of the UsageError; empty without one.
std::string complaint(const std::string& text) {
  try {
    parse_shapes(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

class Table {
 public:
  explicit Table(const std::string& text) : path_(testing::TempDir() + "tilegate_shapes.csv") {
    std::ofstream(path_) << text;
  }
  ~Table() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr char kHeader[] = "set,m,n,k,lda,ldb,ldc,pointer_offset_bytes\n";

TEST(Shapes, ABenchmarkIsNamedAfterItsProblem) {
  const Problem dense = parse_shapes("1x2x3").front();
  EXPECT_EQ(benchmark_name({.stage = "Naive", .problem = dense}, false), "Naive/1x2x3");
  EXPECT_EQ(benchmark_name({"StreamK", "64x64", dense}, false), "StreamK@64x64/1x2x3");
  const Problem padded = parse_shapes("1x2x3/ld3x2x4/off8/beta0.5").front();
  EXPECT_EQ(benchmark_name({.stage = "Naive", .problem = padded}, true),
            "Naive/1x2x3/ld3x2x4/off8/beta0.5/cold");
}

TEST(Shapes, EachProblemComesOnce) {
  EXPECT_EQ(parse_shapes("1x2x3,4x5x6,1x2x3,1x2x3/ld3x2x2").size(), 2U);
}

TEST(Shapes, MalformedShapesAreErrors) {
  for (const char* text :
       {"", "1x2", "1x2x", "1x2x3x4", "axbxc", "1x2x-3", "1 x2x3", "1x2x3,", "1x2x3/", "1x2x3/ld4",
        "1x2x3/off", "1x2x3/off4/ld4x5x6", "1x2x3/cold", "1x2x99999999999999999999"}) {
    EXPECT_NE(complaint(text).find("is not MxNxK"), std::string::npos) << text;
  }
}

TEST(Shapes, ImpossibleShapesAreErrors) {
  EXPECT_NE(complaint("0x2x3").find("at least 1"), std::string::npos);
  EXPECT_NE(complaint("1x2x3/ld2x2x2").find("lda = 2 is shorter"), std::string::npos);
  EXPECT_NE(complaint("1x2x3/ld3x1x2").find("ldb = 1 is shorter"), std::string::npos);
  EXPECT_NE(complaint("1x2x3/ld3x2x1").find("ldc = 1 is shorter"), std::string::npos);
  EXPECT_NE(complaint("1x2000000000x3").find("above 10^9"), std::string::npos);
  EXPECT_NE(complaint("1x2x3/off6").find("multiple of 4"), std::string::npos);
}

TEST(Shapes, TablesGiveTheirSetsInOrder) {
  const Table table(std::string(kHeader) + "a,1,2,3,3,2,2,0\nb,4,5,6,7,8,9,4\r\nc,7,8,9,9,8,8,0\n");
  EXPECT_EQ(parse_shapes("@" + table.path()).size(), 3U);
  const auto chosen = parse_shapes("@" + table.path() + ":c,b");
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(to_string(chosen[0]), "4x5x6/ld7x8x9/off4");
  EXPECT_EQ(to_string(chosen[1]), "7x8x9");
}

TEST(Shapes, MalformedTablesAreErrorsWithTheirPlace) {
  const auto complaint_about = [](const std::string& text) {
    const Table table(text);
    return complaint("@" + table.path());
  };
  EXPECT_NE(complaint_about("m,n,k\n").find(".csv:1: the columns"), std::string::npos);
  EXPECT_NE(complaint_about(kHeader).find("no shape"), std::string::npos);
  EXPECT_NE(complaint_about(std::string(kHeader) + "a,1,2\n").find(".csv:2: 3 columns"),
            std::string::npos);
  EXPECT_NE(complaint_about(std::string(kHeader) + "a,1,2,x,3,2,2,0\n").find("'x' is not a size"),
            std::string::npos);
  EXPECT_NE(complaint_about(std::string(kHeader) + "a,1,2,3,2,2,2,0\n").find("lda = 2"),
            std::string::npos);
}

TEST(Shapes, AMissingTableOrSetIsAnError) {
  EXPECT_NE(complaint("@no/such.csv").find("cannot read no/such.csv"), std::string::npos);
  const Table table(std::string(kHeader) + "a,1,2,3,3,2,2,0\n");
  EXPECT_NE(complaint("@" + table.path() + ":b").find("no set 'b'"), std::string::npos);
}

}  // namespace
}  // namespace tilegate::bench
