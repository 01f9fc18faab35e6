// plan: which configurations a stage offers for a problem, which of them it takes, and why: how
// long its cost model expects each to take on an H200, and where the time goes. Touches no device.
#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include <tilegate/catalogue.hpp>

namespace {

using namespace tilegate;

constexpr const char* kUsage =
    "usage: plan CASE...   as Sgemm/1000x1000x1000/TN: the configurations that the stage offers on "
    "an\n"
    "                      NVIDIA H200, the quickest by its cost model first, and which it takes\n"
    "\n"
    "rounds: blocks per place that the GPU has for them; tiles: the share of them that is of C.\n"
    "Microseconds: multiply, of all rounds; move, of each operand through memory, meanwhile; add, "
    "of\n"
    "the partial sums of a split; pack, of operands. '-': its model does not tell.\n";

// 132 multiprocessors, compute capability 9.0; no plan for it can be launched.
Device h200() {
  return {.ordinal = -1,
          .is_cuda = true,
          .name = "NVIDIA H200",
          .compute_capability = 90,
          .multiprocessors = 132,
          .total_memory = std::size_t{141} << 30};
}

std::string cell(const char* form, double value) {
  char text[32] = "-";
  if (value > 0.0) std::snprintf(text, sizeof text, form, value);
  return text;
}

void print(const Candidate& candidate) {
  const Parts& parts = candidate.parts;
  const auto us = [](double seconds) { return cell("%.2f", seconds * 1e6); };
  std::printf("  %10.2f  %7s  %5s  %8s  %8s  %6s  %6s  %s\n", candidate.seconds * 1e6,
              cell("%.2f", parts.rounds).c_str(), cell("%.2f", parts.tiles).c_str(),
              us(parts.multiply).c_str(), us(parts.move).c_str(), us(parts.add).c_str(),
              us(parts.pack).c_str(), candidate.choice.configuration.c_str());
}

Status print(const std::string& name) {
  NamedProblem named;
  if (Status s = parse_named_problem(name, &named); !s.ok()) return s;
  const Stage* stage = find_in_catalogue(named.stage);
  if (stage == nullptr) {
    return Status::invalid_argument("stage", "no stage is called '" + named.stage + "'");
  }
  const Plan chosen = stage->plan(named.problem, h200(), named.configuration);
  if (!chosen.ok()) return chosen.status();
  std::printf("%s: %s, %zu bytes of workspace, rounding chain %lld\n", name.c_str(),
              chosen.configuration().empty() ? "one configuration" : chosen.configuration().c_str(),
              chosen.workspace_bytes(), static_cast<long long>(chosen.rounding_chain()));
  if (chosen.operand_error() > 0.0) {
    std::printf("  splits operands: %.2g x |alpha| x K x the largest of a row x the largest of a "
                "column on top of the chain's error%s\n",
                chosen.operand_error(),
                chosen.decides_on_device() ? "; the device may still decide for FP32" : "");
  }
  if (stage->candidates == nullptr || named.problem.is_empty()) return {};
  auto candidates = stage->candidates(named.problem, h200());
  std::ranges::sort(candidates, {}, &Candidate::seconds);
  const bool is_tuned = std::ranges::any_of(candidates, &Candidate::is_tuned);
  std::printf("  class %s: %s\n", problem_class(named.problem).c_str(),
              is_tuned ? "chosen by the table, from measurements of such problems"
              : named.problem.math == Math::fp32_split
                  ? "operands may be split, of which the table says nothing: the quickest by the "
                    "cost models"
                  : "not in the table, so the quickest by the cost models");
  std::printf("  %10s  %7s  %5s  %8s  %8s  %6s  %6s\n", "us", "rounds", "tiles", "multiply", "move",
              "add", "pack");
  for (const Candidate& candidate : candidates) print(candidate);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> names(argv + 1, static_cast<std::size_t>(argc - 1));
  if (names.empty() || std::string_view(names[0]) == "--help") {
    std::fputs(kUsage, names.empty() ? stderr : stdout);
    return names.empty() ? 2 : 0;
  }
  for (const char* name : names) {
    if (const Status status = print(name); !status.ok()) {
      std::fprintf(stderr, "plan: %s: %s\n", name, status.message().c_str());
      return status.code() == Status::Code::kInvalidArgument ? 2 : 1;
    }
  }
  return 0;
}
