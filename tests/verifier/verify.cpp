#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/device.hpp>

#include "verifier/case.hpp"
#include "verifier/guarded_matrix.hpp"
#include "verifier/oracle.hpp"

namespace tilegate::verifier {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kWorkspaceAlignment = 16;                    // bytes
constexpr std::size_t kMaxShown = 8;                       // elements at fault in a report
constexpr double kHostReference = 1 << 24;                 // multiplications; above, a GPU does it
constexpr double kExactIntegers = 1 << 24;                 // float32 holds every integer up to here
constexpr double kLargestInteger = 3.0;                    // of Inputs::kIntegers
constexpr std::int64_t kMaxRoundingChain = (1 << 24) - 1;  // γ needs L·u < 1
// A rung may not loosen its own bound: K roundings of a serial sum, alpha, beta, and those of the
// sums in which a block, or several, may share the K of an element.
constexpr std::int64_t kMostExtraRoundings = 16;

struct Failure {
  const char* check;
  std::string detail;
};
using Outcome = std::optional<Failure>;

bool is_pick(Inputs inputs) {
  return inputs == Inputs::kPicksFromA || inputs == Inputs::kPicksFromB;
}

bool is_exact(const Case& test_case) { return test_case.inputs != Inputs::kUniform; }

GuardedMatrix matrix_of(const Problem& problem, Operand operand, float filler) {
  const auto i = static_cast<std::size_t>(operand);
  return {kOperandNames[i], layout_of(problem, operand), filler};
}

// Aligned as the contract promises and no better.
GuardedMatrix workspace_of(const Plan& plan) {
  const auto elements =
      static_cast<std::int64_t>((plan.workspace_bytes() + sizeof(float) - 1) / sizeof(float));
  return {"workspace",
          {.rows = 1, .cols = elements, .ld = elements, .offset = kWorkspaceAlignment},
          kNan};
}

// Calls `visit(row of its image, row, matrix)` for each row of each matrix.
template <typename Visit>
void for_each_row(GuardedMatrix& matrix, Visit visit) {
  for (std::int64_t index = 0; index < matrix.batch(); ++index) {
    for (std::int64_t row = 0; row < matrix.rows(); ++row) {
      visit(matrix.expected(row, index), row, index);
    }
  }
}

void fill_rows(GuardedMatrix& matrix, Inputs inputs, std::uint64_t seed) {
  for_each_row(matrix, [&](float* to, std::int64_t row, std::int64_t index) {
    for (std::int64_t col = 0; col < matrix.cols(); ++col) {
      const std::int64_t element = (index * matrix.rows() + row) * matrix.cols() + col;
      to[col] = input_value(inputs, seed, static_cast<std::uint64_t>(element));
    }
  });
}

// What a line of op(A) or op(B) picks of the other operand: the element at `k` of each line of it,
// times a power of two. k == -1: none.
struct Pick {
  std::int64_t k = -1;
  float factor = 0.0F;
};

Pick pick_of(const Case& test_case, std::int64_t index, std::int64_t line) {
  const bool from_a = test_case.inputs == Inputs::kPicksFromA;
  const std::int64_t lines = from_a ? test_case.problem.shape.n : test_case.problem.shape.m;
  const auto number = static_cast<std::uint64_t>(index * lines + line);
  const auto random = static_cast<std::uint64_t>(
      3 + input_value(Inputs::kIntegers, 4 * test_case.seed + 3, number));  // 0 … 6
  const std::int64_t k_end = test_case.problem.shape.k;
  if (k_end == 0 || (test_case.problem.beta != 0.0F && random == 0)) return {};
  // Every k in turn, the last one first: it is where tiles and vectors end.
  return {k_end - 1 - (index + line) % k_end, std::ldexp(1.0F, static_cast<int>(random) - 3)};
}

// Zeros but for what it picks. Lines are columns of op(B), or rows of op(A).
void fill_picks(GuardedMatrix& matrix, const Case& test_case) {
  const bool from_a = test_case.inputs == Inputs::kPicksFromA;
  const bool line_is_row =
      from_a ? test_case.problem.op_b == Op::kT : test_case.problem.op_a == Op::kN;
  for_each_row(matrix, [&](float* to, std::int64_t row, std::int64_t index) {
    for (std::int64_t col = 0; col < matrix.cols(); ++col) {
      const Pick pick = pick_of(test_case, index, line_is_row ? row : col);
      to[col] = pick.k == (line_is_row ? col : row) ? pick.factor : 0.0F;
    }
  });
}

// Zeros where a product comes, so that nothing rounds.
void clear_picked(GuardedMatrix& c, const Case& test_case) {
  const bool from_a = test_case.inputs == Inputs::kPicksFromA;
  const bool shares_inputs =
      test_case.problem.batch > 1 &&
      (from_a ? test_case.problem.stride_b : test_case.problem.stride_a) == 0;
  for_each_row(c, [&](float* to, std::int64_t row, std::int64_t index) {
    for (std::int64_t col = 0; col < c.cols(); ++col) {
      const Pick pick = pick_of(test_case, shares_inputs ? 0 : index, from_a ? col : row);
      if (pick.k >= 0) to[col] = 0.0F;
    }
  });
}

void fill_rows(GuardedMatrix& matrix, float value) {
  for_each_row(matrix, [&](float* to, std::int64_t, std::int64_t) {
    std::fill_n(to, matrix.cols(), value);
  });
}

// Of the first matrix of a batch.
void set_element(GuardedMatrix& matrix, const Plant& plant) {
  const std::int64_t row = plant.row < 0 ? matrix.rows() + plant.row : plant.row;
  const std::int64_t col = plant.col < 0 ? matrix.cols() + plant.col : plant.col;
  matrix.expected(row)[col] = plant.value;
}

// One case of one stage: operands, reference, and what the stage made of them.
class Trial {
 public:
  Trial(const Stage& stage, const Case& test_case);

  Outcome judge(std::span<const Order> orders);

 private:
  Operands operands() const;
  Product host_product(std::int64_t index) const;
  Outcome check_case(std::span<const Order> orders) const;
  Status upload();
  Status make_reference();
  void find_largest();
  Status run(Order order);
  Outcome check_memory() const;
  Outcome check_sample() const;
  Outcome check_elements() const;
  Outcome check_repeat(const std::vector<float>& first) const;
  template <typename IsRight>
  std::optional<std::string> find_faults(const Tolerance& tolerance, IsRight is_right) const;
  struct Position {
    std::int64_t index, row, col;  // which matrix of the batch, and where in it
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
  std::vector<double> value_, scale_;
  std::vector<double> largest_;  // of each element's row and column; empty: the plan rounds neither
  Order order_ = Order::kForward;  // of the latest run
};

Trial::Trial(const Stage& stage, const Case& test_case)
    : stage_(stage),
      case_(test_case),
      plan_(stage.plan(case_.problem, device::current(), case_.configuration)),
      a_(matrix_of(case_.problem, Operand::kA, kNan)),
      b_(matrix_of(case_.problem, Operand::kB, kNan)),
      c_(matrix_of(case_.problem, Operand::kC, kSentinel)),
      workspace_(workspace_of(plan_)) {
  fill_rows(a_, case_.inputs, 4 * case_.seed);
  fill_rows(b_, case_.inputs, 4 * case_.seed + 1);
  if (case_.inputs == Inputs::kPicksFromA) fill_picks(b_, case_);
  if (case_.inputs == Inputs::kPicksFromB) fill_picks(a_, case_);
  if (case_.problem.beta == 0.0F) {
    fill_rows(c_, kNan);
  } else {
    fill_rows(c_, case_.inputs, 4 * case_.seed + 2);
    if (is_pick(case_.inputs)) clear_picked(c_, case_);
  }
  for (const Plant& plant : case_.plants) {
    set_element(plant.operand == Operand::kA ? a_ : plant.operand == Operand::kB ? b_ : c_, plant);
  }
}

Operands Trial::operands() const {
  return {.a = case_.null_inputs ? nullptr : a_.on_device(),
          .b = case_.null_inputs ? nullptr : b_.on_device(),
          .c = c_.on_device(),
          .workspace = workspace_.cols() > 0 ? workspace_.on_device() : nullptr,
          .workspace_bytes = plan_.workspace_bytes()};
}

// One product of the same call on the host images.
Product Trial::host_product(std::int64_t index) const {
  Problem problem = case_.problem;
  problem.lda = a_.pitch();
  problem.ldb = b_.pitch();
  problem.ldc = c_.pitch();
  problem.stride_a = problem.stride_a == 0 ? 0 : a_.image_stride();
  problem.stride_b = problem.stride_b == 0 ? 0 : b_.image_stride();
  problem.stride_c = c_.image_stride();
  return product_of(
      problem, {.a = a_.expected(), .b = b_.expected(), .c = const_cast<float*>(c_.expected())},
      index);
}

// What the tests themselves must get right for their verdict to mean something.
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
    return Failure{"sample", "what a sample leaves out shows in one run, at beta 0, without NaN"};
  }
  return std::nullopt;
}

Status Trial::upload() {
  for (GuardedMatrix* matrix : matrices_) {
    if (Status s = matrix->upload(); !s.ok()) return s;
  }
  return {};
}

// From the operands as they are before the run.
Status Trial::make_reference() {
  const auto [m, n, k] = case_.problem.shape;
  const auto count = static_cast<std::size_t>(m * n);
  value_.resize(count * static_cast<std::size_t>(case_.problem.batch));
  scale_.resize(value_.size());
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const bool on_host = !device::current().is_cuda || work <= kHostReference;
  const std::size_t bytes = on_host ? 0 : count * sizeof(double);
  const device::Buffer value(bytes);
  const device::Buffer scale(bytes);
  auto* const value_data = reinterpret_cast<double*>(value.data());
  auto* const scale_data = reinterpret_cast<double*>(scale.data());
  for (std::int64_t index = 0; index < case_.problem.batch; ++index) {
    double* to_value = value_.data() + static_cast<std::size_t>(index) * count;
    double* to_scale = scale_.data() + static_cast<std::size_t>(index) * count;
    if (on_host) {
      reference_on_host(host_product(index), to_value, to_scale);
      continue;
    }
    const Product product = product_of(case_.problem, operands(), index);
    if (Status s = reference_on_device(product, value_data, scale_data, nullptr); !s.ok()) return s;
    if (Status s = device::synchronize(); !s.ok()) return s;
    if (Status s = device::copy_to_host(to_value, value_data, bytes); !s.ok()) return s;
    if (Status s = device::copy_to_host(to_scale, scale_data, bytes); !s.ok()) return s;
  }
  return {};
}

// The products of the largest elements of its row and its column, for each element of C.
void Trial::find_largest() {
  const auto [m, n, k] = case_.problem.shape;
  std::vector<double> lines(static_cast<std::size_t>(m + n));
  for (std::int64_t index = 0; index < case_.problem.batch; ++index) {
    largest_on_host(host_product(index), lines.data());
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        largest_.push_back(lines[static_cast<std::size_t>(i)] *
                           lines[static_cast<std::size_t>(m + j)]);
      }
    }
  }
}

Status Trial::run(Order order) {
  {
    const ClosedGuards a(a_);
    const ClosedGuards b(b_);
    const ClosedGuards c(c_);
    const ClosedGuards workspace(workspace_);
    // The kernels of a plan with a workspace read what blocks of others wrote.
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

// Calls visit(number in the order of the reference, position, found) for each element of C.
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
std::optional<std::string> Trial::find_faults(const Tolerance& tolerance, IsRight is_right) const {
  std::size_t faults = 0;
  std::string shown;
  for_each_result([&](std::size_t i, const Position& at, float got) {
    const double largest = largest_.empty() ? 0.0 : largest_[i];
    if (is_right(got, value_[i], scale_[i], largest) || is_left_out(got)) return;
    if (++faults > kMaxShown) return;
    char line[160];
    std::snprintf(line, sizeof(line), "  expected %.17g  got %.9g  bound %.3g", value_[i],
                  double{got},
                  tolerance.gamma * scale_[i] + tolerance.underflow + tolerance.operands * largest);
    shown += "\n    " + to_string(at) + line;
  });
  if (faults == 0) return std::nullopt;
  return std::to_string(faults) + " of " + std::to_string(value_.size()) +
         " elements of c are wrong" + shown + (faults > kMaxShown ? "\n    ..." : "");
}

// Of a sample, and not written. C was NaN before.
bool Trial::is_left_out(float got) const { return order_ == Order::kSample && std::isnan(got); }

// Blocks are alike: each writes as many elements as another, but for those at an edge.
Outcome Trial::check_sample() const {
  if (order_ != Order::kSample) return std::nullopt;
  double written = 0.0;
  bool has_ends = true;
  for_each_result([&](std::size_t i, const Position&, float got) {
    if (!is_left_out(got)) {
      written += 1.0;
    } else if (i == 0 || i + 1 == value_.size()) {
      has_ends = false;
    }
  });
  const auto [all, run] = blocks_run();
  const double per_block = static_cast<double>(value_.size()) / all;
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
  const auto wrong = find_faults(tolerance, right);
  if (!wrong) return std::nullopt;  // what is right is finite, and of its class
  if (auto faults = find_faults(tolerance, finite)) return Failure{"finite", *faults};
  if (auto faults = find_faults(tolerance, same_class)) return Failure{"class", *faults};
  return Failure{is_exact(case_) ? "exact" : "bound", *wrong};
}

// `first`: C after the first run, laid out as value_.
Outcome Trial::check_repeat(const std::vector<float>& first) const {
  Outcome failure;
  for_each_result([&](std::size_t i, const Position& at, float is) {
    const float was = first[i];
    if (std::bit_cast<std::uint32_t>(was) == std::bit_cast<std::uint32_t>(is) || failure) return;
    char text[96];
    std::snprintf(text, sizeof(text), " was %.9g in the first run, then %.9g", double{was},
                  double{is});
    failure = Failure{"repeat", to_string(at) + text};
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
    if (Status s = upload(); !s.ok()) return Failure{"status", "upload: " + s.message()};
    if (is_first) {
      if (Status s = make_reference(); !s.ok()) return Failure{"status", "oracle: " + s.message()};
      if (plan_.operand_error() > 0.0) find_largest();
    }
    if (Status s = run(order); !s.ok()) return Failure{"status", s.message()};
    if (Outcome failure = check_memory()) return failure;
    if (Outcome failure = check_sample()) return failure;
    if (is_first) {
      if (Outcome failure = check_elements()) return failure;
      first.resize(value_.size());
      for_each_result([&](std::size_t i, const Position&, float got) { first[i] = got; });
    } else if (Outcome failure = check_repeat(first)) {
      return failure;
    }
    is_first = false;
  }
  return std::nullopt;
}

}  // namespace

Verdict verify(const Stage& stage, const Case& test_case, std::span<const Order> orders) {
  const Outcome failure = Trial(stage, test_case).judge(orders);
  if (!failure) return {};
  return {.ok = false,
          .check = failure->check,
          .report = std::string(stage.name) + " fails the check `" + failure->check + "`\n  case " +
                    name_of(test_case) + "\n  problem " +
                    tilegate::to_string(NamedProblem{.stage = std::string(stage.name),
                                                     .configuration = test_case.configuration,
                                                     .problem = test_case.problem}) +
                    "\n  seed " + std::to_string(test_case.seed) + "\n  " + failure->detail};
}

}  // namespace tilegate::verifier
