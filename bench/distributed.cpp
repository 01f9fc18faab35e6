// bench_distributed: DistributedSgemm, and as its yardstick the same product with communication and
// multiplication in turn. A Google Benchmark binary. Names are Distributed/<M>x<N>x<K>/p<ranks> and
// InTurn/…, with "/split" after the shape for fp32_split, and at the end "/rows" for the
// row-parallel form and "/same_bits". Rows that this machine cannot run are skipped with a reason.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <tilegate/device.hpp>
#include <tilegate/distributed/sgemm.hpp>
#include <tilegate/problem.hpp>

#include "distributed/group.hpp"

namespace tilegate::distributed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBatchSeconds = 0.05;  // the least time of launches between two clock reads
constexpr double kMostOnSimt = 1e8;     // M·N·K
constexpr std::chrono::seconds kTimeout{60};

struct Row {
  Form form;
  Shape shape;
  int ranks;
  Schedule schedule;
  Math math;
  bool same_bits;
};

std::string name_of(const Row& row) {
  const auto [m, n, k] = row.shape;
  return std::string(row.schedule == Schedule::kInTurn ? "InTurn/" : "Distributed/") +
         std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
         (row.math == Math::fp32_split ? "/split" : "") + "/p" + std::to_string(row.ranks) +
         (row.form == Form::kRowParallel ? "/rows" : "") + (row.same_bits ? "/same_bits" : "");
}

// Why this machine cannot run the row; empty: it can.
std::string obstacle(const Row& row) {
#if TILEGATE_ON_SIMT
  const auto [m, n, k] = row.shape;
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) > kMostOnSimt) {
    return "needs " + std::to_string(row.ranks) + " GPUs; has none";
  }
#endif
  if (most_ranks() >= row.ranks) return {};
  return "needs " + std::to_string(row.ranks) + " GPUs; has " + std::to_string(most_ranks());
}

// State of a rank between launches. Operands are ones, so every element of C is K.
struct Rank {
  std::unique_ptr<Transport> transport;
  std::optional<DistributedSgemm> sgemm;
  device::Buffer a, b, c, workspace;

  Operands operands() const {
    return {reinterpret_cast<const float*>(a.data()), reinterpret_cast<const float*>(b.data()),
            reinterpret_cast<float*>(c.data()), workspace.data(), workspace.size()};
  }
};

device::Buffer ones(std::int64_t elements) {
  const std::vector<float> host(static_cast<std::size_t>(elements), 1.0F);
  device::Buffer buffer(host.size() * sizeof(float));
  const Status status = device::copy_to_device(buffer.data(), host.data(), buffer.size());
  if (!status.ok()) throw std::runtime_error(status.message());
  return buffer;
}

class Ranks {
 public:
  explicit Ranks(const Row& row) : row_(row), group_(row.ranks, kTimeout) {
    for (int i = 0; i < row.ranks; ++i) ranks_.push_back(std::make_unique<Rank>());
    each([&](Rank& rank, int number) {
      rank.transport = group_.join(number);
      DistributedProblem problem = DistributedProblem::even(row.form, row.shape, row.ranks, number);
      const Shape shard = problem.shard(number);
      const std::int64_t rows = problem.rows[static_cast<std::size_t>(number)];
      const bool by_columns = row.form == Form::kColumnParallel;
      problem.schedule = row.schedule;
      problem.math = row.math;
      problem.same_bits = row.same_bits;
      rank.sgemm.emplace(*rank.transport, problem);
      rank.a = ones((by_columns ? rows : shard.m) * shard.k);
      rank.b = ones(shard.k * shard.n);
      rank.c = ones((by_columns ? shard.m : rows) * shard.n);
      rank.workspace = device::Buffer(rank.sgemm->workspace_bytes());
      return rank.sgemm->status();
    });
  }

  ~Ranks() {
    for_each_rank(row_.ranks, [&](int rank) { ranks_[static_cast<std::size_t>(rank)].reset(); });
  }

  // Seconds per launch, until the last rank is done.
  double seconds(int launches) {
    const Clock::time_point start = Clock::now();
    each([&](Rank& rank, int /*number*/) {
      for (int i = 0; i < launches; ++i) {
        Status status = rank.sgemm->launch(rank.operands());
        if (!status.ok()) return status;
      }
      return rank.transport->synchronize(nullptr);
    });
    return std::chrono::duration<double>(Clock::now() - start).count() / launches;
  }

  void verify() {
    each([&](Rank& rank, int number) {
      std::vector<float> c(rank.c.size() / sizeof(float));
      Status status = device::copy_to_host(c.data(), rank.c.data(), rank.c.size());
      const auto wrong = std::ssize(c) - std::ranges::count(c, static_cast<float>(row_.shape.k));
      if (!status.ok() || wrong == 0) return status;
      return Status::device_error("rank " + std::to_string(number) + ": " + std::to_string(wrong) +
                                  " elements of C are wrong");
    });
  }

  Schedule schedule() const { return ranks_.front()->sgemm->schedule(); }

 private:
  template <typename Body>
  void each(Body body) {
    std::vector<Status> statuses(ranks_.size());
    for_each_rank(row_.ranks, [&](int number) {
      const auto index = static_cast<std::size_t>(number);
      statuses[index] = body(*ranks_[index], number);
    });
    for (const Status& status : statuses) {
      if (!status.ok()) throw std::runtime_error(status.message());
    }
  }

  Row row_;
  Group group_;
  std::vector<std::unique_ptr<Rank>> ranks_;  // each created and destroyed by its thread
};

bool failed = false;

void run(benchmark::State& state, const Row& row) try {
#if TILEGATE_BENCH_SKIPS
  if (const std::string why = obstacle(row); !why.empty()) return state.SkipWithMessage(why);
#endif
  Ranks ranks(row);
  ranks.seconds(1);  // connects the ranks
  const int launches = std::max(1, static_cast<int>(kBatchSeconds / ranks.seconds(1)));
  double total = 0.0;
  while (state.KeepRunningBatch(launches)) {
    const double seconds = ranks.seconds(launches) * launches;
    state.SetIterationTime(seconds);
    total += seconds;
  }
  ranks.verify();
  const auto [m, n, k] = row.shape;
  const double flop =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  state.counters["GFLOPS"] = flop * static_cast<double>(state.iterations()) / total * 1e-9;
  state.counters["verified"] = 1.0;
  state.SetLabel(ranks.schedule() == Schedule::kOverlapped ? "overlapped" : "in turn");
} catch (const std::exception& error) {
  failed = true;
  state.SkipWithError(error.what());
}

constexpr const char* kUsage =
    "usage: bench_distributed [--shape=MxNxK[/split]] [--ranks=P] [--same-bits]\n"
    "                         [flags of Google Benchmark]\n"
    "\n"
    "Times DistributedSgemm, and as InTurn/... the same product with communication and\n"
    "multiplication in turn. By default 2048, 4096, 8192 and 16384 cubed on 2 ranks. A rank is a\n"
    "GPU, or on the CPU device a thread. The gate takes both, InTurn as the yardstick:\n"
    "  ci/gate run --base main --yardstick 'InTurn/*' --verified verified \\\n"
    "    --build 'cmake --preset gpu -B {build} && \\\n"
    "             cmake --build {build} --target bench_distributed' \\\n"
    "    --run '{build}/bench/bench_distributed --benchmark_out={out}'\n";

int complain(const std::string& sentence) {
  std::fprintf(stderr, "bench_distributed: %s\n", sentence.c_str());
  return 2;
}

bool parse_ranks(std::string_view text, int* ranks) {
  const auto [end, error] = std::from_chars(text.begin(), text.end(), *ranks);
  return error == std::errc() && end == text.end() && *ranks >= 1;
}

// Every shape in both forms, each followed by its yardstick. FP32, row-parallel, has no same bits.
std::vector<Row> rows_of(const std::vector<Shape>& shapes, int ranks, Math math, bool same_bits) {
  std::vector<Row> rows;
  for (const Form form : {Form::kColumnParallel, Form::kRowParallel}) {
    if (form == Form::kRowParallel && same_bits && math == Math::fp32) continue;
    for (const Shape& shape : shapes) {
      rows.push_back({form, shape, ranks, Schedule::kFaster, math, same_bits});
      rows.push_back({form, shape, ranks, Schedule::kInTurn, math, same_bits});
    }
  }
  return rows;
}

int run_main(int argc, char** argv) {
  std::vector<Shape> shapes = {
      {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}, {16384, 16384, 16384}};
  int ranks = 2;
  Math math = Math::fp32;
  bool same_bits = false;
  constexpr std::string_view kShape = "--shape=", kRanks = "--ranks=";
  std::vector<char*> rest;
  for (char* arg : std::vector<char*>(argv, argv + argc)) {
    const std::string_view text = arg;
    if (text == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (text.starts_with(kShape)) {
      Problem problem;
      const Status status = parse_problem(text.substr(kShape.size()), &problem);
      if (!status.ok()) return complain("--shape: " + status.message());
      math = std::exchange(problem.math, Math::fp32);
      if (problem != Problem::dense(problem.shape)) {
        return complain("--shape: '" + std::string(text) + "' is more than MxNxK[/split]");
      }
      shapes = {problem.shape};
    } else if (text == "--same-bits") {
      same_bits = true;
    } else if (text.starts_with(kRanks)) {
      if (!parse_ranks(text.substr(kRanks.size()), &ranks)) {
        return complain("--ranks: give 1 or more, as in --ranks=2");
      }
    } else {
      rest.push_back(arg);
    }
  }
  auto count = static_cast<int>(rest.size());
  rest.push_back(nullptr);
  benchmark::Initialize(&count, rest.data());
  if (count > 1) return complain(std::string("unknown or malformed flag '") + rest[1] + "'");
  bool registers = false;
  for (const Row& row : rows_of(shapes, ranks, math, same_bits)) {
#if !TILEGATE_BENCH_SKIPS  // Google Benchmark before 1.8 cannot skip a row
    if (const std::string why = obstacle(row); !why.empty()) {
      std::fprintf(stderr, "%s: skipped: %s\n", name_of(row).c_str(), why.c_str());
      continue;
    }
#endif
    benchmark::RegisterBenchmark(name_of(row).c_str(),
                                 [row](benchmark::State& state) { run(state, row); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
    registers = true;
  }
  if (!registers) return 0;
  if (benchmark::RunSpecifiedBenchmarks() == 0) return complain("no benchmark matches the filter");
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace tilegate::distributed

int main(int argc, char** argv) { return tilegate::distributed::run_main(argc, argv); }
