// Common to all stages: checks of the problem before planning, and of operands before a launch.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <tilegate/device/launch_config.hpp>
#include <tilegate/stage.hpp>

namespace tilegate {
namespace {

constexpr std::int64_t kWidestAccess = 16;  // bytes; no kernel uses a larger alignment

const char* name_of(Operand operand) { return kOperandNames[static_cast<std::size_t>(operand)]; }

// The stage's choice, or the candidate with that name.
Choice pick(const Stage& stage, const Problem& problem, const Device& device,
            std::string_view configuration, std::size_t workspace_limit) {
  std::vector<Candidate> candidates;
  if (stage.candidates != nullptr) {
    candidates = stage.candidates(problem, device);
  } else {
    candidates.push_back({stage.choose(problem, device)});
  }
  const auto order = [](const Candidate& candidate) {
    return std::pair(!candidate.is_tuned, candidate.seconds);
  };
  const auto exceeds_limit = [&](const Candidate& candidate) {
    return candidate.choice.workspace_bytes > workspace_limit;
  };
  const bool is_limited = workspace_limit != kNoWorkspaceLimit;
  if (stage.panels != nullptr && is_limited &&
      (!configuration.empty() || exceeds_limit(*std::ranges::min_element(candidates, {}, order)))) {
    std::ranges::move(stage.panels(problem, device, workspace_limit),
                      std::back_inserter(candidates));
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return exceeds_limit(candidate) ||
           (!configuration.empty() && candidate.choice.configuration != configuration);
  });
  if (candidates.empty()) {
    std::string what = std::string(stage.name) + " has no configuration";
    if (!configuration.empty()) what += " '" + std::string(configuration) + "'";
    what += " for this problem";
    if (is_limited) {
      what += " with a workspace of at most " + std::to_string(workspace_limit) + " bytes";
    }
    return {.status = Status::unsupported(what)};
  }
  Candidate& fastest = *std::ranges::min_element(candidates, {}, order);
  // A late start takes 1.1 µs. Where shorter calls crowd, most of them lose less.
  constexpr double kLeastSeconds = 2.5e-6;
  const double waves = fastest.parts.waves;
  fastest.choice.may_crowd = waves > 0.0 && waves <= 1.0 && fastest.seconds > kLeastSeconds;
  return std::move(fastest.choice);
}

// Whether the previous launch of this thread was on the same stream and of the same plan. Records
// this one.
bool follows_itself(Stream stream, std::size_t plan) {
  thread_local std::pair<Stream, std::size_t> last{};
  return std::exchange(last, std::pair(stream, plan)) == std::pair(stream, plan);
}

// alpha == 0 and K == 0 are equivalent. The leading dimension of a single row may be any number,
// but kernels compute unused addresses with it, beyond the edge of a tile, which could overflow.
Problem normalised(const Problem& problem) {
  Problem result = problem;
  if (!problem.reads_a_and_b()) {
    result.shape.k = 0;
    result.alpha = 0.0F;
  }
  const auto single_row = [&](Operand operand, std::int64_t& ld) {
    const Extent extent = result.extent(operand);
    if (extent.rows <= 1 || extent.cols == 0) ld = extent.cols;
  };
  single_row(Operand::kA, result.lda);
  single_row(Operand::kB, result.ldb);
  single_row(Operand::kC, result.ldc);
  return result;
}

// Alignment in bytes of a pointer at `offset` from a 256-byte boundary, up to kWidestAccess.
std::int64_t promised_alignment(std::int64_t offset) {
  return offset % kWidestAccess == 0 ? kWidestAccess : offset & -offset;
}

struct Address {
  std::uintptr_t begin, end;  // one past the last byte
};

bool overlap(const Address& one, const Address& other) {
  return one.begin < other.end && other.begin < one.end;
}

Status check_pointer(const Problem& problem, Operand operand, const float* data, Address* address) {
  const std::string name = name_of(operand);
  if (data == nullptr) return Status::invalid_argument(name, name + " is a null pointer");
  address->begin = reinterpret_cast<std::uintptr_t>(data);
  const std::int64_t offset = problem.offset_bytes[static_cast<std::size_t>(operand)];
  const auto alignment = static_cast<std::uintptr_t>(promised_alignment(offset));
  if (address->begin % alignment != 0) {
    return Status::invalid_argument(
        name, name + " is not " + std::to_string(alignment) + "-byte aligned, as its offset of " +
                  std::to_string(offset) + " bytes in the problem promises");
  }
  const auto elements = static_cast<std::uintptr_t>(problem.span(operand));
  const auto room = std::numeric_limits<std::uintptr_t>::max() - address->begin;
  if (elements > room / sizeof(float)) {
    return Status::invalid_argument(
        name, name + " spans more than the address space behind its pointer: " +
                  std::to_string(elements) + " elements");
  }
  address->end = address->begin + elements * sizeof(float);
  return {};
}

// `spans` of A, B and C.
Status check_workspace(const Operands& operands, std::size_t needed, const std::string& stage,
                       const std::array<Address, 3>& spans) {
  if (needed == 0) return {};
  const auto refused = [](const std::string& why) {
    return Status::invalid_argument("workspace", "workspace " + why);
  };
  if (operands.workspace_bytes < needed) {
    return refused("of " + std::to_string(operands.workspace_bytes) + " bytes; " + stage +
                   " needs " + std::to_string(needed));
  }
  if (operands.workspace == nullptr) return refused("is a null pointer");
  const auto begin = reinterpret_cast<std::uintptr_t>(operands.workspace);
  if (begin % 16 != 0) return refused("is not 16-byte aligned");
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    if (overlap({begin, begin + needed}, spans[static_cast<std::size_t>(operand)])) {
      return refused(std::string("overlaps ") + name_of(operand));
    }
  }
  return {};
}

}  // namespace

Status check_pointer(const Problem& problem, Operand operand, const float* data) {
  Address address{};
  return check_pointer(problem, operand, data, &address);
}

Status check_device(const Requirements& requirements, const Device& device) {
  if (!device.is_cuda && !requirements.not_on_simt.empty()) {
    return Status::unsupported(std::string(requirements.not_on_simt));
  }
  const int needed = requirements.compute_capability, has = device.compute_capability;
  if (device.is_cuda && has == 0) return Status::unsupported("no CUDA device is available");
  if (device.is_cuda && (requirements.no_later ? has != needed : has < needed)) {
    return Status::unsupported("needs compute capability " + std::to_string(needed) +
                               (requirements.no_later ? " and no later one, " : ", ") +
                               device.name + " has " + std::to_string(has));
  }
  return {};
}

Status Restrictions::check(const Problem& problem) const {
  const auto [m, n, k] = problem.shape;
  const auto not_multiple = [](std::int64_t size, std::int64_t of) { return size % of != 0; };
  if (not_multiple(m, multiple_of.m)) {
    return Status::unsupported("takes M in multiples of " + std::to_string(multiple_of.m));
  }
  if (not_multiple(n, multiple_of.n)) {
    return Status::unsupported("takes N in multiples of " + std::to_string(multiple_of.n));
  }
  if (not_multiple(k, multiple_of.k)) {
    return Status::unsupported("takes K in multiples of " + std::to_string(multiple_of.k));
  }
  if (most_m > 0 && m > most_m) {
    return Status::unsupported("takes no M above " + std::to_string(most_m));
  }
  if (most_n > 0 && n > most_n) {
    return Status::unsupported("takes no N above " + std::to_string(most_n));
  }
  if (nonzero_k && !problem.reads_a_and_b()) {
    return Status::unsupported("takes neither K nor alpha of 0");
  }
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    const std::string name = name_of(operand);
    const Extent extent = problem.extent(operand);
    if (dense && extent.rows > 1 && problem.ld(operand) != extent.cols) {
      return Status::unsupported("takes no ld" + name + " but the width of the rows");
    }
    const auto number = static_cast<std::size_t>(operand);
    if (promised_alignment(problem.offset_bytes[number]) < alignment) {
      return Status::unsupported("takes " + name + " at multiples of " + std::to_string(alignment) +
                                 " bytes");
    }
    constexpr std::int64_t kMostOfInt = std::numeric_limits<std::int32_t>::max();
    if (int_indices && problem.span(operand) > kMostOfInt) {
      return Status::unsupported("takes no operand above " + std::to_string(kMostOfInt) +
                                 " elements");
    }
  }
  return {};
}

Status Stage::takes(const Problem& problem) const {
  const bool is_transposed = problem.op_a != Op::kN || problem.op_b != Op::kN;
  if (is_transposed && !takes_transposed) {
    return Status::unsupported(std::string(name) + " takes no transposed operands");
  }
  if (problem.batch > 1 && !takes_batches) {
    return Status::unsupported(std::string(name) + " takes no batches");
  }
  const Status status = problem.is_empty() ? Status() : restrictions.check(problem);
  return status.ok() ? status : Status::unsupported(std::string(name) + " " + status.message());
}

Plan Stage::plan(const Problem& problem, const Device& device, std::string_view configuration,
                 std::size_t workspace_limit) const {
  Plan plan;
  plan.problem_ = problem;
  plan.device_ordinal_ = device.ordinal;
  plan.stage_ = name;
  Status& status = plan.choice_.status;
  status = check_device(requirements, device);
  if (status.ok()) status = problem.check();
  if (status.ok()) status = takes(problem);
  if (!status.ok() || problem.is_empty()) return plan;
  plan.problem_ = normalised(problem);
  plan.choice_ = pick(*this, plan.problem_, device, configuration, workspace_limit);
  plan.key_ = std::hash<std::string>()(
      to_string({std::string(name), plan.choice_.configuration, plan.problem_}));
  return plan;
}

Status Stage::prepare() const {
  if (Status s = check_device(requirements, device::current()); !s.ok()) return s;
  return setup == nullptr ? Status() : setup();
}

Status Plan::check(const Operands& operands) const {
  std::array<Address, 3> spans{};  // empty where A and B are not read
  auto& [a, b, c] = spans;
  if (Status s = check_pointer(problem_, Operand::kC, operands.c, &c); !s.ok()) return s;
  for (const auto& [operand, data, span] :
       {std::tuple{Operand::kA, operands.a, &a}, std::tuple{Operand::kB, operands.b, &b}}) {
    if (!problem_.reads_a_and_b()) break;
    if (Status s = check_pointer(problem_, operand, data, span); !s.ok()) return s;
    if (overlap(c, *span)) {
      return Status::invalid_argument("c", std::string("c overlaps ") + name_of(operand));
    }
  }
  if (Status s = check_workspace(operands, workspace_bytes(), stage_, spans); !s.ok()) return s;
  const int current = device::current().ordinal;
  if (current != device_ordinal_) {
    return Status::unsupported("planned for device " + std::to_string(device_ordinal_) +
                               ", and device " + std::to_string(current) + " is current");
  }
  return {};
}

Status Plan::launch(const Operands& operands, Stream stream) const {
  if (!ok() || problem_.is_empty()) return status();
  if (Status s = check(operands); !s.ok()) return s;
  std::optional<device::StartsAlone> alone;
  if (!follows_itself(stream, key_) && choice_.may_crowd) alone.emplace();
  return choice_.enqueue({.shape = problem_.shape,
                          .alpha = problem_.alpha,
                          .a = operands.a,
                          .lda = problem_.lda,
                          .b = operands.b,
                          .ldb = problem_.ldb,
                          .beta = problem_.beta,
                          .c = operands.c,
                          .ldc = problem_.ldc,
                          .workspace = operands.workspace,
                          .batch = problem_.batch,
                          .stride_a = problem_.stride_a,
                          .stride_b = problem_.stride_b,
                          .stride_c = problem_.stride_c},
                         stream);
}

}  // namespace tilegate
