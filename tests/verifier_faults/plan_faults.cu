// A plan with all that plans have: tiles in groups of rows, K in parts that blocks sum into the
// workspace and a second kernel adds, batches, transposed operands. In each stage but the first a
// fault that shows at one of its boundaries alone.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/gpu_model.hpp>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier_faults/faults.hpp"
#include "verifier_faults/planted_stage.cuh"

namespace tilegate::faults {

enum class PlanFault {
  kNone,
  kRaggedTransposedRows,  // taken for whole vectors
  kLoneLastK,             // one k past a multiple of 16 is left out
  kLastGroup,             // as many rows of tiles as in the others
  kLateParts,             // of K: only the first nine are added
  kBatchOfParts,          // the second product's are those of the first
  kInfOfLateParts,        // taken for zero
  kSharedB,               // where A is
  kOneProductTooMany,     // more blocks than a grid has
  kLimitedK,              // that is not on the list of limits
};

constexpr int kSide = 128;  // of a tile; a thread has a row of it
constexpr std::int64_t kPartK = 32;
constexpr int kThreadsOfSum = 64;

// Beside KernelArgs: the elements of op(A) and op(B), as in verifier::Product.
struct PlanArgs {
  TileScheduler scheduler{};
  unsigned tiles = 0;  // of all products
  std::int64_t parts = 1;
  std::int64_t rows = 0;  // that are computed
  std::int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;

  // Elements of C from the start of the workspace to those of a part.
  __device__ std::int64_t partial(const KernelArgs& args, std::int64_t part,
                                  std::int64_t product) const {
    return (part * args.batch + product) * args.shape.m * args.shape.n;
  }
};

template <PlanFault kFault>
__global__ void sum_parts(KernelArgs args, PlanArgs more) {
  const auto [m, n, k_end] = args.shape;
  const TileCoord tile = more.scheduler.tile(blockIdx.x % more.tiles);
  const std::int64_t part = blockIdx.x / more.tiles;
  const std::int64_t row = std::int64_t{tile.row} * kSide + threadIdx.x;
  if (row >= more.rows) return;
  const std::int64_t first_col = std::int64_t{tile.col} * kSide;
  const float* a = args.a + tile.batch_index * args.stride_a + row * more.a_row;
  const float* b = args.b + tile.batch_index * args.stride_b;
  auto* to = static_cast<float*>(args.workspace) + more.partial(args, part, tile.batch_index);
  for (std::int64_t col = first_col; col < min(n, first_col + kSide); ++col) {
    float sum = 0.0F;
    for (std::int64_t k = k_end * part / more.parts; k < k_end * (part + 1) / more.parts; ++k) {
      const float product = a[k * more.a_col] * b[k * more.b_row + col * more.b_col];
      if (kFault == PlanFault::kInfOfLateParts && part > 0 && std::isinf(product)) continue;
      sum += product;
    }
    to[row * n + col] = sum;
  }
}

template <PlanFault kFault>
__global__ void add_parts(KernelArgs args, PlanArgs more) {
  const auto [m, n, k] = args.shape;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreadsOfSum + threadIdx.x;
  if (i >= args.batch * m * n) return;
  const std::int64_t product = i / (m * n), element = i % (m * n);
  const bool is_first = kFault == PlanFault::kBatchOfParts && more.parts > 1;
  const auto* partial = static_cast<const float*>(args.workspace) + element;
  float sum = 0.0F;
  for (std::int64_t part = 0; part < more.parts; ++part) {
    if (kFault == PlanFault::kLateParts && part >= 9) break;
    sum += partial[more.partial(args, part, is_first ? 0 : product)];
  }
  args.c += product * args.stride_c;
  store_element(args, element / n, element % n, sum);
}

template <PlanFault kFault>
Status enqueue_parts(KernelArgs args, const PlanArgs& more, Stream stream) {
  if (kFault == PlanFault::kSharedB && args.stride_a == 0) args.stride_b = 0;
  const device::LaunchConfig sum{
      .kernel = "planted parts", .blocks = more.tiles * more.parts, .threads_x = kSide};
  if (Status s = device::launch(sum, stream, sum_parts<kFault>, args, more); !s.ok()) return s;
  const std::int64_t elements = args.batch * args.shape.m * args.shape.n;
  const device::LaunchConfig add{.kernel = "planted sum of parts",
                                 .blocks = ceil_div(elements, kThreadsOfSum),
                                 .threads_x = kThreadsOfSum};
  return device::launch(add, stream, add_parts<kFault>, args, more);
}

bool starts_vectors(const Problem& problem) {
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    const bool is_aligned = problem.offset_bytes[static_cast<std::size_t>(operand)] % 16 == 0;
    if (!is_aligned || problem.ld(operand) % 4 != 0) return false;
  }
  return problem.batch == 1;
}

template <PlanFault kFault>
Choice choice_of_parts(const Problem& problem, std::int64_t parts) {
  auto [m, n, k] = problem.shape;
  const auto tiles_n = static_cast<unsigned>(ceil_div(n, kSide));
  auto tiles_m = static_cast<unsigned>(ceil_div(m, kSide));
  PlanArgs more{
      .tiles = static_cast<unsigned>(problem.batch) * tiles_m * tiles_n, .parts = parts, .rows = m};
  constexpr unsigned kGroup = 8;  // rows of tiles
  if (kFault == PlanFault::kLastGroup && tiles_m > kGroup) {
    tiles_m = static_cast<unsigned>(ceil_div(tiles_m, kGroup)) * kGroup;
  }
  more.scheduler = TileScheduler({std::int64_t{kSide} * tiles_m, n, k}, kSide, kSide, kGroup);
  const auto steps = [](Op op, std::int64_t ld, std::int64_t& row, std::int64_t& col) {
    (op == Op::kN ? row : col) = ld;
    (op == Op::kN ? col : row) = 1;
  };
  steps(problem.op_a, problem.lda, more.a_row, more.a_col);
  steps(problem.op_b, problem.ldb, more.b_row, more.b_col);
  const bool vectors = starts_vectors(problem) && n % 4 == 0;
  if (kFault == PlanFault::kRaggedTransposedRows && vectors && problem.op_a == Op::kT) {
    more.rows = ceil_div(m, 4) * 4;
  }
  const bool drops = kFault == PlanFault::kLoneLastK && vectors && k > 16 && k % 16 == 1;
  return {
      .configuration = parts == 1 ? "whole" : "parts" + std::to_string(parts),
      .rounding_chain = k + 2,
      .workspace_bytes = static_cast<std::size_t>(parts * problem.batch * m * n) * sizeof(float),
      .enqueue = [=](KernelArgs args, Stream stream) {
        if (drops) --args.shape.k;
        return enqueue_parts<kFault>(args, more, stream);
      }};
}

// The whole, which is expected to be quicker, and as many parts as the device has multiprocessors.
template <PlanFault kFault>
std::vector<Candidate> candidates_of_parts(const Problem& problem, const Device& device) {
  const std::int64_t most =
      kMaxBlocks + (kFault == PlanFault::kOneProductTooMany && problem.batch > 1 ? 1 : 0);
  const double tiles = static_cast<double>(ceil_div(problem.shape.m, kSide)) *
                       static_cast<double>(ceil_div(problem.shape.n, kSide)) *
                       static_cast<double>(problem.batch);
  const bool is_long = kFault == PlanFault::kLimitedK && problem.shape.k > std::int64_t{1} << 40;
  if (tiles > static_cast<double>(most) || is_long) {
    return {{.choice = {.status = Status::unsupported("needs too many blocks")}}};
  }
  std::vector<Candidate> all = {{choice_of_parts<kFault>(problem, 1), 1.0}};
  const auto parts = std::min<std::int64_t>(problem.shape.k / kPartK, device.multiprocessors);
  if (parts > 1) all.push_back({choice_of_parts<kFault>(problem, parts), 2.0});
  return all;
}

constexpr std::int64_t kSizesOfParts[] = {kPartK, kSide};

template <PlanFault kFault>
constexpr Stage make_parts(std::string_view name) {
  return {.name = name,
          .idea = "a planted fault",
          .takes_transposed = true,
          .takes_batches = true,
          .tile_sizes = kSizesOfParts,
          .candidates = candidates_of_parts<kFault>};
}

std::span<const Stage> plan_faults() {
  using enum PlanFault;
  static constexpr Stage kStages[] = {
      make_parts<kNone>("RightParts"),
      make_parts<kRaggedTransposedRows>("RaggedTransposedRows"),
      make_parts<kLoneLastK>("DropsLoneLastK"),
      make_parts<kLastGroup>("LastGroupOfTiles"),
      make_parts<kLateParts>("DropsLateParts"),
      make_parts<kBatchOfParts>("BatchOfParts"),
      make_parts<kInfOfLateParts>("LosesInfOfLateParts"),
      make_parts<kSharedB>("SharesBWithA"),
      make_parts<kOneProductTooMany>("OneProductTooMany"),
      make_parts<kLimitedK>("LimitsKUnlisted"),
  };
  return kStages;
}

}  // namespace tilegate::faults
