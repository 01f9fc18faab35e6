// plan: lists the configurations of a stage for a problem with their expected times on an H200 and
// the parts of these times, and names the chosen one. Uses no device.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
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
    "       plan --workspace-limit=BYTES CASE...   only choices that need no more, panels too\n"
    "       plan --table PROBLEM...   as 1000x1000x1000/TN: a line for each plan of each stage on "
    "two "
    "GPUs,\n"
    "                      to be compared with another build's\n"
    "\n"
    "waves: of blocks; tiles: the share of the tiles' elements inside C.\n"
    "Microseconds: multiply, of all waves; move, memory traffic, at the same time; add, of the\n"
    "partial sums of a split; pack, of operands. '-': not modelled.\n";

// An H200 for planning: 132 multiprocessors, compute capability 9.0. Its plans cannot be launched.
Device h200() {
  return {.ordinal = -1,
          .is_cuda = true,
          .name = "NVIDIA H200",
          .compute_capability = 90,
          .multiprocessors = 132,
          .total_memory = std::size_t{141} << 30};
}

Device a100() {
  return {.ordinal = -1,
          .is_cuda = true,
          .name = "NVIDIA A100-SXM4-80GB",
          .compute_capability = 80,
          .multiprocessors = 108,
          .total_memory = std::size_t{80} << 30};
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
              cell("%.2f", parts.waves).c_str(), cell("%.2f", parts.tiles).c_str(),
              us(parts.multiply).c_str(), us(parts.move).c_str(), us(parts.add).c_str(),
              us(parts.pack).c_str(), candidate.choice.configuration.c_str());
}

Status print(const std::string& name, std::size_t workspace_limit) {
  NamedProblem named;
  if (Status s = parse_named_problem(name, &named); !s.ok()) return s;
  const Stage* stage = find_in_catalogue(named.stage);
  if (stage == nullptr) {
    return Status::invalid_argument("stage", "no stage is called '" + named.stage + "'");
  }
  const Plan chosen = stage->plan(named.problem, h200(), named.configuration, workspace_limit);
  if (!chosen.ok()) return chosen.status();
  std::printf("%s: %s, %zu bytes of workspace, rounding chain %lld\n", name.c_str(),
              chosen.configuration().empty() ? "one configuration" : chosen.configuration().c_str(),
              chosen.workspace_bytes(), static_cast<long long>(chosen.rounding_chain()));
  if (chosen.operand_error() > 0.0) {
    std::printf(
        "  splits operands: %.2g x |alpha| x K x the largest of a row x the largest of a "
        "column on top of the chain's error%s\n",
        chosen.operand_error(),
        chosen.decides_on_device() ? "; the device may still decide for FP64" : "");
  }
  if (stage->candidates == nullptr || named.problem.is_empty()) return {};
  auto candidates = stage->candidates(named.problem, h200());
  if (stage->panels != nullptr && workspace_limit != kNoWorkspaceLimit) {
    std::ranges::move(stage->panels(named.problem, h200(), workspace_limit),
                      std::back_inserter(candidates));
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.choice.workspace_bytes > workspace_limit;
  });
  std::ranges::sort(candidates, {}, &Candidate::seconds);
  const bool is_tuned = std::ranges::any_of(candidates, &Candidate::is_tuned);
  std::printf("  class %s: %s\n", problem_class(named.problem).c_str(),
              is_tuned ? "chosen by the table, from measurements of such problems"
              : named.problem.math == Math::fp32_split
                  ? "operands may be split, of which the table says nothing: the quickest by the "
                    "cost models"
                  : "not in the table, so the quickest by the cost models");
  std::printf("  %10s  %7s  %5s  %8s  %8s  %6s  %6s\n", "us", "waves", "tiles", "multiply", "move",
              "add", "pack");
  for (const Candidate& candidate : candidates) print(candidate);
  return {};
}

// All values of the stage's plan and of its candidates, bit for bit.
void print_row(const Stage& stage, const Problem& problem, const std::string& name,
               const Device& device) {
  const Plan plan = stage.plan(problem, device);
  if (plan.status().code() == Status::Code::kUnsupported) return;
  std::printf("%s/%s on %s: '%s', %zu bytes, chain %lld, %a%s", std::string(stage.name).c_str(),
              name.c_str(), device.name.c_str(), plan.configuration().c_str(),
              plan.workspace_bytes(), static_cast<long long>(plan.rounding_chain()),
              plan.operand_error(), plan.ok() ? "" : plan.status().message().c_str());
  if (stage.candidates != nullptr && !problem.is_empty() && plan.ok()) {
    for (const Candidate& candidate : stage.candidates(plan.problem(), device)) {
      std::printf(" %s %a", candidate.choice.configuration.c_str(), candidate.seconds);
    }
  }
  std::printf("\n");
}

Status print_table(std::span<char* const> names) {
  for (const std::string name : names) {
    NamedProblem named;
    if (Status s = parse_named_problem("Stage/" + name, &named); !s.ok()) return s;
    for (const Device& device : {h200(), a100()}) {
      for (const Stage* stage : catalogue_stages()) print_row(*stage, named.problem, name, device);
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::span<char*> names(argv + 1, static_cast<std::size_t>(argc - 1));
  if (names.empty() || std::string_view(names[0]) == "--help") {
    std::fputs(kUsage, names.empty() ? stderr : stdout);
    return names.empty() ? 2 : 0;
  }
  const auto exit_code = [](const char* name, const Status& status) {
    if (status.ok()) return 0;
    std::fprintf(stderr, "plan: %s: %s\n", name, status.message().c_str());
    return status.code() == Status::Code::kInvalidArgument ? 2 : 1;
  };
  if (std::string_view(names[0]) == "--table") {
    return exit_code("--table", print_table(names.subspan(1)));
  }
  std::size_t workspace_limit = kNoWorkspaceLimit;
  constexpr std::string_view kLimit = "--workspace-limit=";
  if (const std::string_view first = names[0]; first.starts_with(kLimit)) {
    const std::string_view text = first.substr(kLimit.size());
    const char* const text_end = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), text_end, workspace_limit);
    if (error != std::errc() || end != text_end) {
      return exit_code(names[0], Status::invalid_argument("bytes", "that is no count of bytes"));
    }
    names = names.subspan(1);
    if (names.empty()) return exit_code(kLimit.data(), Status::invalid_argument("case", "no case"));
  }
  for (const char* name : names) {
    if (const int code = exit_code(name, print(name, workspace_limit)); code != 0) return code;
  }
  return 0;
}
