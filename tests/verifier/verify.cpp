#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/device.hpp>

#include "verifier/case.hpp"
#include "verifier/guarded_matrix.hpp"
#include "verifier/operands.hpp"
#include "verifier/oracle.hpp"
#include "verifier/reference_values.hpp"

namespace tilegate::verifier {
namespace {

constexpr std::size_t kMaxShown = 8;                       // wrong elements in a report
constexpr double kExactIntegers = 1 << 24;                 // float32 holds every integer up to here
constexpr double kLargestInteger = 3.0;                    // of Inputs::kIntegers
constexpr std::int64_t kMaxRoundingChain = (1 << 24) - 1;  // γ needs L·u < 1
// A rung must not loosen its bound: K roundings of a serial sum, alpha, beta, and a few for the
// partial sums of an element.
constexpr std::int64_t kMostExtraRoundings = 16;

struct Failure {
  const char* check;
  std::string what;       // one line
  std::string more = {};  // further lines, each after a line feed
};
using Outcome = std::optional<Failure>;

bool is_exact(const Case& test_case) { return test_case.inputs != Inputs::kUniform; }

// One case of one stage: operands, reference, results.
class Trial {
 public:
  Trial(const Stage& stage, const Case& test_case)
      : stage_(stage),
        case_(test_case),
        plan_(stage.plan(case_.problem, device_of(case_), case_.configuration,
                         case_.workspace_limit)),
        a_(make_operand(case_, Operand::kA)),
        b_(make_operand(case_, Operand::kB)),
        c_(make_operand(case_, Operand::kC)),
        workspace_(make_workspace(case_, plan_)) {}

  Outcome judge(std::span<const Order> orders);

 private:
  Operands operands() const;
  Outcome check_case(std::span<const Order> orders) const;
  Status upload(bool is_first);
  Status make_reference();
  Status run(Order order);
  Outcome check_memory() const;
  Outcome check_decision() const;
  Outcome check_sample() const;
  Outcome check_elements() const;
  Outcome check_repeat(const std::vector<float>& first) const;
  template <typename IsRight>
  Outcome find_faults(const char* check, const Tolerance& tolerance, IsRight is_right) const;
  struct Position {
    std::int64_t index, row, col;  // batch index, and the element of that matrix
  };
  template <typename Visit>
  void for_each_result(Visit visit) const;
  bool is_left_out(float got) const;
  std::string to_string(const Position& at) const;

  const Stage& stage_;
  const Case& case_;
  const Plan plan_;
  GuardedMatrix a_, b_, c_, workspace_;
  std::vector<GuardedMatrix*> matrices_ = {&a_, &b_, &c_, &workspace_};
  ReferenceValues reference_;
  Order order_ = Order::kForward;  // of the latest run
};

Operands Trial::operands() const {
  return {.a = case_.null_inputs ? nullptr : a_.on_device(),
          .b = case_.null_inputs ? nullptr : b_.on_device(),
          .c = c_.on_device(),
          .workspace = workspace_.cols() > 0 ? workspace_.on_device() : nullptr,
          .workspace_bytes = plan_.workspace_bytes()};
}

// Conditions on the case itself, without which the verdict would mean nothing.
Outcome Trial::check_case(std::span<const Order> orders) const {
  const std::int64_t chain = plan_.rounding_chain();
  const std::int64_t most =
      std::min(case_.problem.shape.k + kMostExtraRoundings, kMaxRoundingChain);
  if ((chain < 1 && !case_.problem.is_empty()) || chain > most) {
    return Failure{"bound", "the declared rounding chain of " + std::to_string(chain) +
                                " is not in [1, " + std::to_string(most) + "]"};
  }
  const double largest = kLargestInteger * kLargestInteger *
                             static_cast<double>(case_.problem.shape.k) *
                             std::fmax(1.0, std::fabs(double{case_.problem.alpha})) +
                         kLargestInteger * std::fabs(double{case_.problem.beta});
  if (case_.inputs == Inputs::kIntegers && std::isfinite(largest) && largest > kExactIntegers) {
    return Failure{"exact", "the case is too large: its sums may pass 2^24"};
  }
  const bool has_sample = std::find(orders.begin(), orders.end(), Order::kSample) != orders.end();
  if (has_sample && (orders.size() > 1 || case_.problem.beta != 0.0F || !case_.plants.empty())) {
    return Failure{"sample", "a sample needs a single run, beta 0, and no planted values"};
  }
  return std::nullopt;
}

// Uploads the workspace only before the first run: later runs find what the run before has left.
Status Trial::upload(bool is_first) {
  for (GuardedMatrix* matrix : matrices_) {
    if (matrix == &workspace_ && !is_first) continue;
    if (Status s = matrix->upload(); !s.ok()) return s;
  }
  return {};
}

Status Trial::make_reference() {
  const Images images{a_, b_, c_};
  if (Status s = reference_.find(case_.problem, images, operands()); !s.ok()) return s;
  if (plan_.operand_error() > 0.0) reference_.find_largest(case_.problem, images);
  return {};
}

Status Trial::run(Order order) {
  {
    const ClosedGuards a(a_);
    const ClosedGuards b(b_);
    const ClosedGuards c(c_);
    const ClosedGuards workspace(workspace_);
    // Kernels of a plan with a workspace read the results of all blocks of earlier kernels.
    order_ = order == Order::kSample && workspace_.cols() > 0 ? Order::kForward : order;
    set_order(order_, case_.seed);
    Status launched = plan_.launch(operands(), begin_call(case_.problem, operands()));
    Status finished = device::synchronize();
    Status kept = end_call();
    set_order(Order::kForward);
    for (Status* status : {&launched, &finished, &kept}) {
      if (!status->ok()) return std::move(*status);
    }
  }
  for (GuardedMatrix* matrix : matrices_) {
    if (Status s = matrix->download(); !s.ok()) return s;
  }
  return {};
}

Outcome Trial::check_memory() const {
  for (const GuardedMatrix* matrix : matrices_) {
    if (auto change = matrix->changed_guard()) return Failure{"guards", *change};
  }
  for (const GuardedMatrix* matrix : {&a_, &b_, &c_}) {
    if (auto change = matrix->changed_padding()) return Failure{"padding", *change};
  }
  for (const GuardedMatrix* matrix : {&a_, &b_}) {
    if (auto change = matrix->changed_element()) return Failure{"inputs", *change};
  }
  return std::nullopt;
}

Outcome Trial::check_decision() const {
  if (case_.decision == 0) return std::nullopt;
  if (!plan_.decides_on_device())
    return Failure{"decision", "the plan decides nothing on the device"};
  const int decision = std::bit_cast<std::int32_t>(workspace_.found(0, 0)[0]);
  if (decision == case_.decision) return std::nullopt;
  return Failure{"decision", "expected " + std::to_string(case_.decision) + ", got " +
                                 std::to_string(decision)};
}

// Calls visit(index in the reference, position, found) for each element of C.
template <typename Visit>
void Trial::for_each_result(Visit visit) const {
  std::size_t i = 0;
  for (std::int64_t index = 0; index < c_.batch(); ++index) {
    for (std::int64_t row = 0; row < c_.rows(); ++row) {
      const float* found = c_.found(row, index);
      for (std::int64_t col = 0; col < c_.cols(); ++col) {
        visit(i++, Position{index, row, col}, found[col]);
      }
    }
  }
}

// Counts and lists the elements for which `is_right(got, value, scale, largest)` does not hold.
template <typename IsRight>
Outcome Trial::find_faults(const char* check, const Tolerance& tolerance, IsRight is_right) const {
  const auto& [value, scale, largest_products] = reference_;
  std::size_t faults = 0;
  Failure failure{.check = check, .what = {}};
  for_each_result([&](std::size_t i, const Position& at, float got) {
    const double largest = largest_products.empty() ? 0.0 : largest_products[i];
    if (is_right(got, value[i], scale[i], largest) || is_left_out(got)) return;
    if (++faults > kMaxShown) return;
    char text[160];
    std::snprintf(text, sizeof(text), " is %.9g, expected %.17g (bound %.3g)", double{got},
                  value[i],
                  tolerance.gamma * scale[i] + tolerance.underflow + tolerance.operands * largest);
    const std::string element = to_string(at) + text;
    if (faults == 1) {
      failure.what = "element " + element;
    } else {
      failure.more += "\n    " + element;
    }
  });
  if (faults == 0) return std::nullopt;
  failure.more = "\n  " + std::to_string(faults) + " of " + std::to_string(value.size()) +
                 " elements of c are wrong" + failure.more +
                 (faults > kMaxShown ? "\n    ..." : "");
  return failure;
}

// Whether a sample has not written the element: it is still NaN.
bool Trial::is_left_out(float got) const { return order_ == Order::kSample && std::isnan(got); }

// All blocks write the same number of elements, except at the edges of C.
Outcome Trial::check_sample() const {
  if (order_ != Order::kSample) return std::nullopt;
  double written = 0.0;
  bool has_ends = true;
  for_each_result([&](std::size_t i, const Position&, float got) {
    if (!is_left_out(got)) {
      written += 1.0;
    } else if (i == 0 || i + 1 == reference_.value.size()) {
      has_ends = false;
    }
  });
  const auto [all, run] = blocks_run();
  const double per_block = static_cast<double>(reference_.value.size()) / all;
  if (has_ends && std::fabs(written - run * per_block) <= 2.0 * per_block) return std::nullopt;
  return Failure{"sample", std::to_string(written) + " elements written by " + std::to_string(run) +
                               " of " + std::to_string(all) + " blocks of " +
                               std::to_string(per_block) + " elements each" +
                               (has_ends ? "" : ", and not the first and the last of C")};
}

std::string Trial::to_string(const Position& at) const {
  const std::string index = c_.batch() > 1 ? std::to_string(at.index) + ": " : "";
  return "(" + index + std::to_string(at.row) + ", " + std::to_string(at.col) + ")";
}

Outcome Trial::check_elements() const {
  const Tolerance tolerance =
      is_exact(case_) ? Tolerance{}
                      : forward_error(plan_.rounding_chain(), case_.problem, plan_.operand_error());
  const auto finite = [](float got, double value, double, double) {
    return !std::isfinite(value) || std::isfinite(got);
  };
  const auto same_class = [&](float got, double value, double scale, double largest) {
    return std::isfinite(value) || within(got, value, scale, tolerance, largest);
  };
  const auto right = [&](float got, double value, double scale, double largest) {
    return within(got, value, scale, tolerance, largest);
  };
  Outcome wrong = find_faults(is_exact(case_) ? "exact" : "bound", tolerance, right);
  if (!wrong) return std::nullopt;  // then all elements also pass the next two checks
  if (Outcome failure = find_faults("finite", tolerance, finite)) return failure;
  if (Outcome failure = find_faults("class", tolerance, same_class)) return failure;
  return wrong;
}

// `first`: C after the first run, in the layout of the reference.
Outcome Trial::check_repeat(const std::vector<float>& first) const {
  Outcome failure;
  for_each_result([&](std::size_t i, const Position& at, float is) {
    const float was = first[i];
    if (std::bit_cast<std::uint32_t>(was) == std::bit_cast<std::uint32_t>(is) || failure) return;
    char text[96];
    std::snprintf(text, sizeof(text), " was %.9g in the first run, then %.9g", double{was},
                  double{is});
    failure = Failure{"repeat", "element " + to_string(at) + text};
  });
  return failure;
}

Outcome Trial::judge(std::span<const Order> orders) {
  if (!plan_.ok()) return Failure{"status", "plan: " + plan_.status().message()};
  if (Outcome failure = check_case(orders)) return failure;
  if (Status s = stage_.prepare(); !s.ok()) return Failure{"status", "prepare: " + s.message()};
  std::vector<float> first;
  bool is_first = true;
  for (const Order order : orders) {
    if (Status s = upload(is_first); !s.ok()) return Failure{"status", "upload: " + s.message()};
    if (is_first) {
      if (Status s = make_reference(); !s.ok()) return Failure{"status", "oracle: " + s.message()};
    }
    if (Status s = run(order); !s.ok()) return Failure{"status", s.message()};
    if (Outcome failure = check_memory()) return failure;
    if (Outcome failure = check_decision()) return failure;
    if (Outcome failure = check_sample()) return failure;
    const bool is_repeatable = stage_.restrictions.not_repeatable.empty();
    if (is_first || !is_repeatable) {
      if (Outcome failure = check_elements()) return failure;
    }
    if (is_first) {
      first.resize(reference_.value.size());
      for_each_result([&](std::size_t i, const Position&, float got) { first[i] = got; });
    } else if (is_repeatable) {
      if (Outcome failure = check_repeat(first)) return failure;
    }
    is_first = false;
  }
  return std::nullopt;
}

}  // namespace

Verdict verify(const Stage& stage, const Case& test_case, std::span<const Order> orders) {
  const Outcome failure = Trial(stage, test_case).judge(orders);
  if (!failure) return {};
  std::string of = std::string(stage.name);
  if (!test_case.configuration.empty()) of += "@" + test_case.configuration;
  return {.ok = false,
          .check = failure->check,
          .report = of + " " + tilegate::to_string(test_case.problem) + ": " + failure->what +
                    "\n  check `" + failure->check + "`, case " + name_of(test_case) + ", seed " +
                    std::to_string(test_case.seed) + failure->more};
}

}  // namespace tilegate::verifier
