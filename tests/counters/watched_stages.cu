// Stages that break their contract and give the right result, for the watched suites to reject, and
// right twins. One thread per element of C.
#include <array>
#include <cstdint>

#include <tilegate/catalogue.hpp>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {
namespace {

enum class Fault { kNone, kStoresTwice, kLoadsCAtBetaZero, kLoadsPaddingOfA, kLeavesEqual };

constexpr int kThreads = 64;
constexpr std::int64_t kTileSizes[] = {8};

template <Fault kFault>
__global__ void sgemm(KernelArgs args) {
  const auto [m, n, k_end] = args.shape;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= m * n) return;
  const float* const a = args.a + i / n * args.lda;
  volatile float* const c = args.c + i / n * args.ldc + i % n;
  float sum = 0.0F;
  for (std::int64_t k = 0; k < k_end; ++k) sum += a[k] * args.b[k * args.ldb + i % n];
  if (kFault == Fault::kLoadsCAtBetaZero) static_cast<void>(*c);
  if (kFault == Fault::kLoadsPaddingOfA && args.lda > k_end && i == 0) {
    static_cast<void>(static_cast<const volatile float*>(a)[k_end]);
  }
  const float result = args.beta == 0.0F ? args.alpha * sum : args.alpha * sum + args.beta * *c;
  if (kFault == Fault::kLeavesEqual && args.beta != 0.0F && *c == result) return;
  *c = result;
  if (kFault == Fault::kStoresTwice) *c = result;
}

template <Fault kFault>
Status enqueue(const KernelArgs& args, Stream stream) {
  const device::LaunchConfig launch{.kernel = "planted",
                                    .blocks = ceil_div(args.shape.m * args.shape.n, kThreads),
                                    .threads_x = kThreads};
  return device::launch(launch, stream, sgemm<kFault>, args);
}

template <Fault kFault>
Choice choose(const Problem& problem, const Device& /*device*/) {
  return serial_choice<TileGrid<8, 8>>(problem, enqueue<kFault>);
}

template <Fault kFault>
constexpr Stage make_stage(std::string_view name) {
  return {.name = name, .tile_sizes = kTileSizes, .choose = choose<kFault>};
}

__global__ void load_and_store_c(KernelArgs args) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= args.shape.m * args.shape.n) return;
  volatile float* const c = args.c + i / args.shape.n * args.ldc + i % args.shape.n;
  *c = *c;
}

// The second kernel comes back to what the first has stored.
template <bool kDeclares>
Status enqueue_two(const KernelArgs& args, Stream stream) {
  device::LaunchConfig launch{.kernel = "planted",
                              .blocks = ceil_div(args.shape.m * args.shape.n, kThreads),
                              .threads_x = kThreads};
  if (Status s = device::launch(launch, stream, sgemm<Fault::kNone>, args); !s.ok()) return s;
  launch.adds_to_c = kDeclares;
  return device::launch(launch, stream, load_and_store_c, args);
}

template <bool kDeclares>
Choice choose_two(const Problem& problem, const Device& /*device*/) {
  return serial_choice<TileGrid<8, 8>>(problem, enqueue_two<kDeclares>);
}

constexpr std::array kStages = {
    make_stage<Fault::kNone>("KeepsContract"),
    make_stage<Fault::kStoresTwice>("StoresTwice"),
    make_stage<Fault::kLoadsCAtBetaZero>("LoadsCAtBetaZero"),
    make_stage<Fault::kLoadsPaddingOfA>("LoadsPaddingOfA"),
    make_stage<Fault::kLeavesEqual>("LeavesEqualElements"),
    Stage{.name = "AddsToC", .tile_sizes = kTileSizes, .choose = choose_two<true>},
    Stage{.name = "AddsToCInSilence", .tile_sizes = kTileSizes, .choose = choose_two<false>},
};

}  // namespace

std::span<const CatalogueEntry> catalogue() {
  static const std::vector<CatalogueEntry> kEntries = [] {
    std::vector<CatalogueEntry> entries;
    for (const Stage& stage : kStages) {
      entries.push_back({&stage, {}, "", "", "", /*yardstick=*/false, /*external=*/false});
    }
    return entries;
  }();
  return kEntries;
}

}  // namespace tilegate
