#include "count.hpp"

#include <cstring>
#include <vector>

#include <tilegate/catalogue.hpp>
#include <tilegate/common/gpu_model.hpp>
#include <tilegate/device.hpp>
#include <tilegate/device/cpu/executor.hpp>

#include "recorder.hpp"

namespace tilegate::simt::counted {
namespace {

// Memory that holds exactly one operand, with all matrices of a batch, so that an access beyond it
// is reported.
class Memory {
 public:
  Memory(const Problem& problem, Operand operand)
      : offset_(problem.offset_bytes[static_cast<std::size_t>(operand)]) {
    std::vector<float> values(static_cast<std::size_t>(problem.span(operand)));
    // Evenly spread, as in measurements on a GPU: some rungs choose a kernel by the values.
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i % 255) - 127.0F;
    buffer_ = device::Buffer(values.size() * sizeof(float) + static_cast<std::size_t>(offset_));
    if (!values.empty()) std::memcpy(data(), values.data(), values.size() * sizeof(float));
  }

  float* data() const { return reinterpret_cast<float*>(buffer_.data() + offset_); }

 private:
  std::int64_t offset_;
  device::Buffer buffer_;
};

}  // namespace

Outcome count(const Stage& stage, const Problem& problem, std::string_view configuration) {
  Device device = device::current();
  device.multiprocessors = static_cast<int>(kH200.multiprocessors);
  const Plan plan = stage.plan(problem, device, configuration);
  if (!plan.ok()) return {plan.status(), {}};
  const Memory a(problem, Operand::kA);
  const Memory b(problem, Operand::kB);
  const Memory c(problem, Operand::kC);
  const device::Buffer workspace(plan.workspace_bytes());
  const Operands operands{.a = a.data(),
                          .b = b.data(),
                          .c = c.data(),
                          .workspace = workspace.data(),
                          .workspace_bytes = workspace.size()};
  Status status = stage.prepare();
  Recorder::instance().begin_counting();
  executor::begin_call(problem, operands, nullptr);
  if (status.ok()) status = plan.launch(operands);
  const Status kept = executor::end_call();
  return {status.ok() ? kept : status, Recorder::instance().end_counting()};
}

Outcome count(const std::string& name) {
  NamedProblem named;
  if (Status s = parse_named_problem(name, &named); !s.ok()) return {s, {}};
  const Stage* stage = find_in_catalogue(named.stage);
  if (stage == nullptr) {
    return {Status::invalid_argument("stage", "no stage is called '" + named.stage + "'"), {}};
  }
  return count(*stage, named.problem, named.configuration);
}

}  // namespace tilegate::simt::counted
