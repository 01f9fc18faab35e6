// plan: which configurations a stage offers for a problem, and how long its cost model expects each
// to take on an H200. Touches no device.
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
    "                      NVIDIA H200, the quickest by its cost model first\n";

// 132 multiprocessors, compute capability 9.0; no plan for it can be launched.
Device h200() {
  return {.ordinal = -1,
          .is_cuda = true,
          .name = "NVIDIA H200",
          .compute_capability = 90,
          .multiprocessors = 132,
          .total_memory = std::size_t{141} << 30};
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
  if (stage->candidates == nullptr || named.problem.is_empty()) return {};
  auto candidates = stage->candidates(named.problem, h200());
  std::ranges::sort(candidates, {}, &Candidate::seconds);
  for (const Candidate& candidate : candidates) {
    std::printf("  %10.2f us  %s\n", candidate.seconds * 1e6,
                candidate.choice.configuration.c_str());
  }
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
