// StreamK: the tiles of the last, partial wave are split along K, so that no multiprocessor is idle
// (M. Osama et al., Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
// Multiplication on the GPU, PPoPP 2023).
//
// New against Interleaved: full waves of tiles are computed as before, one block per tile. Each
// tile of the partial wave takes several blocks along K, whose partial sums go to the workspace. A
// second kernel adds these in a fixed order, so that the same call gives the same bits. Where C has
// fewer tiles than there are multiprocessors, all of them are split. What limits it: the traffic of
// the partial sums, and the second launch. Here are the plans; the kernels are in stream_k.cuh.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/gpu_model.hpp>
#include <tilegate/common/interleaved/plan.cuh>
#include <tilegate/stage.hpp>

#include "stream_k.cuh"

namespace tilegate::stream_k {

constexpr std::int64_t kMinTilesPerSplit = 4;  // k tiles: fewer are not worth a partial sum
constexpr std::int64_t kMostSplits = 16;       // unless one wave holds more

// Plans with one tile size: without a split, and with the fastest number of splits.
template <typename Config>
class Planner {
 public:
  Planner(const Problem& problem, const Device& device)
      : problem_(problem),
        device_(device),
        tiles_(interleaved::count_tiles<Config>(problem)),
        k_tiles_(ceil_div(problem.shape.k, Config::kBlockK)),
        launches_(interleaved::with_layout(problem, kernel_for<Config>)) {}

  void add_to(std::vector<Candidate>& list) const {
    if (launches_.kernel == nullptr || tiles_ == 0) return;
    const std::int64_t slots = std::int64_t{device_.multiprocessors} * Config::kBlocksPerSm;
    const std::int64_t full_waves = tiles_ / slots * slots;
    list.push_back(candidate(tiles_, 1, ""));
    if (full_waves == tiles_) return;
    const std::int64_t one_wave = slots / (tiles_ - full_waves);
    add_best(full_waves, std::max(one_wave, kMostSplits), list);
  }

 private:
  void add_best(std::int64_t head, std::int64_t most_k_splits, std::vector<Candidate>& list) const {
    std::int64_t best = 1;
    for (std::int64_t k_splits = 2;
         k_splits <= std::min(most_k_splits, k_tiles_ / kMinTilesPerSplit); ++k_splits) {
      if (best == 1 || seconds(head, k_splits) < seconds(head, best)) best = k_splits;
    }
    const std::int64_t tail = tiles_ - head;
    if (best == 1 || head + tail * best > kMaxBlocks) return;
    list.push_back(candidate(head, best, "split" + std::to_string(best)));
  }

  std::size_t workspace_bytes(std::int64_t head, std::int64_t k_splits) const {
    if (k_splits == 1) return 0;
    return static_cast<std::size_t>((tiles_ - head) * k_splits * kTileWords<Config>) *
           sizeof(float);
  }

  // Programmatic dependent launch.
  bool overlaps() const { return device_.compute_capability >= 90; }

  Parts parts(std::int64_t head, std::int64_t k_splits) const {
    const double blocks = interleaved::block_seconds<Config>(head, k_tiles_, device_) +
                          interleaved::block_seconds<Config>((tiles_ - head) * k_splits,
                                                             ceil_div(k_tiles_, k_splits), device_);
    Parts parts = cost::parts(
        problem_, device_, blocks, interleaved::allows_counted_vectors(problem_),
        cost::add_seconds(static_cast<double>(workspace_bytes(head, k_splits)), k_splits));
    const std::int64_t count = head + (tiles_ - head) * k_splits;
    interleaved::describe_blocks<Config>(problem_, device_, tiles_, count, parts);
    return parts;
  }
  double seconds(std::int64_t head, std::int64_t k_splits) const {
    return cost::total(parts(head, k_splits), overlaps() && k_splits == 1);
  }

  Candidate candidate(std::int64_t head, std::int64_t k_splits, const std::string& name) const {
    const auto chain = [&](std::int64_t k_tiles) {
      return interleaved::rounding_chain<Config>(problem_.shape, k_tiles);
    };
    const std::int64_t tail = tiles_ - head;
    const TailSplit split{.scheduler = interleaved::scheduler_of<Config>(problem_.shape),
                          .head = static_cast<unsigned>(head),
                          .tail = static_cast<unsigned>(tail),
                          .k_splits = static_cast<unsigned>(k_splits)};
    Choice choice{.configuration = Config::kName + name,
                  .rounding_chain = head == 0 ? 0 : chain(k_tiles_),
                  .workspace_bytes = workspace_bytes(head, k_splits)};
    if (tail > 0) {
      choice.rounding_chain =
          std::max(choice.rounding_chain, chain(ceil_div(k_tiles_, k_splits)) + k_splits);
    }
    const bool vectors = allows_vectors(problem_, Operand::kC);
    choice.enqueue = [split, launches = launches_,
                      sum = add_of(vectors, are_few_partials(k_splits)),
                      overlaps = overlaps()](const KernelArgs& args, Stream stream) {
      const Status status =
          device::launch({.kernel = "stream_k",
                          .blocks = split.head + std::int64_t{split.tail} * split.k_splits,
                          .threads_x = Config::kNumThreads,
                          .shared_bytes = launches.shared_bytes,
                          .overlaps_previous = overlaps},
                         stream, launches.kernel, args, split);
      if (!status.ok() || split.k_splits == 1) return status;
      return device::launch({.kernel = "stream_k add",
                             .blocks = split.tail * kAddBlocks<Config>,
                             .threads_x = kAddThreads,
                             .overlaps_previous = overlaps},
                            stream, sum, args, split);
    };
    choice.kernels = [problem = problem_, tiles = tiles_, head, k_splits] {
      return planned_kernels(problem, tiles, head, k_splits);
    };
    return {std::move(choice), seconds(head, k_splits), parts(head, k_splits)};
  }

  static auto add_of(bool vectors, bool few) {
    constexpr int kFew = kFewPartialsInFlight, kMany = kPartialsInFlight;
    if (few) return vectors ? add<Config, true, kFew> : add<Config, false, kFew>;
    return vectors ? add<Config, true, kMany> : add<Config, false, kMany>;
  }

  static std::vector<PlannedKernel> planned_kernels(const Problem& problem, std::int64_t tiles,
                                                    std::int64_t head, std::int64_t k_splits) {
    const std::int64_t k_tiles = ceil_div(problem.shape.k, Config::kBlockK), tail = tiles - head;
    PlannedKernel whole = interleaved::planned_kernel<Config>(problem, k_tiles);
    if (k_splits == 1) return {whole};
    PlannedKernel split = interleaved::planned_kernel<Config>(problem, ceil_div(k_tiles, k_splits));
    split.name += " split";
    split.parameters.push_back(parameter::tiles("k tiles among splits", k_tiles, k_splits));
    split.parameters.push_back(parameter::count("splits", k_splits));
    split.parameters.push_back(parameter::count("split tiles", tail));
    split.parameters.push_back(parameter::count("whole tiles before", head));
    const bool few = are_few_partials(k_splits);
    PlannedKernel sum{
        .name = "add " + std::string(Config::kName) +
                (allows_vectors(problem, Operand::kC) ? " vectors" : " words"),
        .parameters = {parameter::rows(Config::kBlockM), parameter::columns(Config::kBlockN),
                       parameter::each("few splits", few),
                       parameter::tiles("sums in flight", k_splits - 1,
                                        few ? kFewPartialsInFlight : kPartialsInFlight),
                       parameter::count("split tiles", tail)}};
    if (head == 0) return {split, sum};
    return {whole, split, sum};
  }

  const Problem& problem_;
  const Device& device_;
  std::int64_t tiles_, k_tiles_;
  interleaved::KernelOf<KernelArgs, TailSplit> launches_;
};

template <typename... Tiles>
std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  if (Status s = interleaved::check_extents(problem); !s.ok()) return {{.choice = {.status = s}}};
  std::vector<Candidate> list;
  (Planner<InterleavedTiles<Tiles>>(problem, device).add_to(list), ...);
  if (list.empty()) return {{.choice = {.status = interleaved::too_many_tiles()}}};
  return list;
}

template <typename... Tiles>
Status setup() {
  Status status;
  ((status = interleaved::allow_shared_memory(kernel_for<InterleavedTiles<Tiles>>)).ok() && ...);
  return status;
}

template <typename... Tiles>
constexpr Stage make_stage() {
  return {.name = "StreamK",
          .idea = "the last, partial wave of tiles split along K",
          .takes_transposed = true,
          .takes_batches = true,
          .tile_sizes = interleaved::kTileSizes,
          .candidates = candidates<Tiles...>,
          .setup = setup<Tiles...>};
}

extern const Stage stage;
const Stage stage = make_stage<interleaved::Tiles128x256x8, interleaved::Tiles128x256x16,
                               interleaved::Tiles128x128x16s2, interleaved::Tiles64x128x32s4>();

}  // namespace tilegate::stream_k
