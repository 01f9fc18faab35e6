#include "reach/boundaries.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilegate::reach {
namespace {

constexpr std::int64_t kVector = 4;  // elements

std::int64_t tiles_of(std::int64_t size, std::int64_t unit) { return (size + unit - 1) / unit; }

// The least by which an extent can change: whole vectors of an operand whose rows run along it.
struct Steps {
  std::int64_t m = 1, n = 1, k = 1;

  explicit Steps(const Problem& problem) {
    const bool a = allows_vectors(problem, Operand::kA), b = allows_vectors(problem, Operand::kB);
    (problem.op_a == Op::kN ? k : m) = a ? kVector : 1;
    if (b) (problem.op_b == Op::kN ? n : k) = kVector;
    if (allows_vectors(problem, Operand::kC)) n = kVector;
  }
};

class Collector {
 public:
  Collector(bool all, std::string kernel, std::vector<Boundary>* found)
      : all_(all), kernel_(std::move(kernel)), found_(*found) {}

  void add(std::string_view parameter, std::string_view value, bool is_reached) {
    if (!all_ && !is_reached) return;
    const std::size_t end_of_part = parameter.find(": ");
    const std::string_view part =
        end_of_part == std::string_view::npos ? kernel_ : parameter.substr(0, end_of_part);
    found_.push_back({std::string(part), std::string(parameter), std::string(value)});
  }

  // How many there are: one, two, more.
  void add_count(const std::string& name, std::int64_t count) {
    add(name, "1", count == 1);
    add(name, "2", count == 2);
    add(name, "3+", count >= 3);
  }

  // And how the last tile ends.
  void add_tiles(const std::string& name, std::int64_t size, std::int64_t unit, std::int64_t step) {
    add_count(name, tiles_of(size, unit));
    if (unit <= 1) return;
    const std::int64_t rest = size % unit;
    add(name, "whole", size > 0 && rest == 0);
    if (unit <= step) return;
    add(name, "over", 0 < rest && rest <= step);
    add(name, "short", rest >= unit - step);
  }

  void add_ring(const std::string& name, std::int64_t trips, std::int64_t stages) {
    add(name, "0", trips == 0);
    add(name, "1", trips == 1);
    if (stages > 2) add(name, "S-1", trips == stages - 1);
    if (stages > 1) add(name, "S", trips == stages);
    add(name, "S+1", trips == stages + 1);
    add(name, "2S", trips == 2 * stages);
    add(name, "2S+1", trips == 2 * stages + 1);
  }

 private:
  bool all_;
  std::string kernel_;
  std::vector<Boundary>& found_;
};

void add_parameter(const Problem& problem, const Parameter& parameter, Collector& collector) {
  using Kind = Parameter::Kind;
  const auto& [kind, name, value, unit] = parameter;
  const Steps steps(problem);
  const std::string in = name + " in " + std::to_string(unit);
  switch (kind) {
    case Kind::kRows:
      return collector.add_tiles(in, problem.shape.m, unit, steps.m);
    case Kind::kColumns:
      return collector.add_tiles(in, problem.shape.n, unit, steps.n);
    case Kind::kDepth:
      collector.add(in, "0", problem.shape.k == 0);
      return collector.add_tiles(in, problem.shape.k, unit, steps.k);
    case Kind::kTiles:
      return collector.add_tiles(name, value, unit, 1);
    case Kind::kRing:
      return collector.add_ring(name, value, unit);
    case Kind::kCount:
      collector.add_count(name, value);
      if (unit > 0) collector.add(name, std::to_string(unit), value == unit);
      return;
    case Kind::kEach:
      return collector.add(name, std::to_string(value), true);
  }
}

// Where a plan states none: the rung's tile sizes, which are of rows, columns and k alike.
std::vector<PlannedKernel> kernels_of(const Stage& stage, const Problem& problem,
                                      const Choice& choice) {
  if (choice.kernels) return choice.kernels();
  const bool vectors = allows_vectors(problem, Operand::kA) &&
                       allows_vectors(problem, Operand::kB) && allows_vectors(problem, Operand::kC);
  PlannedKernel kernel{.name = vectors ? "vectors" : "words"};
  for (const std::int64_t tile : stage.tile_sizes) {
    for (auto* make : {parameter::rows, parameter::columns, parameter::depth}) {
      kernel.parameters.push_back(make(tile));
    }
  }
  return {kernel};
}

// Why an operand allows no vectors, if there is one reason alone.
void add_alignment(const Stage& stage, const Problem& problem, Operand operand,
                   Collector& collector) {
  const auto index = static_cast<std::size_t>(operand);
  const Extent extent = problem.extent(operand);
  const std::array<std::pair<const char*, bool>, 4> reasons = {
      {{"width", extent.cols % kVector != 0 && problem.ld(operand) % kVector == 0},
       {"ld", problem.ld(operand) % kVector != 0 && extent.cols % kVector == 0},
       {"offset", problem.offset_bytes[index] % 16 != 0},
       {"stride", problem.batch > 1 && problem.stride(operand) % kVector != 0 &&
                      problem.ld(operand) % kVector == 0}}};
  const auto count =
      std::ranges::count_if(reasons, [](const auto& reason) { return reason.second; });
  const std::string name = std::string("alignment of ") + kOperandNames[index];
  collector.add(name, "vectors", allows_vectors(problem, operand));
  for (const auto& [reason, holds] : reasons) {
    if (reason == reasons.back().first && !stage.takes_batches) continue;
    collector.add(name, reason, holds && count == 1);
  }
}

void add_stage(const Stage& stage, const Problem& problem, Collector& collector) {
  if (stage.takes_transposed) {
    for (const char* form : {"NN", "NT", "TN", "TT"}) {
      collector.add("form", form, form_name(problem) == form);
    }
  }
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    add_alignment(stage, problem, operand, collector);
  }
  collector.add("alpha or k", "0", !problem.reads_a_and_b());
  collector.add("alpha", "1", problem.alpha == 1.0F);
  collector.add("alpha", "other", problem.alpha != 1.0F && problem.alpha != 0.0F);
  if (!stage.takes_batches) return;
  collector.add("a of a batch", "shared", problem.batch > 1 && problem.stride_a == 0);
  collector.add("b of a batch", "shared", problem.batch > 1 && problem.stride_b == 0);
}

std::vector<Boundary> collect(const Stage& stage, const Problem& problem, const Choice& choice,
                              int decision, bool all) {
  std::vector<Boundary> found;
  found.reserve(128);
  Collector of_stage(all, "", &found);
  add_stage(stage, problem, of_stage);
  for (const PlannedKernel& kernel : kernels_of(stage, problem, choice)) {
    if (kernel.decision != 0 && kernel.decision != decision) continue;
    Collector collector(all, kernel.name, &found);
    collector.add("runs", "yes", true);
    for (const Parameter& parameter : kernel.parameters) {
      add_parameter(problem, parameter, collector);
    }
    collector.add("beta", "0", problem.beta == 0.0F);
    collector.add("beta", "other", problem.beta != 0.0F);
    if (stage.takes_batches) collector.add_count("batch", problem.batch);
  }
  return found;
}

}  // namespace

std::vector<Boundary> reached(const Stage& stage, const Problem& problem, const Choice& choice,
                              int decision) {
  return collect(stage, problem, choice, decision, false);
}

std::vector<Boundary> possible(const Stage& stage, const Problem& problem, const Choice& choice,
                               int decision) {
  return collect(stage, problem, choice, decision, true);
}

std::vector<int> decisions_of(const Choice& choice) {
  std::set<int> decisions;
  if (choice.decides_on_device && choice.kernels) {
    for (const PlannedKernel& kernel : choice.kernels()) decisions.insert(kernel.decision);
    if (decisions.size() > 1) decisions.erase(0);
  }
  return decisions.empty() ? std::vector{0} : std::vector(decisions.begin(), decisions.end());
}

double cost_of(const Problem& problem, const Choice& choice) {
  using Kind = Parameter::Kind;
  const auto [m, n, k] = problem.shape;
  double most = static_cast<double>(m * n) * static_cast<double>(k);
  for (const PlannedKernel& kernel :
       choice.kernels ? choice.kernels() : std::vector<PlannedKernel>()) {
    double rows = static_cast<double>(m), cols = static_cast<double>(n),
           depth = static_cast<double>(k);
    for (const Parameter& parameter : kernel.parameters) {
      const auto whole = [&](std::int64_t size) {
        return static_cast<double>(tiles_of(size, parameter.unit) * parameter.unit);
      };
      if (parameter.kind == Kind::kRows) rows = std::max(rows, whole(m));
      if (parameter.kind == Kind::kColumns) cols = std::max(cols, whole(n));
      if (parameter.kind == Kind::kDepth) depth = std::max(depth, whole(k));
    }
    most = std::max(most, rows * cols * (depth + 16.0));
  }
  return (most + 8.0 * static_cast<double>(m * n + m * k + k * n)) *
         static_cast<double>(std::max<std::int64_t>(problem.batch, 1));
}

}  // namespace tilegate::reach
