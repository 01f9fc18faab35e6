#include "reach/search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "counters/path_cases.hpp"
#include "ladder/case_list.hpp"
#include "reach/boundaries.hpp"
#include "reach/table.hpp"

namespace tilegate::reach {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr double kMostCost = 1e9;  // multiply-adds: three seconds on the executor, or less
constexpr std::int64_t kMostMultiprocessors = 132;
constexpr std::int64_t kMostK = 100'000;  // sums of integers stay exact

// A problem by what is drawn of it.
struct Genes {
  Shape shape;
  Op op_a = Op::kN, op_b = Op::kN;
  std::int64_t batch = 1, gap = 0;
  bool aligned = true;  // all but one operand, at most
  std::array<std::int64_t, 3> pad = {0, 0, 0}, offset_bytes = {0, 0, 0}, shift = {0, 0, 0};
  float alpha = 1.0F, beta = 0.0F;
  int multiprocessors = 4, compute_capability = 90;

  Case call() const {
    verifier::Padded padded{.shape = shape, .pad = pad, .alpha = alpha, .beta = beta};
    padded.op_a = op_a;
    padded.op_b = op_b;
    padded.batch = batch;
    padded.gap = gap;
    if (aligned) {
      padded = ladder::padded_to_vectors(padded);
      for (std::size_t i = 0; i < pad.size(); ++i) padded.pad[i] += pad[i];
    }
    padded.offset_bytes = offset_bytes;
    if (batch > 1 && gap >= 0) padded.shift = shift;
    return {.problem = padded,
            .multiprocessors = multiprocessors,
            .compute_capability = compute_capability};
  }
};

class Draw {
 public:
  explicit Draw(const Stage& stage) : stage_(stage) {
    for (auto* units : {&rows_, &columns_, &depths_}) {
      units->insert(stage.tile_sizes.begin(), stage.tile_sizes.end());
    }
  }

  // Tiles of a plan: what further draws are near.
  void learn(const Choice& choice) {
    if (!choice.kernels) return;
    for (const PlannedKernel& kernel : choice.kernels()) {
      for (const Parameter& parameter : kernel.parameters) {
        using Kind = Parameter::Kind;
        if (parameter.kind == Kind::kRows) rows_.insert(parameter.unit);
        if (parameter.kind == Kind::kColumns) columns_.insert(parameter.unit);
        if (parameter.kind == Kind::kDepth) depths_.insert(parameter.unit);
        if (parameter.kind == Kind::kRing) stages_.insert(parameter.unit);
      }
    }
  }

  Genes any() {
    Genes genes{.shape = {extent(rows_), extent(columns_), depth()}};
    if (below(12) == 0) {
      genes.shape.m = one_of(rows_) * (7 + below(20)) + near();
      genes.shape.k = 1 + below(20);
    }
    draw_forms(genes);
    draw_batch(genes);
    draw_factors(genes);
    draw_alignment(genes);
    draw_device(genes);
    return genes;
  }

  // One or two of them changed.
  Genes like(Genes genes) {
    for (std::int64_t changes = 1 + below(2); changes > 0; --changes) {
      auto& [m, n, k] = genes.shape;
      switch (below(13)) {
        case 0:
          m = extent(rows_);
          break;
        case 1:
          n = extent(columns_);
          break;
        case 2:
          k = depth();
          break;
        case 3:
          m = std::max<std::int64_t>(m + near() + one_of(rows_) * (below(3) - 1), 1);
          break;
        case 4:
          n = std::max<std::int64_t>(n + near() + one_of(columns_) * (below(3) - 1), 1);
          break;
        case 5:
          k = std::max<std::int64_t>(k + near() + one_of(depths_) * (below(3) - 1), 0);
          break;
        case 6:
          draw_forms(genes);
          break;
        case 7:
          draw_batch(genes);
          break;
        case 8:
          draw_factors(genes);
          break;
        case 9:
          draw_alignment(genes);
          break;
        case 10:
          genes.aligned = !genes.aligned;
          break;
        case 11:
          k = k * (1 + below(4)) / (1 + below(3));
          break;
        default:
          draw_device(genes);
      }
    }
    return genes;
  }

  // What the parameter is at the boundary, or near it.
  std::int64_t wanted(const Parameter& parameter, const std::string& boundary) {
    using Kind = Parameter::Kind;
    const std::int64_t number = std::atoi(boundary.c_str());
    if (parameter.kind == Kind::kCount) return number;
    const bool counts = parameter.kind == Kind::kTiles && number > 0;
    const std::int64_t units = counts ? number : 1 + below(2);
    return std::max<std::int64_t>(parameter.unit * units + below(3) - 1, 1);
  }

  // With the parameter so large instead of as it is `now`, if it is proportional to what is
  // changed, or inversely so. Where K is changed, the operands may keep their size.
  Genes scaled(Genes genes, std::int64_t now, std::int64_t wanted) {
    if (below(2) == 0) std::swap(wanted, now);
    const auto scale = [&](std::int64_t size, std::int64_t unit, bool inversely = false) {
      const std::int64_t whole = (size + unit - 1) / unit * unit;
      const std::int64_t times = inversely ? now : wanted, by = inversely ? wanted : now;
      return std::max<std::int64_t>((whole * times + by / 2) / std::max<std::int64_t>(by, 1), 1);
    };
    auto& [m, n, k] = genes.shape;
    switch (below(5)) {
      case 0:
        m = std::max<std::int64_t>(scale(m, one_of(rows_)) + near(), 1);
        break;
      case 1:
        n = std::max<std::int64_t>(scale(n, one_of(columns_)) + near(), 1);
        break;
      case 2:
        k = std::clamp<std::int64_t>(scale(k, one_of(depths_)) + near(), 0, kMostK);
        if (below(2) == 0) m = scale(m, 1, true);
        break;
      case 3:
        genes.batch = scale(genes.batch, 1);
        break;
      default:
        genes.multiprocessors =
            static_cast<int>(std::min(scale(genes.multiprocessors, 1), kMostMultiprocessors));
    }
    return genes;
  }

  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }

 private:
  std::int64_t one_of(const std::set<std::int64_t>& units) {
    return *std::next(units.begin(), below(static_cast<std::int64_t>(units.size())));
  }
  std::int64_t near() { return std::array{-4, -1, 0, 0, 1, 4}[below(6)]; }

  std::int64_t extent(const std::set<std::int64_t>& units) {
    if (below(3) == 0) return 1 + below(40);
    return std::max<std::int64_t>(one_of(units) * (1 + below(4)) + near(), 1);
  }
  // Also as many tiles as a ring has stages, once or twice.
  std::int64_t depth() {
    if (below(5) == 0) {
      return static_cast<std::int64_t>(std::exp(static_cast<double>(below(1000)) * 0.0106));
    }
    const std::int64_t stages = stages_.empty() ? 1 : one_of(stages_);
    const std::int64_t tiles =
        below(2) == 0 ? below(6) : stages * (1 + below(2)) * (1 + below(3)) + below(3) - 1;
    return std::max<std::int64_t>(one_of(depths_) * tiles + near(), 0);
  }
  void draw_forms(Genes& genes) {
    if (!stage_.takes_transposed) return;
    genes.op_a = below(2) == 0 ? Op::kN : Op::kT;
    genes.op_b = below(2) == 0 ? Op::kN : Op::kT;
  }
  void draw_batch(Genes& genes) {
    if (!stage_.takes_batches) return;
    genes.batch = std::array{1, 1, 1, 2, 2, 3, 5, 9}[below(8)];
    genes.gap = below(4) - 1;
  }
  void draw_factors(Genes& genes) {
    const auto& factors = ladder::kWholeFactors[below(ladder::kWholeFactors.size())];
    genes.alpha = factors.alpha;
    genes.beta = factors.beta;
  }
  void draw_alignment(Genes& genes) {
    genes.pad = genes.offset_bytes = genes.shift = {0, 0, 0};
    genes.aligned = below(3) > 0;
    if (!genes.aligned) {
      for (std::int64_t& pad : genes.pad) pad = below(3);
      for (std::int64_t& offset : genes.offset_bytes) offset = 4 * below(4);
      return;
    }
    for (std::int64_t* size : {&genes.shape.m, &genes.shape.n, &genes.shape.k}) {
      if (below(4) > 0) *size = (*size + 3) / 4 * 4;
    }
    if (below(3) > 0) return;
    const auto operand = static_cast<std::size_t>(below(3));
    auto& changed = below(3) == 0 ? genes.pad : below(2) == 0 ? genes.shift : genes.offset_bytes;
    changed[operand] = (1 + below(3)) * (&changed == &genes.offset_bytes ? 4 : 1);
  }
  void draw_device(Genes& genes) {
    genes.multiprocessors = std::array{4, 4, 4, 1, 2, 3, 8, 132, 132}[below(9)];
    genes.compute_capability = std::array{90, 90, 90, 90, 80, 86}[below(6)];
  }

  const Stage& stage_;
  std::mt19937_64 random_{kSeed};
  std::set<std::int64_t> rows_, columns_, depths_, stages_;
};

// Problems that have reached something new, by what they reached, and what nothing has reached yet.
class Corpus {
 public:
  explicit Corpus(const Stage& stage) : stage_(stage) {}

  void add(const Genes& genes, const Problem& problem, const Choice& choice, int decision) {
    bool is_new = false;
    const std::vector<Boundary> now = reached(stage_, problem, choice, decision);
    for (const Boundary& boundary : now) {
      if (!of_.try_emplace({boundary.kernel, boundary.parameter}).second) continue;
      for (const Boundary& other : possible(stage_, problem, choice, decision)) {
        if (other.kernel != boundary.kernel || other.parameter != boundary.parameter) continue;
        if (reason_of(stage_, other).empty()) open_.insert(other);
      }
    }
    for (const Boundary& boundary : now) {
      if (!seen_.insert(boundary).second) continue;
      is_new = true;
      open_.erase(boundary);
    }
    if (choice.kernels) {
      for (const PlannedKernel& kernel : choice.kernels()) {
        for (const Parameter& parameter : kernel.parameters) {
          add_extreme(genes, {kernel.name, parameter.name}, parameter);
        }
      }
    }
    if (!is_new) return;
    for (const Boundary& boundary : now) {
      of_[{boundary.kernel, boundary.parameter}].push_back(genes);
    }
  }

  // Towards an open boundary: like a problem that reached another one of its parameter; or from the
  // least or the most that the parameter has been.
  Genes next(Draw& draw) const {
    if (open_.empty()) return draw.any();
    const auto at = std::next(open_.begin(), draw.below(static_cast<std::int64_t>(open_.size())));
    const auto extremes = extremes_.find({at->kernel, at->parameter});
    if (extremes != extremes_.end() && draw.below(2) == 0) {
      const auto& [least, most] = extremes->second;
      const std::int64_t wanted = draw.wanted(least.parameter, at->value);
      const bool from_most =
          wanted > most.parameter.value || (wanted >= least.parameter.value && draw.below(2) == 0);
      const Extreme& from = from_most ? most : least;
      return draw.scaled(from.genes, from.parameter.value, wanted);
    }
    const std::vector<Genes>& all = of_.at({at->kernel, at->parameter});
    const std::int64_t chosen = draw.below(static_cast<std::int64_t>(all.size()));
    return draw.like(all[static_cast<std::size_t>(chosen)]);
  }

 private:
  using KernelParameter = std::pair<std::string, std::string>;

  struct Extreme {
    Genes genes;
    Parameter parameter;
  };

  void add_extreme(const Genes& genes, const KernelParameter& of, const Parameter& parameter) {
    const Extreme found{genes, parameter};
    auto& [least, most] = extremes_.try_emplace(of, std::array{found, found}).first->second;
    if (parameter.value < least.parameter.value) least = found;
    if (parameter.value > most.parameter.value) most = found;
  }

  const Stage& stage_;
  std::map<KernelParameter, std::vector<Genes>> of_;
  std::map<KernelParameter, std::array<Extreme, 2>> extremes_;
  std::set<Boundary> seen_, open_;
};

}  // namespace

void for_each_choice(const Stage& stage, const Case& call, bool all, const Visit& visit) {
  const Device device = device_of(call);
  const Plan plan = stage.plan(call.problem, device, call.configuration);
  if (!plan.ok() || call.problem.is_empty()) return;
  const auto visit_own = [&](const Choice& choice) {
    Case found = call;
    found.configuration = stage.candidates == nullptr ? "" : choice.configuration;
    if (choice.status.ok()) visit(found, plan.problem(), choice);
  };
  if (!all || stage.candidates == nullptr) return visit_own(plan.choice());
  for (const Candidate& candidate : stage.candidates(plan.problem(), device)) {
    if (!ladder::is_borrowed(candidate.choice.configuration)) visit_own(candidate.choice);
  }
}

void visit_decided(const Stage& stage, const Case& call, const Visit& visit) {
  const auto [m, n, k] = call.problem.shape;
  const double least = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                       static_cast<double>(call.problem.batch);
  if (least > kMostCost) return;
  for_each_choice(stage, call, true,
                  [&](const Case& chosen, const Problem& problem, const Choice& choice) {
                    if (cost_of(problem, choice) > kMostCost) return;
                    for (const int decision : decisions_of(choice)) {
                      Case decided = chosen;
                      decided.decision = decision;
                      visit(decided, problem, choice);
                    }
                  });
}

void search(const Stage& stage, int draws, const Visit& visit) {
  Draw draw(stage);
  Corpus corpus(stage);
  for (int i = 0; i < draws; ++i) {
    const Genes genes = i % 3 == 0 ? draw.any() : corpus.next(draw);
    visit_decided(stage, genes.call(),
                  [&](const Case& call, const Problem& problem, const Choice& choice) {
                    draw.learn(choice);
                    corpus.add(genes, problem, choice, call.decision);
                    visit(call, problem, choice);
                  });
  }
}

}  // namespace tilegate::reach
