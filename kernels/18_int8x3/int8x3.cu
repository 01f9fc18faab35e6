// The stage Int8x3, its GEMM on given digits, and prepared operands; the plan is in plan.hpp and
// panels.hpp.
#include "int8x3.hpp"
#include "panels.hpp"
#include "prepared.cuh"

namespace tilegate::int8x3 {

extern const Stage stage;
const Stage stage = make_stage<Path::kSix>(
    "Int8x3", "exact products of 8-bit digits on tensor cores, as accurate as FP32");

GivenPlan plan_given(const Problem& problem, float summed, const Device& device) {
  GivenPlan best{.status = check_size(problem)};
  if (!best.status.ok()) return best;
  for (const GemmConfig& config : kGemmConfigs) {
    if (config.splits_k() || !can_run(config, problem, device, Path::kSix)) continue;
    if (config.stream_k() && problem.shape.k < kLeastK) continue;
    Launches launches = launches_of(config, problem, device, Path::kSix,
                                    Workspace(problem, device, config.uses_mma_sync));
    GemmParams& params = launches.params;
    params.allows_ten = false;
    launches.samples_pairs = false;
    const double seconds = gemm_seconds(config, launches, problem);
    if (best.enqueue && seconds >= best.seconds) continue;
    params.widths.of_a = params.widths.of_b = 1;
    params.rows_a = params.rows_b = 1.0F;
    params.allowed = squared_error_of(summed);
    params.fp64 = fp64_args(problem, kFp64Tile, config.cluster);    // without stream-K
    params.fp64.scheduler.count = params.fp32.scheduler.count = 0;  // no tiles
    const auto blocks = static_cast<std::size_t>(config.stream_k() ? launches.blocks : 0);
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
      where.flags = config.stream_k() ? given.flags : 0;
      return config.enqueue(placed, args, stream);
    };
  }
  return best;
}

std::size_t Prepared::bytes() const {
  const bool is_split = problem.shape.k >= kLeastK && split_extent(problem, operand) > 0 &&
                        check_device(stage.requirements, device).ok() &&
                        check_size(alone(problem, operand)).ok();
  return is_split ? PreparedLayout(*this).bytes : 0;
}

Status Prepared::enqueue(const float* from, Stream stream) const {
  const PreparedLayout layout(*this);
  const bool of_a = operand == Operand::kA;
  const Job job = split_job(problem, operand, layout.planes, layout.workspace.split.rows);
  Job none;  // no groups; split kernels read K from the first job
  none.planes = Planes(0, problem.shape.k, 0);
  Launches launches{layout.workspace, of_a ? job : none, of_a ? none : job, {}};
  launches.samples_pairs = false;
  launches.splits_a = of_a;
  launches.splits_b = !of_a;
  launches.split_blocks = layout.workspace.split.blocks(layout.groups, device.multiprocessors);
  const KernelArgs args{.shape = problem.shape,
                        .a = of_a ? from : nullptr,
                        .lda = problem.lda,
                        .b = of_a ? nullptr : from,
                        .ldb = problem.ldb,
                        .workspace = memory};
  if (Status s = enqueue_split(launches, args, stream); !s.ok()) return s;
  if (has_warpgroups(device)) {
    // `refine` writes the tails where the decision is ten products: always, unless a row cannot be
    // scaled. Then every call is in FP64.
    GemmParams& params = launches.params;
    params.allows_ten = true;
    params.least = Path::kTen;
    params.allowed_of_ten = std::numeric_limits<float>::infinity();
    (of_a ? params.widths.of_a : params.widths.of_b) = static_cast<unsigned>(layout.groups);
    (of_a ? launches.workspace.tails_a : launches.workspace.tails_b) = layout.tails;
    (of_a ? launches.refine_a : launches.refine_b) = refine_job(problem, operand, layout.planes);
    launches.refine_blocks = blocks_of_refine(device);
    if (Status s = enqueue_refine(launches, args, stream); !s.ok()) return s;
  }
  return enqueue_checksum(*this, from, false, stream);
}

Status Prepared::enqueue_check(const float* from, Stream stream) const {
  return bytes() == 0 ? Status() : enqueue_checksum(*this, from, true, stream);
}

std::vector<Candidate> Prepared::candidates(const Problem& product) const {
  if (bytes() == 0 || !check_size(product).ok()) return {};
  std::vector<Candidate> all;
  for (const GemmConfig& config : kGemmConfigs) {
    if (!can_run(config, product, device, Path::kSix)) continue;
    all.push_back(prepared_candidate(config, *this, product));
  }
  return all;
}

}  // namespace tilegate::int8x3
