#include "verifier/summation.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/device.hpp>

#include "verifier/case.hpp"
#include "verifier/guarded_matrix.hpp"

namespace tilegate::verifier {
namespace {

// M: absorbs ones in FP32. In FP64 it does not: an addition there is no rounding to FP32.
constexpr float kMask = 0x1p40F;

GuardedMatrix matrix_of(const Problem& problem, Operand operand) {
  const auto name = kOperandNames[static_cast<std::size_t>(operand)];
  return {name, layout_of(problem, operand), 0.0F};
}

class Summation {
 public:
  Summation(const Stage& stage, const Plan& plan)
      : stage_(stage),
        plan_(plan),
        a_(matrix_of(plan.problem(), Operand::kA)),
        b_(matrix_of(plan.problem(), Operand::kB)),
        c_(matrix_of(plan.problem(), Operand::kC)),
        workspace_(plan.workspace_bytes()) {
    for (GuardedMatrix* matrix : {&a_, &b_}) {
      matrix->for_each_row(
          [&](float* row, std::int64_t, std::int64_t) { std::fill_n(row, matrix->cols(), 1.0F); });
    }
  }

  Status prepare() {
    if (Status s = stage_.prepare(); !s.ok()) return s;
    return b_.upload();
  }

  // Runs with product `i` equal to M and product `j` to -M.
  Status run(std::int64_t i, std::int64_t j);
  void set_products(std::int64_t k, float value);

  struct Element {
    std::size_t number;
    std::int64_t index, row, col;
    double counted;  // products that neither M nor -M has absorbed
  };
  // Calls visit(element) for each element of C.
  template <typename Visit>
  void for_each_element(Visit visit) const;

 private:
  const Stage& stage_;
  const Plan& plan_;
  GuardedMatrix a_, b_, c_;
  device::Buffer workspace_;
};

// Sets A(m, k) for all m; B is 1.
void Summation::set_products(std::int64_t k, float value) {
  const bool k_is_row = plan_.problem().op_a == Op::kT;
  a_.for_each_row([&](float* row, std::int64_t number, std::int64_t) {
    if (!k_is_row) row[k] = value;
    if (k_is_row && number == k) std::fill_n(row, a_.cols(), value);
  });
}

Status Summation::run(std::int64_t i, std::int64_t j) {
  set_products(i, kMask);
  set_products(j, -kMask);
  Status uploaded = a_.upload();
  set_products(i, 1.0F);
  set_products(j, 1.0F);
  if (!uploaded.ok()) return uploaded;
  if (Status s = c_.upload(); !s.ok()) return s;
  const Operands operands{.a = a_.on_device(),
                          .b = b_.on_device(),
                          .c = c_.on_device(),
                          .workspace = workspace_.data(),
                          .workspace_bytes = plan_.workspace_bytes()};
  Status launched = plan_.launch(operands, begin_call(plan_.problem(), operands));
  Status finished = device::synchronize();
  Status kept = end_call();
  for (Status* status : {&launched, &finished, &kept}) {
    if (!status->ok()) return std::move(*status);
  }
  return c_.download();
}

template <typename Visit>
void Summation::for_each_element(Visit visit) const {
  std::size_t element = 0;
  for (std::int64_t index = 0; index < c_.batch(); ++index) {
    for (std::int64_t row = 0; row < c_.rows(); ++row) {
      for (std::int64_t col = 0; col < c_.cols(); ++col) {
        const double sum = c_.found(row, index)[col];
        visit(Element{element++, index, row, col, sum / double{plan_.problem().alpha}});
      }
    }
  }
}

}  // namespace

SummationDepth find_depth(const Stage& stage, const Plan& plan,
                          std::span<const std::int64_t> products) {
  using Element = Summation::Element;
  const auto to_string = [](const Element& at) {
    return "c(" + std::to_string(at.row) + ", " + std::to_string(at.col) + ") of matrix " +
           std::to_string(at.index);
  };
  SummationDepth result;
  Summation summation(stage, plan);
  if (result.status = summation.prepare(); !result.status.ok()) return result;
  const Shape& shape = plan.problem().shape;
  const std::int64_t k = shape.k;
  const auto sizes = static_cast<std::size_t>(k) + 1;
  const auto elements = static_cast<std::size_t>(plan.problem().batch * shape.m * shape.n);
  for (const std::int64_t i : products) {
    std::vector<bool> is_size(elements * sizes);  // sizes of subtrees that contain i
    for (std::int64_t j = 0; j < k; ++j) {
      if (j == i) continue;
      if (result.status = summation.run(i, j); !result.status.ok()) return result;
      summation.for_each_element([&](const Element& at) {
        const double most = static_cast<double>(k) - 2.0;
        if (at.counted >= 0.0 && at.counted <= most && at.counted == std::floor(at.counted)) {
          is_size[at.number * sizes + static_cast<std::size_t>(k) -
                  static_cast<std::size_t>(at.counted)] = true;
        } else if (result.status.ok()) {
          result.status = Status::device_error(
              to_string(at) + " is not a sum of the products: if product " + std::to_string(i) +
              " is M, product " + std::to_string(j) + " is -M and all others are 1, it is " +
              std::to_string(at.counted));
        }
      });
      if (!result.status.ok()) return result;
    }
    summation.for_each_element([&](const Element& at) {
      const auto begin = is_size.begin() + static_cast<std::ptrdiff_t>(at.number * sizes);
      const std::int64_t additions =
          std::count(begin, begin + static_cast<std::ptrdiff_t>(sizes), true);
      if (additions <= result.additions) return;
      result.additions = additions;
      result.where = "product " + std::to_string(i) + " of " + to_string(at);
    });
  }
  return result;
}

}  // namespace tilegate::verifier
