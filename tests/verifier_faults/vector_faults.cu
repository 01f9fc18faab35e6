// The double-buffered kernel of the ladder behind conditions that let vectors through where rows do
// not consist of whole ones, or where the products of a batch do not begin with one.
#include <tilegate/common/warp_tiles.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier_faults/faults.hpp"
#include "verifier_faults/planted_stage.cuh"

namespace tilegate::faults {

struct SmallTiles {
  static constexpr int kBlockM = 32, kBlockN = 16, kBlockK = 8;
  static constexpr int kWarpM = 32, kWarpN = 16;
  static constexpr int kBlocksPerSm = 1;
  static constexpr bool kPermutedLanes = false;
};
using Config = WarpTiles<SmallTiles>;

template <bool kVector>
__global__ void vector_sgemm(KernelArgs args) {
  double_buffered::multiply_block<Config, kVector>(args);
}

// As allows_vectors for one operand, but for the width of its rows.
bool starts_rows_aligned(const Problem& problem, Operand operand) {
  return problem.offset_bytes[static_cast<std::size_t>(operand)] % 16 == 0 &&
         problem.ld(operand) % 4 == 0 && (problem.batch == 1 || problem.stride(operand) % 4 == 0);
}

// `kForgets` of the operands are not asked for the width of their rows, or all for their strides.
template <bool kForgetsA, bool kForgetsBAndC, bool kForgetsStrides>
Choice choose_vectors(const Problem& problem, const Device& /*device*/) {
  Problem asked = problem;
  if (kForgetsStrides) asked.batch = 1;
  const auto allows = [&](Operand operand, bool forgets) {
    return forgets ? starts_rows_aligned(asked, operand) : allows_vectors(asked, operand);
  };
  const bool vectors = allows(Operand::kA, kForgetsA) && allows(Operand::kB, kForgetsBAndC) &&
                       allows(Operand::kC, kForgetsBAndC);
  const auto kernel = vectors ? vector_sgemm<true> : vector_sgemm<false>;
  return serial_choice<Config::Grid>(problem, [kernel](KernelArgs args, Stream stream) {
    const device::LaunchConfig launch{
        .kernel = "planted vectors",
        .blocks = Config::Grid::num_blocks(args.shape),
        .threads_x = Config::kNumThreads,
        .shared_bytes = sizeof(double_buffered::SharedStorage<Config>)};
    for (std::int64_t product = 0; product < args.batch; ++product) {
      if (Status status = device::launch(launch, stream, kernel, args); !status.ok()) return status;
      args.a += args.stride_a;
      args.b += args.stride_b;
      args.c += args.stride_c;
    }
    return Status();
  });
}

template <bool kForgetsA, bool kForgetsBAndC, bool kForgetsStrides>
constexpr Stage make_vector_stage(std::string_view name) {
  Stage stage = make_stage(name, kWarpTileSizes<SmallTiles>,
                           choose_vectors<kForgetsA, kForgetsBAndC, kForgetsStrides>);
  stage.takes_batches = true;
  return stage;
}

std::span<const Stage> vector_faults() {
  static constexpr Stage kStages[] = {
      make_vector_stage<false, false, false>("RightVectors"),
      make_vector_stage<true, false, false>("RaggedVectorsOfA"),
      make_vector_stage<false, true, false>("RaggedVectorsOfBAndC"),
      make_vector_stage<false, false, true>("VectorsOfShiftedProducts"),
  };
  return kStages;
}

}  // namespace tilegate::faults
