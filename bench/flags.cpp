#include "flags.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "errors.hpp"

namespace tilegate::bench {
namespace {

constexpr std::string_view kMinTime = "--benchmark_min_time";

// The value of `--flag=value` if `arg` is of that form.
std::optional<std::string> value_of(std::string_view arg, std::string_view flag) {
  if (!arg.starts_with(flag) || !arg.substr(flag.size()).starts_with('=')) return std::nullopt;
  return std::string(arg.substr(flag.size() + 1));
}

std::uint64_t parse_number(const std::string& flag, const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) {
    throw UsageError(flag + ": '" + text + "' is not a whole number below 2^64");
  }
  return number;
}

std::string parse_yardstick(const std::string& text) {
  constexpr std::string_view kBest = "best:";
  if (text == "cublas") return {};
  if (text.starts_with(kBest) && text.size() > kBest.size()) return text.substr(kBest.size());
  throw UsageError("--yardstick: '" + text + "' is neither cublas nor best:FILE");
}

int parse_count(const std::string& flag, const std::string& text) {
  int count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stop != end || count < 0) {
    throw UsageError(flag + ": '" + text + "' is not a count");
  }
  return count;
}

Plant parse_plant(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string percent = colon == std::string::npos ? "" : text.substr(colon + 1);
  char* end = nullptr;
  const double value = std::strtod(percent.c_str(), &end);
  if (colon == 0 || percent.empty() || *end != '\0' || !(value > 0.0 && value <= 100.0)) {
    throw UsageError("--plant: '" + text + "' is not RUNG:PERCENT, above 0 and at most 100");
  }
  return {text.substr(0, colon), value};
}

// Google Benchmark's rule for booleans.
bool is_true(const std::string& text) {
  for (const char* no : {"0", "f", "F", "n", "N", "false", "False", "FALSE", "no", "No", "NO",
                         "off", "Off", "OFF"}) {
    if (text == no) return false;
  }
  return true;
}

double parse_seconds(const std::string& text) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  const std::string_view rest = end;
  if (end == text.c_str() || (!rest.empty() && rest != "s") || !std::isfinite(seconds) ||
      seconds < 0.0) {
    throw UsageError(std::string(kMinTime) + ": '" + text +
                     "' is neither seconds (0.1 or 0.1s) nor iterations (7x)");
  }
  return seconds;
}

// Seconds have a unit only after Google Benchmark 1.7.
void pass_on_min_time(Flags& flags, const std::string& text) {
  if (text.ends_with('x')) {
    flags.min_time_s.reset();
    flags.passed_on.push_back(std::string(kMinTime) + "=" + text);
    return;
  }
  flags.min_time_s = parse_seconds(text);
  const std::string number = text.ends_with('s') ? text.substr(0, text.size() - 1) : text;
  flags.passed_on.push_back(std::string(kMinTime) + "=" + number + TILEGATE_BENCH_SECONDS_SUFFIX);
}

}  // namespace

std::string Plant::to_string() const {
  char text[32];
  std::snprintf(text, sizeof text, "%g", percent);
  return rung + ":" + text;
}

Flags parse_flags(const std::vector<std::string>& args, double default_min_time_s) {
  Flags flags;
  const char* from_environment = std::getenv("BENCHMARK_MIN_TIME");
  std::string min_time =
      from_environment != nullptr ? from_environment : std::to_string(default_min_time_s);
  for (const std::string& arg : args) {
    if (arg == "--help") {
      flags.help = true;
    } else if (arg == "--cold") {
      flags.cold = true;
    } else if (arg == "--variants") {
      flags.variants = true;
    } else if (arg == "--alone") {
      flags.alone = true;
    } else if (arg == "--prepared") {
      flags.prepared = true;
    } else if (const auto configurations = value_of(arg, "--configurations")) {
      flags.configurations = parse_count("--configurations", *configurations);
    } else if (const auto placements = value_of(arg, "--placements")) {
      flags.placements = parse_count("--placements", *placements);
      if (flags.placements == 0) throw UsageError("--placements: 0; give 1 or more");
    } else if (const auto shapes = value_of(arg, "--shapes")) {
      if (shapes->empty()) throw UsageError("--shapes: no shape given");
      flags.shapes = *shapes;
    } else if (const auto seed = value_of(arg, "--seed")) {
      flags.seed = parse_number("--seed", *seed);
    } else if (const auto limit = value_of(arg, "--workspace-limit")) {
      flags.workspace_limit = parse_number("--workspace-limit", *limit);
    } else if (const auto yardstick = value_of(arg, "--yardstick")) {
      flags.yardstick = parse_yardstick(*yardstick);
    } else if (const auto choice = value_of(arg, "--choose-yardstick")) {
      if (choice->empty()) throw UsageError("--choose-yardstick: no file given");
      flags.choose_yardstick = true;
      flags.samples = *choice;
    } else if (const auto plant = value_of(arg, "--plant")) {
      flags.plant = parse_plant(*plant);
    } else if (const auto samples = value_of(arg, "--samples")) {
      if (samples->empty()) throw UsageError("--samples: no file given");
      flags.samples = *samples;
    } else if (const auto given = value_of(arg, kMinTime)) {
      min_time = *given;
    } else if (arg.starts_with("--benchmark_") || arg.starts_with("--v=")) {
      if (arg == "--benchmark_list_tests") flags.list = true;
      if (const auto list = value_of(arg, "--benchmark_list_tests")) flags.list = is_true(*list);
      flags.passed_on.push_back(arg);
    } else {
      throw UsageError("unknown argument '" + arg + "'; --help lists the flags");
    }
  }
  if (flags.choose_yardstick && (flags.alone || !flags.yardstick.empty())) {
    throw UsageError("--choose-yardstick times beside cublasSgemm: not --alone, no --yardstick");
  }
  if (flags.prepared && flags.cold) {
    throw UsageError("--prepared: not with --cold, as all copies of B would share its digits");
  }
  pass_on_min_time(flags, min_time);
  return flags;
}

std::string flags_help() {
  return
      R"(usage: bench [flags]

Times every rung on every shape, against cuBLAS where there is a GPU, and verifies each result.
A benchmark is called <Rung>/<problem>[/cold], so a rung's name is a filter:
--benchmark_filter=Warptile. A problem is MxNxK[/TN][/ld<lda>x<ldb>x<ldc>][/batch<n>][/off<bytes>][/alpha<x>][/beta<x>][/split].

  --shapes=PROBLEM,...      these problems, as 1024x1024x1024/ld1025x1027x1029/off4/beta0.5
  --shapes=@file.csv        the shapes of a table such as bench/shapes.csv
  --shapes=@file.csv:a,b    of its sets a and b alone
  --cold                    operands rotate through buffers that the L2 cache cannot hold
  --variants                the variants of each rung for comparison too, as <Rung>.<variant>
  --alone                   without cuBLAS in between: with --benchmark_min_time=4, how fast a rung
                            stays where power is the limit
  --prepared                Prepared/<problem> too: B is prepared before (tilegate/prepared.hpp), in
                            prepare_us
  --choose-yardstick=FILE   instead of rungs, times up to 24 algorithms of cublasLt's heuristics for
                            FP32 on each problem, in turn with cublasSgemm; samples go to FILE
  --yardstick=best:FILE     against the fastest of those, or cublasSgemm, as another process chose;
                            ratio_to_cublas is then to that. --yardstick=cublas is the default
  --workspace-limit=BYTES   plans of rungs need no more workspace: in panels, or slower
  --configurations=N        the N configurations of each stage that its cost model expects to be the
                            quickest too, as <Stage>@<configuration>
  --placements=N            lay the operands out at N places in memory and take the best of them
                            (default 1; with --cold there is one)
  --seed=N                  of the random inputs (default 1)
  --samples=file.csv        every timed replay goes there: its place, and its seconds per launch,
                            rung and cuBLAS
  --plant=RUNG:PERCENT      the device waits so long after each replay of that rung, which makes it
                            slower by as much; to prove that a gate sees it
  --help                    this text

Exit status: 0 every benchmark ran and its result is right; 1 one failed, or none matched the
filter; 2 the command line is wrong.

Flags of Google Benchmark:

)";
}

}  // namespace tilegate::bench
