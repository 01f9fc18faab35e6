// The stage Int8x3, and its GEMM on given digits; the plan is in plan.hpp and panels.hpp.
#include "given.hpp"
#include "panels.hpp"

namespace tilegate::int8x3 {

extern const Stage stage;
const Stage stage = make_stage<Path::kSix>(
    "Int8x3", "exact products of 8-bit digits on tensor cores, as accurate as FP32");

GivenPlan plan_given(const Problem& problem, float summed, const Device& device) {
  GivenPlan best{.status = check_size(problem)};
  if (!best.status.ok()) return best;
  for (const GemmConfig& config : kGemmConfigs) {
    if (!can_run(config, device, Path::kSix, problem.shape.k)) continue;
    if (config.stream_k && problem.shape.k < kLeastK) continue;
    Launches launches = launches_of(config, problem, device, Path::kSix,
                                    Workspace(problem, device, config.by_warps));
    const double seconds = gemm_seconds(config, launches, problem);
    if (best.enqueue && seconds >= best.seconds) continue;
    GemmParams& params = launches.params;
    params.allows_ten = false;
    params.widths.of_a = params.widths.of_b = 1;
    params.rows_a = params.rows_b = 1.0F;
    params.summed = summed;
    params.fp32.scheduler.count = 0;  // no tiles
    params.fp32.split_k = {};
    const auto blocks = static_cast<std::size_t>(config.stream_k ? launches.blocks : 0);
    best.configuration = config.name;
    best.seconds = seconds;
    best.partial_bytes = blocks * kPartialBytes<Tiles<128, 6>>;
    best.flag_bytes = blocks * sizeof(unsigned);
    best.enqueue = [launches, &config](const KernelArgs& args, const GivenDigits& given,
                                       Stream stream) {
      Launches placed = launches;
      Workspace& where = placed.workspace;
      where.planes_a = given.planes_a;
      where.planes_b = given.planes_b;
      where.steps_a = given.steps_a;
      where.steps_b = given.steps_b;
      where.widths = given.widths;
      where.partials = given.partials;
      where.flags = config.stream_k ? given.flags : 0;
      return config.enqueue(placed, args, stream);
    };
  }
  return best;
}

}  // namespace tilegate::int8x3
