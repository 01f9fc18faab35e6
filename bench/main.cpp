// bench: the ladder's Google Benchmark binary. Registers one benchmark per rung and shape.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <regex.h>

#include <tilegate/catalogue.hpp>
#include <tilegate/device.hpp>

#include "errors.hpp"
#include "flags.hpp"
#include "platform.hpp"
#include "prepared.hpp"
#include "runner.hpp"
#include "shapes.hpp"
#include "yardstick.hpp"

namespace tilegate::bench {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

int complain(const std::string& sentence, int exit_code) {
  std::fflush(stdout);
  std::fprintf(stderr, "bench: %s\n", sentence.c_str());
  return exit_code;
}

std::vector<Problem> chosen_problems(const Flags& flags) {
  if (!flags.shapes.empty()) return parse_shapes(flags.shapes);
  std::vector<Problem> problems;
  for (const Shape& shape : defaults().shapes) problems.push_back(Problem::dense(shape));
  return problems;
}

// Why the device of this build cannot run `stage`; empty: it can, or there is no device to ask.
std::string obstacle(const Stage& stage, bool device_answers) {
  if (defaults().is_cuda && !device_answers) return {};
  return check_device(stage.requirements, device::current()).message();
}

// Every stage, each followed by its variants if they were requested.
std::vector<const Stage*> chosen_stages(bool with_variants) {
  if (with_variants) return catalogue_stages();
  std::vector<const Stage*> chosen;
  for (const CatalogueEntry& entry : catalogue()) chosen.push_back(entry.stage);
  return chosen;
}

// The stage's choice, and its fastest configurations by its cost model.
std::vector<NamedProblem> chosen_configurations(const Stage& stage, const Problem& problem,
                                                int configurations) {
  const std::string name(stage.name);
  std::vector<NamedProblem> chosen{{.stage = name, .problem = problem}};
  if (configurations == 0 || stage.candidates == nullptr) return chosen;
  auto candidates = stage.candidates(problem, device::current());
  std::ranges::sort(candidates, {}, &Candidate::seconds);
  for (const Candidate& candidate : candidates) {
    if (chosen.size() > static_cast<std::size_t>(configurations)) break;
    chosen.push_back({name, candidate.choice.configuration, problem});
  }
  return chosen;
}

// The candidates for the yardstick.
std::vector<NamedProblem> chosen_algorithms(const Problem& problem) {
  std::vector<NamedProblem> chosen = chosen_configurations(*cublas_lt(), problem, kMostAlgorithms);
  chosen.erase(chosen.begin());  // the stage's choice, which repeats the first
  return chosen;
}

void register_benchmarks(Runner* runner, const std::vector<Problem>& problems, const Flags& flags) {
  auto stages = flags.choose_yardstick ? std::vector{cublas_lt()} : chosen_stages(flags.variants);
  if (flags.prepared) stages.push_back(&prepared_b());
  for (const Stage* stage : stages) {
    if (!obstacle(*stage, runner != nullptr).empty()) continue;
    std::string not_taken;
    for (const Problem& problem : problems) {
      if (const Status taken = stage->restrictions.check(problem); !taken.ok()) {
        not_taken += "\n  " + to_string(problem) + ": " + taken.message();
        continue;
      }
      for (const NamedProblem& named :
           flags.choose_yardstick ? chosen_algorithms(problem)
                                  : chosen_configurations(*stage, problem, flags.configurations)) {
        auto* registered = benchmark::RegisterBenchmark(
            benchmark_name(named, flags.cold).c_str(),
            [=](benchmark::State& state) { runner->run(state, *stage, named); });
        registered->UseManualTime()->Unit(benchmark::kMicrosecond);
      }
    }
    if (!not_taken.empty()) {
      std::fprintf(stderr, "Not applicable to %s:%s\n", std::string(stage->name).c_str(),
                   not_taken.c_str());
    }
  }
}

// Addition to "no benchmark matches": a rung that the filter names and this device cannot run.
std::string why_nothing_matches(const std::string& filter, const std::vector<Problem>& problems,
                                const Flags& flags) {
  regex_t pattern;  // POSIX's: to compile std::regex takes longer than the rest of this file
  if (regcomp(&pattern, filter.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    return "that is not a regular expression";
  }
  const std::unique_ptr<regex_t, void (*)(regex_t*)> freed(&pattern, regfree);
  for (const Stage* stage : chosen_stages(false)) {
    const std::string unable = obstacle(*stage, !flags.list);
    for (const Problem& problem : problems) {
      const std::string reason =
          unable.empty() ? stage->restrictions.check(problem).message() : unable;
      if (reason.empty()) continue;
      const std::string name =
          benchmark_name({.stage = std::string(stage->name), .problem = problem}, flags.cold);
      if (regexec(&pattern, name.c_str(), 0, nullptr, 0) == 0) {
        return std::string(stage->name) + " does not run here: " + reason;
      }
    }
  }
  return "--benchmark_list_tests lists the names, --shapes chooses the shapes";
}

void add_context(const Settings& settings) {
  for (const auto& [key, value] : device_context()) benchmark::AddCustomContext(key, value);
  benchmark::AddCustomContext("seed", std::to_string(settings.seed));
  if (settings.min_time_s) {
    benchmark::AddCustomContext("min_time_s", std::to_string(*settings.min_time_s));
  }
  if (settings.yardstick) benchmark::AddCustomContext("yardstick", "best");
  if (settings.workspace_limit != kNoWorkspaceLimit) {
    benchmark::AddCustomContext("workspace_limit", std::to_string(settings.workspace_limit));
  }
  if (settings.plant) benchmark::AddCustomContext("plant", settings.plant->to_string());
  if (settings.peak_gflops > 0.0) {
    benchmark::AddCustomContext("peak_gflops", std::to_string(settings.peak_gflops));
  }
}

std::ofstream open_samples(const std::string& path) {
  std::ofstream file(path);
  if (!file) throw UsageError("--samples: cannot write " + path);
  file.precision(9);
  file << "benchmark,place,rung_s,cublas_s\n";
  return file;
}

// Google Benchmark's JSON, with M, N, K and the batch of each benchmark as fields, so that readers
// need not parse names. Knows whether writing succeeded.
class CheckedJson : public benchmark::JSONReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> named = runs;
    for (Run& run : named) {
      const std::string name = run.run_name.function_name;
      run.run_name = {};
      run.run_name.function_name = name;
      NamedProblem fields;
      check(parse_named_problem(name.substr(0, name.rfind("/cold")), &fields));
      const auto& [m, n, k] = fields.problem.shape;
      for (const auto& [field, value] :
           {std::pair("m", m), {"n", n}, {"k", k}, {"batch", fields.problem.batch}}) {
        run.counters[field] = static_cast<double>(value);
      }
    }
    JSONReporter::ReportRuns(named);
  }
  void Finalize() override {
    JSONReporter::Finalize();
    written_ = GetOutputStream().flush().good();
  }
  bool written() const { return written_; }

 private:
  bool written_ = false;
};

// The console without the counters of accesses, such as global_load.sectors, which would make a
// line 665 characters long; the JSON has them.
class ShortConsole : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override { return whole_->ReportContext(context); }
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> shorter = runs;
    for (Run& run : shorter) {
      std::erase_if(run.counters, [](const auto& counter) {
        return counter.first.find('.') != std::string::npos;
      });
    }
    whole_->ReportRuns(shorter);
  }
  void Finalize() override { whole_->Finalize(); }

 private:
  std::unique_ptr<benchmark::BenchmarkReporter> whole_{benchmark::CreateDefaultDisplayReporter()};
};

// The value of a flag of Google Benchmark; empty if it is not given.
std::string passed_on(const Flags& flags, const std::string& name) {
  std::string value;
  for (const std::string& arg : flags.passed_on) {
    if (arg.starts_with(name + "=")) value = arg.substr(name.size() + 1);
  }
  return value;
}

// Google Benchmark's own exit code would mean that a benchmark failed.
void check_writable(const std::string& path) {
  if (!path.empty() && !std::ofstream(path, std::ios::app)) {
    throw UsageError("--benchmark_out: cannot write " + path);
  }
}

std::size_t run_benchmarks(const Flags& flags, const std::string& out) {
  const std::string shown = passed_on(flags, "--benchmark_format");
  const std::string format = passed_on(flags, "--benchmark_out_format");
  ShortConsole console;
  benchmark::BenchmarkReporter* display =
      shown.empty() || shown == "console" ? &console : nullptr;  // nullptr: the flag decides
  if (out.empty() || (!format.empty() && format != "json")) {
    return benchmark::RunSpecifiedBenchmarks(display);
  }
  CheckedJson json;
  const std::size_t matches = benchmark::RunSpecifiedBenchmarks(display, &json);
  if (matches != 0 && !json.written()) throw UsageError("--benchmark_out: cannot write " + out);
  return matches;
}

bool stdout_took_it() { return std::cout.flush().good() && std::fflush(stdout) == 0; }

// Google Benchmark keeps the pointer `program`.
void initialize_google_benchmark(char* program, std::vector<std::string> args) {
  std::vector<char*> argv{program};
  for (std::string& arg : args) argv.push_back(arg.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  // It calls this for --help, which is handled above, and for bad values, after which it would exit
  // with 0.
  benchmark::Initialize(&argc, argv.data(), [] {
    std::exit(complain("a flag of Google Benchmark has a bad value; --help lists them", kBadUsage));
  });
  if (argc > 1) throw UsageError(std::string("unknown or malformed flag '") + argv[1] + "'");
}

int run(int argc, char** argv) {
  const Flags flags = parse_flags({argv + 1, argv + argc}, defaults().min_time_s);
  if (flags.help) {
    std::fputs(flags_help().c_str(), stdout);
    std::fflush(stdout);
    benchmark::PrintDefaultHelp();
    return stdout_took_it() ? 0 : complain("stdout: cannot be written", kBadUsage);
  }
  const std::vector<Problem> problems = chosen_problems(flags);
  initialize_google_benchmark(argv[0], flags.passed_on);

  if (flags.plant && find_in_catalogue(flags.plant->rung) == nullptr) {
    throw UsageError("--plant: no rung is called '" + flags.plant->rung + "'");
  }
  std::optional<YardstickChoice> yardstick;
  if (!flags.yardstick.empty()) yardstick = read_yardstick_choice(flags.yardstick);
  const std::string out = passed_on(flags, "--benchmark_out");
  if (!flags.list) check_writable(out);
  std::ofstream samples;
  if (!flags.samples.empty() && !flags.list) samples = open_samples(flags.samples);

  if ((flags.choose_yardstick || yardstick) && cublas_lt() == nullptr) {
    throw UsageError("--yardstick, --choose-yardstick: cuBLAS needs a CUDA GPU");
  }
  std::unique_ptr<Runner> runner;  // null if only names are listed: then no device is used
  if (!flags.list) {
    check(device::available());
    const Settings settings{.cold = flags.cold,
                            .alone = flags.alone,
                            .seed = flags.seed,
                            .min_time_s = flags.min_time_s,
                            .placements = flags.cold ? 1 : flags.placements,
                            .peak_gflops = measure_peak_gflops(),
                            .plant = flags.plant,
                            .samples = samples.is_open() ? &samples : nullptr,
                            .yardstick = std::move(yardstick),
                            .workspace_limit = flags.workspace_limit};
    add_context(settings);
    runner = std::make_unique<Runner>(settings);
  }
  register_benchmarks(runner.get(), problems, flags);
  const std::size_t matches = run_benchmarks(flags, flags.list ? "" : out);
  if (matches == 0) {
    const std::string filter = benchmark::GetBenchmarkFilter();
    return complain("no benchmark matches --benchmark_filter=" + filter + ": " +
                        why_nothing_matches(filter, problems, flags),
                    kBadUsage);
  }
  if (!stdout_took_it()) return complain("stdout: cannot be written", kBadUsage);
  if (samples.is_open() && !samples.flush()) {
    return complain("--samples: cannot write " + flags.samples, kBadUsage);
  }
  if (runner != nullptr && runner->failed()) {
    return complain("a benchmark failed; its line above says why", kFailed);
  }
  return 0;
}

}  // namespace
}  // namespace tilegate::bench

int main(int argc, char** argv) try {
  return tilegate::bench::run(argc, argv);
} catch (const tilegate::bench::UsageError& error) {
  return tilegate::bench::complain(error.what(), tilegate::bench::kBadUsage);
} catch (const std::exception& error) {
  return tilegate::bench::complain(error.what(), tilegate::bench::kFailed);
}
