// bench_distributed: DistributedSgemm, and as its yardstick the same product with communication and
// multiplication in turn. A Google Benchmark binary. Names are Distributed/<M>x<N>x<K>/p<ranks> and
// InTurn/…, with "/split" after the shape for fp32_split, and at the end "/rows" for the
// row-parallel form and "/same_bits". Exchange/<bytes>/p<ranks> is an exchange alone. Rows that
// this machine cannot run are skipped with a reason.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
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
#include "platform.hpp"
#include "verifier/oracle.hpp"

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

// Every rank sends a message to the next one.
struct ExchangeRow {
  std::size_t bytes;
  int ranks;
};

std::string name_of(const ExchangeRow& row) {
  return "Exchange/" + std::to_string(row.bytes) + "/p" + std::to_string(row.ranks);
}

// Why this machine cannot run the row; empty: it can.
std::string obstacle(const ExchangeRow& row) {
  if (most_ranks() >= row.ranks) return {};
  return "needs " + std::to_string(row.ranks) + " GPUs; has " + std::to_string(most_ranks());
}

std::string obstacle(const Row& row) {
#if TILEGATE_ON_SIMT
  const auto [m, n, k] = row.shape;
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) > kMostOnSimt) {
    return "needs " + std::to_string(row.ranks) + " GPUs; has none";
  }
#endif
  return obstacle(ExchangeRow{0, row.ranks});
}

// Operands are uniform numbers. They repeat after a prime number of elements, so that they are
// quick to make, and no two rows are alike.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : values_(1'048'583) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = verifier::input_value(verifier::Inputs::kUniform, seed, i);
    }
  }
  float at(std::int64_t index) const {
    return values_[static_cast<std::size_t>(index) % values_.size()];
  }
  // A part of a matrix with so many columns.
  device::Buffer part(std::int64_t first_row, std::int64_t rows, std::int64_t first_col,
                      std::int64_t cols, std::int64_t all_cols) const {
    std::vector<float> host;
    host.reserve(static_cast<std::size_t>(rows * cols));
    for (std::int64_t row = first_row; row < first_row + rows; ++row) {
      std::size_t from = static_cast<std::size_t>(row * all_cols + first_col) % values_.size();
      for (std::int64_t left = cols; left > 0;) {
        const auto count =
            std::min<std::int64_t>(left, static_cast<std::int64_t>(values_.size() - from));
        const auto first = values_.begin() + static_cast<std::ptrdiff_t>(from);
        host.insert(host.end(), first, first + count);
        left -= count;
        from = 0;
      }
    }
    device::Buffer buffer(host.size() * sizeof(float));
    const Status status = device::copy_to_device(buffer.data(), host.data(), buffer.size());
    if (!status.ok()) throw std::runtime_error(status.message());
    return buffer;
  }

 private:
  std::vector<float> values_;
};

const Numbers& numbers(Operand operand) {
  static const Numbers a(1), b(2);
  return operand == Operand::kA ? a : b;
}

// Ranks that are connected: one transport each, created and destroyed by the rank's thread.
class Connected {
 public:
  explicit Connected(int ranks)
      : group_(ranks, kTimeout), transports_(static_cast<std::size_t>(ranks)) {
    each([&](int rank) {
      transports_[static_cast<std::size_t>(rank)] = group_.join(rank);
      return Status();
    });
  }
  ~Connected() {
    for_each_rank(static_cast<int>(transports_.size()),
                  [&](int rank) { transports_[static_cast<std::size_t>(rank)].reset(); });
  }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;

  Transport& transport(int rank) { return *transports_[static_cast<std::size_t>(rank)]; }

  // Runs `body(rank)` for all ranks concurrently; throws the first error.
  template <typename Body>
  void each(Body body) {
    std::vector<Status> statuses(transports_.size());
    for_each_rank(static_cast<int>(transports_.size()),
                  [&](int rank) { statuses[static_cast<std::size_t>(rank)] = body(rank); });
    for (const Status& status : statuses) {
      if (!status.ok()) throw std::runtime_error(status.message());
    }
  }

  // Seconds per launch, until the last rank is done. `launch(rank)` enqueues one.
  template <typename Launch>
  double seconds(int launches, Launch launch) {
    const Clock::time_point start = Clock::now();
    each([&](int rank) {
      for (int i = 0; i < launches; ++i) {
        if (Status status = launch(rank); !status.ok()) return status;
      }
      return transport(rank).synchronize(nullptr);
    });
    return std::chrono::duration<double>(Clock::now() - start).count() / launches;
  }

 private:
  Group group_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

// State of a rank between launches.
struct Rank {
  std::optional<DistributedSgemm> sgemm;
  std::int64_t first_row = 0, first_col = 0;  // of C
  device::Buffer a, b, c;

  Operands operands() const {
    return {.a = reinterpret_cast<const float*>(a.data()),
            .b = reinterpret_cast<const float*>(b.data()),
            .c = reinterpret_cast<float*>(c.data())};
  }
};

class Product {
 public:
  explicit Product(const Row& row)
      : row_(row), connected_(row.ranks), ranks_(static_cast<std::size_t>(row.ranks)) {
    connected_.each([&](int number) {
      Rank& rank = at(number).emplace();
      DistributedProblem problem = DistributedProblem::even(row.form, row.shape, row.ranks, number);
      const auto [m, n, k] = row.shape;
      const auto before = [&](const std::vector<std::int64_t>& sizes) {
        return std::accumulate(sizes.begin(), sizes.begin() + number, std::int64_t{0});
      };
      const std::int64_t row0 = before(problem.rows), part0 = before(problem.parts);
      const std::int64_t rows = problem.rows[static_cast<std::size_t>(number)];
      const std::int64_t part = problem.parts[static_cast<std::size_t>(number)];
      problem.schedule = row.schedule;
      problem.math = row.math;
      problem.same_bits = row.same_bits;
      rank.sgemm.emplace(connected_.transport(number), problem);
      if (row.form == Form::kColumnParallel) {
        rank.a = numbers(Operand::kA).part(row0, rows, 0, k, k);
        rank.b = numbers(Operand::kB).part(0, k, part0, part, n);
        rank.c = device::Buffer(static_cast<std::size_t>(m * part) * sizeof(float));
        rank.first_col = part0;
      } else {
        rank.a = numbers(Operand::kA).part(0, m, part0, part, k);
        rank.b = numbers(Operand::kB).part(part0, part, 0, n, n);
        rank.c = device::Buffer(static_cast<std::size_t>(rows * n) * sizeof(float));
        rank.first_row = row0;
      }
      return rank.sgemm->status();
    });
  }
  ~Product() {
    for_each_rank(row_.ranks, [&](int rank) { at(rank).reset(); });
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  double seconds(int launches) {
    return connected_.seconds(
        launches, [&](int rank) { return at(rank)->sgemm->launch(at(rank)->operands()); });
  }

  // Compares some elements of each rank with a product in double precision.
  void verify() {
    connected_.each([&](int number) {
      const Rank& rank = *at(number);
      const std::int64_t n = row_.shape.n, k = row_.shape.k;
      const std::int64_t cols = rank.sgemm->problem().ldc;
      const auto elements = static_cast<std::int64_t>(rank.c.size() / sizeof(float));
      constexpr std::int64_t kSamples = 64;
      for (std::int64_t sample = 0; sample < std::min(kSamples, elements); ++sample) {
        const std::int64_t at = (elements - 1) * sample / std::max<std::int64_t>(kSamples - 1, 1);
        const std::int64_t row = rank.first_row + at / cols, col = rank.first_col + at % cols;
        double exact = 0.0, magnitude = 0.0;
        for (std::int64_t i = 0; i < k; ++i) {
          const double product = static_cast<double>(numbers(Operand::kA).at(row * k + i)) *
                                 static_cast<double>(numbers(Operand::kB).at(i * n + col));
          exact += product;
          magnitude += std::abs(product);
        }
        float found = 0.0F;
        const float* const c = reinterpret_cast<const float*>(rank.c.data()) + at;
        if (Status s = device::copy_to_host(&found, c, sizeof(found)); !s.ok()) return s;
        if (std::abs(found - exact) <= 0x1p-24 * static_cast<double>(k + 2) * magnitude) continue;
        return Status::device_error("rank " + std::to_string(number) + ": C at row " +
                                    std::to_string(row) + ", column " + std::to_string(col) +
                                    " is " + std::to_string(found) + ", not " +
                                    std::to_string(exact));
      }
      return Status();
    });
  }

  Schedule schedule() { return at(0)->sgemm->schedule(); }

 private:
  std::optional<Rank>& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  Row row_;
  Connected connected_;
  std::vector<std::optional<Rank>> ranks_;  // each created and destroyed by its thread
};

// Each exchange starts after the previous one.
class Exchange {
 public:
  explicit Exchange(const ExchangeRow& row)
      : row_(row), connected_(row.ranks), ends_(static_cast<std::size_t>(row.ranks)) {
    connected_.each([&](int rank) {
      End& end = at(rank).emplace();
      const std::vector<std::byte> message(row_.bytes, value_of(rank));
      end.out = device::Buffer(row_.bytes);
      Status status = device::copy_to_device(end.out.data(), message.data(), row_.bytes);
      if (!status.ok()) return status;
      return connected_.transport(rank).allocate(row_.bytes, &end.in);
    });
  }
  ~Exchange() {
    for_each_rank(row_.ranks, [&](int rank) { at(rank).reset(); });
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  double seconds(int launches) {
    return connected_.seconds(launches, [&](int rank) {
      Transport& transport = connected_.transport(rank);
      const End& end = *at(rank);
      const std::array out{Outgoing{(rank + 1) % row_.ranks, end.out.data(), row_.bytes, 0}};
      const std::array in{Incoming{previous(rank), row_.bytes, 0}};
      if (Status s = transport.fork(nullptr); !s.ok()) return s;
      if (Status s = transport.exchange(1, *end.in, out, in); !s.ok()) return s;
      return transport.wait(1, nullptr);
    });
  }

  void verify() {
    connected_.each([&](int rank) {
      std::vector<std::byte> message(row_.bytes);
      Status status = device::copy_to_host(message.data(), at(rank)->in->data(), row_.bytes);
      if (!status.ok()) return status;
      if (std::ranges::count(message, value_of(previous(rank))) == std::ssize(message)) {
        return Status();
      }
      return Status::device_error("rank " + std::to_string(rank) + " received another message");
    });
  }

 private:
  struct End {
    device::Buffer out;
    std::unique_ptr<Memory> in;
  };
  std::optional<End>& at(int rank) { return ends_[static_cast<std::size_t>(rank)]; }
  int previous(int rank) const { return (rank + row_.ranks - 1) % row_.ranks; }
  static std::byte value_of(int rank) { return static_cast<std::byte>(rank + 1); }

  ExchangeRow row_;
  Connected connected_;
  std::vector<std::optional<End>> ends_;  // each created and destroyed by its thread
};

bool failed = false;

// Seconds of one rank by the name of the product, for the efficiency of more ranks.
std::map<std::string, double> alone;

std::string on_one_rank(Row row) {
  row.ranks = 1;
  row.form = Form::kColumnParallel;
  row.schedule = Schedule::kInTurn;
  row.same_bits = false;
  return name_of(row);
}

// Times launches in batches; returns the seconds of one.
template <typename Timed>
double time(benchmark::State& state, Timed& timed) {
  timed.seconds(1);  // connects the ranks
  const int launches = std::max(1, static_cast<int>(kBatchSeconds / timed.seconds(1)));
  double total = 0.0;
  while (state.KeepRunningBatch(launches)) {
    const double seconds = timed.seconds(launches) * launches;
    state.SetIterationTime(seconds);
    total += seconds;
  }
  timed.verify();
  state.counters["verified"] = 1.0;
  return total / static_cast<double>(state.iterations());
}

void measure(benchmark::State& state, const Row& row) {
  Product product(row);
  const double seconds = time(state, product);
  const auto [m, n, k] = row.shape;
  const double flop =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  state.counters["GFLOPS"] = flop / seconds * 1e-9;
  if (name_of(row) == on_one_rank(row)) alone[name_of(row)] = seconds;
  if (const auto one = alone.find(on_one_rank(row)); one != alone.end()) {
    state.counters["efficiency"] = one->second / (seconds * row.ranks);
  }
  state.SetLabel(product.schedule() == Schedule::kOverlapped ? "overlapped" : "in turn");
}

void measure(benchmark::State& state, const ExchangeRow& row) {
  Exchange exchange(row);
  time(state, exchange);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(row.bytes));
}

template <typename R>
void run(benchmark::State& state, const R& row) try {
#if TILEGATE_BENCH_SKIPS
  if (const std::string why = obstacle(row); !why.empty()) return state.SkipWithMessage(why);
#endif
  measure(state, row);
} catch (const std::exception& error) {
  failed = true;
  state.SkipWithError(error.what());
}

// Returns false where this machine cannot run the row and Google Benchmark, before 1.8, cannot skip
// it.
template <typename R>
bool add(const R& row) {
#if !TILEGATE_BENCH_SKIPS
  if (const std::string why = obstacle(row); !why.empty()) {
    std::fprintf(stderr, "%s: skipped: %s\n", name_of(row).c_str(), why.c_str());
    return false;
  }
#endif
  benchmark::RegisterBenchmark(name_of(row).c_str(),
                               [row](benchmark::State& state) { run(state, row); })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
  return true;
}

constexpr const char* kUsage =
    "usage: bench_distributed [--shape=MxNxK[/split]]... [--ranks=P] [--same-bits]\n"
    "                         [--exchange=BYTES]... [flags of Google Benchmark]\n"
    "\n"
    "Times DistributedSgemm, and as InTurn/... the same product with communication and\n"
    "multiplication in turn. By default 2048, 4096, 8192 and 16384 cubed on 2 ranks. A rank is a\n"
    "GPU, or on the CPU device a thread. Efficiency is the time of one rank (p1, always in\n"
    "turn) by the time and the number of ranks. --same-bits adds rows with that option,\n"
    "--exchange a message from each rank to the next one. The gate takes Distributed, and InTurn\n"
    "as the yardstick:\n"
    "  ci/gate run --base main --yardstick 'InTurn/*' --verified verified \\\n"
    "    --build 'cmake --preset gpu -B {build} && \\\n"
    "             cmake --build {build} --target bench_distributed' \\\n"
    "    --run '{build}/bench/bench_distributed --benchmark_out={out}'\n";

int complain(const std::string& sentence) {
  std::fprintf(stderr, "bench_distributed: %s\n", sentence.c_str());
  return 2;
}

template <typename Number>
bool parse(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.begin(), text.end(), *number);
  return error == std::errc() && end == text.end() && *number >= 1;
}

struct Multiplication {
  Shape shape;
  Math math = Math::fp32;
};

// Every product on one rank, then in both forms, each followed by its yardstick. FP32,
// row-parallel, has no same bits.
std::vector<Row> rows_of(const std::vector<Multiplication>& products, int ranks, bool same_bits) {
  std::vector<Row> rows;
  for (const auto& [shape, math] : products) {
    if (ranks > 1) {
      rows.push_back({Form::kColumnParallel, shape, 1, Schedule::kInTurn, math, false});
    }
    for (const Form form : {Form::kColumnParallel, Form::kRowParallel}) {
      for (const bool same : {false, true}) {
        const bool has_none = form == Form::kRowParallel && math == Math::fp32;
        if (same && (!same_bits || has_none)) continue;
        for (const Schedule schedule : {Schedule::kFaster, Schedule::kInTurn}) {
          rows.push_back({form, shape, ranks, schedule, math, same});
        }
      }
    }
  }
  return rows;
}

// What the times are of.
void add_context() {
  const char* const commit = std::getenv("TILEGATE_COMMIT");
  benchmark::AddCustomContext("commit", commit == nullptr ? "" : commit);
#if !TILEGATE_ON_SIMT
  for (const auto& [key, value] : bench::device_context()) {
    // By this key the gate knows the ladder's bench, which has other names.
    if (key != "device_kind") benchmark::AddCustomContext(key, value);
  }
  int nccl = 0;
  ncclGetVersion(&nccl);
  benchmark::AddCustomContext("nccl", std::to_string(nccl / 10000) + "." +
                                          std::to_string(nccl / 100 % 100) + "." +
                                          std::to_string(nccl % 100));
#endif
}

int run_main(int argc, char** argv) {
  std::vector<Multiplication> products;
  std::vector<std::size_t> exchanges;
  int ranks = 2;
  bool same_bits = false;
  constexpr std::string_view kShape = "--shape=", kRanks = "--ranks=", kExchange = "--exchange=";
  std::vector<char*> rest;
  for (char* const arg : std::span(argv, static_cast<std::size_t>(argc))) {
    const std::string_view text = arg;
    if (text == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (text.starts_with(kShape)) {
      Problem problem;
      const Status status = parse_problem(text.substr(kShape.size()), &problem);
      if (!status.ok()) return complain("--shape: " + status.message());
      const Math math = std::exchange(problem.math, Math::fp32);
      if (problem != Problem::dense(problem.shape)) {
        return complain("--shape: '" + std::string(text) + "' is more than MxNxK[/split]");
      }
      products.push_back({problem.shape, math});
    } else if (text == "--same-bits") {
      same_bits = true;
    } else if (text.starts_with(kRanks)) {
      if (!parse(text.substr(kRanks.size()), &ranks)) {
        return complain("--ranks: give 1 or more, as in --ranks=2");
      }
    } else if (text.starts_with(kExchange)) {
      if (!parse(text.substr(kExchange.size()), &exchanges.emplace_back())) {
        return complain("--exchange: give bytes, as in --exchange=1048576");
      }
    } else {
      rest.push_back(arg);
    }
  }
  if (!exchanges.empty() && ranks == 1) return complain("--exchange: needs --ranks=2 or more");
  if (products.empty() && exchanges.empty()) {
    for (const std::int64_t n : {2048, 4096, 8192, 16384}) products.push_back({{n, n, n}});
  }
  auto count = static_cast<int>(rest.size());
  rest.push_back(nullptr);
  benchmark::Initialize(&count, rest.data());
  if (count > 1) return complain(std::string("unknown or malformed flag '") + rest[1] + "'");
  add_context();
  bool registers = false;
  for (const std::size_t bytes : exchanges) registers |= add(ExchangeRow{bytes, ranks});
  for (const Row& row : rows_of(products, ranks, same_bits)) registers |= add(row);
  if (!registers) return 0;
  if (benchmark::RunSpecifiedBenchmarks() == 0) return complain("no benchmark matches the filter");
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace tilegate::distributed

int main(int argc, char** argv) { return tilegate::distributed::run_main(argc, argv); }
