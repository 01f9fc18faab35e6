// PreparedOperand: Int8x3 with digits that exist, beside Sgemm in FP32.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tilegate/prepared.hpp>
#include <tilegate/sgemm.hpp>

#include "18_int8x3/int8x3.hpp"

namespace tilegate {
namespace {

constexpr std::string_view kPrefix = "Prepared:";

bool overlap(const void* one, std::size_t bytes, const void* other, std::size_t other_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(one);
  const auto other_begin = reinterpret_cast<std::uintptr_t>(other);
  return bytes > 0 && other_bytes > 0 && begin < other_begin + other_bytes &&
         other_begin < begin + bytes;
}

// "70x300, ld 304, transposed"
std::string describe(const Problem& problem, Operand operand) {
  const auto [rows, cols] = problem.extent(operand);
  const Op op = operand == Operand::kA ? problem.op_a : problem.op_b;
  return std::to_string(rows) + "x" + std::to_string(cols) + ", ld " +
         std::to_string(problem.ld(operand)) + (op == Op::kT ? ", transposed" : "");
}

}  // namespace

PreparedOperand::PreparedOperand(const Problem& problem, Operand operand, const Device& device,
                                 bool is_checked)
    : problem_(problem), operand_(operand), device_(device), is_checked_(is_checked) {
  if (operand == Operand::kC) {
    status_ = Status::invalid_argument("operand", "operand is neither A nor B");
  } else if (problem.batch != 1) {
    status_ = Status::unsupported("prepared operands have no batch");
  } else {
    status_ = problem.check();
  }
  if (status_.ok()) bytes_ = int8x3::Prepared{problem_, operand_, device_, is_checked_}.bytes();
}

Status PreparedOperand::prepare(const float* from, void* memory, std::size_t memory_bytes,
                                Stream stream) {
  if (!status_.ok()) return status_;
  if (device::current().ordinal != device_.ordinal) {
    return Status::unsupported("prepared for device " + std::to_string(device_.ordinal) +
                               ", and device " + std::to_string(device::current().ordinal) +
                               " is current");
  }
  if (bytes_ > 0) {
    if (Status s = check_pointer(problem_, operand_, from); !s.ok()) return s;
    if (memory_bytes < bytes_) {
      return Status::invalid_argument("memory", "memory of " + std::to_string(memory_bytes) +
                                                    " bytes; the operand needs " +
                                                    std::to_string(bytes_));
    }
    if (memory == nullptr) return Status::invalid_argument("memory", "memory is a null pointer");
    if (reinterpret_cast<std::uintptr_t>(memory) % 16 != 0) {
      return Status::invalid_argument("memory", "memory is not 16-byte aligned");
    }
    const auto size = static_cast<std::size_t>(problem_.span(operand_)) * sizeof(float);
    if (overlap(memory, bytes_, from, size)) {
      const std::string name = kOperandNames[static_cast<std::size_t>(operand_)];
      return Status::invalid_argument("memory", "memory overlaps " + name);
    }
    const int8x3::Prepared prepared{problem_, operand_, device_, is_checked_,
                                    static_cast<std::byte*>(memory)};
    if (Status s = prepared.enqueue(from, stream); !s.ok()) return s;
    memory_ = prepared.memory;
  }
  is_prepared_ = true;
  return {};
}

Status PreparedOperand::check(const Problem& problem) const {
  if (!status_.ok()) return status_;
  const std::string name = kOperandNames[static_cast<std::size_t>(operand_)];
  if (!is_prepared_) return Status::invalid_argument(name, name + " has not been prepared");
  if (problem.batch != 1) return Status::unsupported("prepared operands have no batch");
  const std::string has = describe(problem, operand_), prepared = describe(problem_, operand_);
  if (has == prepared) return {};
  return Status::invalid_argument(name, name + " is " + has + "; prepared was " + prepared);
}

Plan PreparedOperand::plan(const Problem& problem, std::string_view configuration,
                           std::size_t workspace_limit) const {
  Plan plan;
  plan.choice_.status = check(problem);
  if (!plan.ok()) return plan;
  Problem in_fp32 = problem;
  in_fp32.math = Math::fp32;
  const bool is_of_digits = configuration.starts_with(kPrefix);
  plan = sgemm::stage.plan(in_fp32, device_, is_of_digits ? "" : configuration, workspace_limit);
  if (!plan.ok() || problem.is_empty() || !plan.problem().reads_a_and_b()) return plan;

  // What digits have to be faster than: FP32, if `configuration` names neither.
  double seconds = is_of_digits ? std::numeric_limits<double>::infinity() : 0.0;
  if (configuration.empty()) {
    for (const Candidate& candidate : sgemm::stage.candidates(plan.problem(), device_)) {
      if (candidate.choice.configuration == plan.configuration()) seconds = candidate.seconds;
    }
  }
  bool takes_digits = false;
  const int8x3::Prepared prepared{problem_, operand_, device_, is_checked_, memory_};
  for (Candidate& candidate : prepared.candidates(plan.problem())) {
    Choice& choice = candidate.choice;
    choice.configuration = std::string(kPrefix) + choice.configuration;
    if (choice.workspace_bytes > workspace_limit || candidate.seconds >= seconds ||
        (is_of_digits && choice.configuration != configuration)) {
      continue;
    }
    takes_digits = true;
    seconds = candidate.seconds;
    plan.choice_ = std::move(choice);
    plan.stage_ = "PreparedOperand";
  }
  if (is_of_digits && !takes_digits) {
    plan.choice_ = {.status =
                        Status::unsupported("PreparedOperand has no configuration '" +
                                            std::string(configuration) + "' for this problem")};
  }
  if (bytes_ > 0) {
    plan.choice_.enqueue =
        [memory = memory_, bytes = bytes_,
         c_bytes = static_cast<std::size_t>(plan.problem().span(Operand::kC)) * sizeof(float),
         workspace_bytes = plan.workspace_bytes(),
         multiply = std::move(plan.choice_.enqueue)](const KernelArgs& args, Stream stream) {
          if (overlap(memory, bytes, args.c, c_bytes)) {
            return Status::invalid_argument("c", "c overlaps the prepared operand");
          }
          if (overlap(memory, bytes, args.workspace, workspace_bytes)) {
            return Status::invalid_argument("workspace", "workspace overlaps the prepared operand");
          }
          return multiply(args, stream);
        };
  }
  if (is_checked_) {
    plan.choice_.enqueue = [prepared, multiply = std::move(plan.choice_.enqueue)](
                               const KernelArgs& args, Stream stream) {
      const float* const from = prepared.operand == Operand::kA ? args.a : args.b;
      Status status = prepared.enqueue_check(from, stream);
      return status.ok() ? multiply(args, stream) : status;
    };
  }
  return plan;
}

}  // namespace tilegate
