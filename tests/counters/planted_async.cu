// Kernels that misuse asynchronous hardware, and what must be said of each.
#include "planted.hpp"
#include "planted_multiply.cuh"
#include "planted_named_barriers.cuh"
#include "planted_orders.cuh"
#include "planted_pipeline.cuh"
#include "planted_stores.cuh"

namespace tilegate::planted {
namespace async {
namespace {

template <auto kKernel>
Status launch(float* memory) {
  const device::LaunchConfig config{.kernel = "planted",
                                    .blocks = 2,
                                    .threads_x = kConsumers + 32,
                                    .shared_bytes = sizeof(Storage)};
  return device::launch(config, nullptr, kKernel, memory);
}

template <auto kKernel>
Status launch_warpgroup(float* memory) {
  const device::LaunchConfig config{
      .kernel = "planted", .blocks = 1, .threads_x = kConsumers, .shared_bytes = sizeof(Storage)};
  return device::launch(config, nullptr, kKernel, memory);
}

// A warp of its own is no warpgroup.
Status launch_warp(float* memory) {
  const device::LaunchConfig config{
      .kernel = "planted", .blocks = 1, .threads_x = 96, .shared_bytes = sizeof(Storage)};
  return device::launch(config, nullptr, multiply_stored_tiles<false>, memory);
}

#define PLANT(fault, shows, message) \
  {&(#fault)[1], launch<pipeline<Fault::fault>>, launch<pipeline<Fault::kNone>>, message, shows}

#define PLANT_STORE(fault, shows, message) \
  {&(#fault)[1], launch_store<StoreFault::fault>, launch_store<StoreFault::kNone>, message, shows}

#define PLANT_FLOAT(fault, shows, message)                                            \
  {"Floats_" #fault, launch_warpgroup<multiply_floats<FloatFault::fault, false>>,     \
   launch_warpgroup<multiply_floats<FloatFault::kNone, false>>, message, shows},      \
  {                                                                                   \
    "Transposed_" #fault, launch_warpgroup<multiply_floats<FloatFault::fault, true>>, \
        launch_warpgroup<multiply_floats<FloatFault::kNone, true>>, message, shows    \
  }

#define PLANT_KERNEL(kernel, shows, message) \
  {#kernel, launch_warpgroup<kernel<true>>, launch_warpgroup<kernel<false>>, message, shows}

// Where a plain build shows it.
constexpr auto kStops = Shows::kStops;
constexpr auto kForward = Shows::kWrongForward;
constexpr auto kReverse = Shows::kWrongReverse;
constexpr auto kNowhere = Shows::kNowhere;

constexpr Plant kPlants[] = {
    PLANT(
        kReadsBeforeWait, kForward,
        "(read of byte \\d+ of shared memory at .*planted_\\w+\\.cuh:\\d+ before the barrier_wait "
        "for the bulk copy that thread \\(128,0,0\\) started at|race at|no thread of the block)"),
    PLANT(kMultipliesBeforeWait, kForward,
          "(before the barrier_wait for the bulk copy that thread \\(128,0,0\\) started|"
          "the warpgroup_mma of warpgroup 0 at .* reads byte 0 of shared memory, which nothing in "
          "the block has written)"),
    PLANT(kReadsAfterArrival, kReverse,
          "race at byte \\d+ of shared memory: this thread writes at .*; thread .* read at .*; no "
          "barrier between|read of byte \\d+ of shared memory at .* before the barrier_wait"),
    PLANT(
        kMultipliesAfterArrival, kReverse,
        "write of byte \\d+ of shared memory at .*, which the warpgroup_mma of warpgroup \\d at .* "
        "still reads: its wait does not come before"),
    PLANT(
        kKeepsParity, kStops,
        "thread \\(128,0,0\\): wait on the wrong phase: barrier_wait at .* for parity 1 is for "
        "phase -1 of the barrier at byte \\d+ of shared memory, made at .*, which this thread has "
        "waited for before"),
    PLANT(
        kExpectsMoreBytes, kStops,
        "deadlock: thread \\(0,0,0\\) \\(and 127 more\\) waits at .* for phase 0 of the barrier at "
        "byte .*, which has 1 of 1 arrivals and 2304 of 2368 bytes; thread \\(128,0,0\\) waits at "
        ".* for phase 0 of .* 0 of 4 arrivals; thread \\(129,0,0\\) \\(and 30 more\\) has left"),
    PLANT(kExpectsFewerBytes, kStops,
          "(expects 2048 bytes, and copies of 2304 were started, the last at "
          ".*planted_\\w+\\.cuh:\\d+|deadlock: .* 2560 of 2048 bytes)"),
    PLANT(kArrivesOnce, kStops, "deadlock: .* 1 of 4 arrivals"),
    PLANT(kArrivesTwice, kStops,
          "barrier_arrive at .* is one more than the 1 arrivals of phase 0 of"),
    PLANT(kCopiesTwice, kForward,
          "write of byte 0 of shared memory at .* before the barrier_wait for the bulk copy"),
    PLANT(kCopiesPastSharedMemory, kStops,
          "copy_bulk at .* of 1040 bytes that are not in the \\d+ bytes"),
    PLANT(kCopiesMisaligned, kStops, "misaligned copy_bulk at .* of 1024 bytes at byte 0"),
    PLANT(kCopiesFromOutside, kStops, "outside every operand"),
    PLANT(kNobodyWaits, kStops,
          "block ends in phase 0 of the barrier|no thread has waited for phase 0"),
    PLANT(kMakesBarrierTwice, kStops, "barrier_init at .* already: a barrier is initialized once"),
    PLANT(kMakesBarrierForNobody, kStops, "barrier_init at .* for 0 arrivals"),
    PLANT(kUsesBarrierUnfenced, kStops,
          "before barrier_init_fence\\(\\) by the thread that made it"),
    PLANT(kUsesBarrierUnsynchronised, kNowhere, "race at byte|that barrier_init has not made"),
    PLANT(kOverwritesBarrier, kStops, "race at byte|that was overwritten"),
    PLANT(kWaitsForParityTwo, kStops, "for parity 2: it is 0 or 1"),
    PLANT(kLoadsAccumulator, kForward,
          "load of acc\\[1\\] at .*planted_\\w+\\.cuh:\\d+.* before the warpgroup_wait for the "
          "warpgroup_mma at .*planted_\\w+\\.cuh"),
    PLANT(
        kStoresAccumulator, kStops,
        "store of acc\\[2\\] at .* before the warpgroup_wait|acc\\[2\\] of the warpgroup_mma at .* "
        "was written before its warpgroup_wait"),
    PLANT(kMultipliesBeyondTile, kForward,
          "the warpgroup_mma of warpgroup \\d at .* reads byte \\d+ of shared memory, which "
          "nothing in the block has written"),
    PLANT(kMultipliesBeyondSharedMemory, kStops,
          "the descriptor of a puts row 0 at byte \\d+ of \\d+ bytes of shared memory"),
    PLANT(kMultipliesWithoutArrive, kStops, "without warpgroup_arrive\\(\\) since"),
    PLANT(kMultipliesOtherShape, kStops, "accumulators of one with another shape at"),
    PLANT(kWarpMultipliesLess, kStops,
          "deadlock: thread \\(0,0,0\\) \\(and 95 more\\) waits at .*planted_\\w+\\.cuh:\\d+ for "
          "all threads of its warpgroup to start the same multiplications"),
    PLANT(kWarpMultipliesOtherTile, kStops,
          "thread \\(96,0,0\\): has not started the same multiplications as thread \\(0,0,0\\)"),
    PLANT(kLeavesMultiplication, kStops, "leaves the kernel before the warpgroup_wait of"),
    PLANT_KERNEL(
        multiply_stored_tiles, kNowhere,
        "the warpgroup_mma of warpgroup \\d at .* reads byte \\d+ of shared memory, which thread "
        "\\(\\d+,0,0\\) stored at "
        ".*planted_\\w+\\.cuh:\\d+ and did not fence_async_proxy\\(\\) before a barrier"),
    PLANT_KERNEL(multiply_registers, kStops,
                 "a\\[1\\] of the warpgroup_mma at .* was written before its warpgroup_wait"),
    PLANT_KERNEL(
        multiply_other_registers, kStops,
        "a of the warpgroup_mma at .* was written without warpgroup_fence_operand since that"),
    PLANT_STORE(kUnfenced, kNowhere,
                "the store of thread \\(5,0,0\\) at .* reads byte 0 of shared memory, which thread "
                "\\(0,0,0\\) stored at .*planted_\\w+\\.cuh:\\d+ and did not fence_async_proxy"),
    PLANT_STORE(
        kOverwritesWhileStoring, kReverse,
        "write of byte \\d+ of shared memory at .*planted_\\w+\\.cuh:\\d+, which the store of "
        "thread \\(5,0,0\\) at .* still reads: its wait does not come before"),
    PLANT_STORE(kLeavesStore, kStops, "leaves the kernel before the store_wait of the store at"),
    PLANT_STORE(kStoresMisaligned, kStops, "misaligned store_bulk at .* of 512 bytes at byte 0"),
    PLANT_STORE(kCopiesMisalignedBox, kStops,
                "misaligned copy_tensor at .* at byte 16 of shared memory: it must be"),
    PLANT_STORE(kBeginsBetweenPieces, kStops,
                "misaligned copy_tensor at .* of a box that begins at column 2 of elements of 4"),
    PLANT_STORE(kNamesTooFewCoordinates, kStops,
                "copy_tensor at .* names 2 coordinates of a tensor of 3 dimensions"),
    PLANT_STORE(kStoresPastEnd, kStops, "outside every operand"),
    PLANT_KERNEL(
        store_of_others, kReverse,
        "race at byte 16 of shared memory: this thread reads at .*; thread \\(4,0,0\\) wrote at"),
    PLANT_KERNEL(
        store_of_copy, kReverse,
        "read of byte 16 of shared memory at .* before the wait of the async copy that thread "
        "\\(0,0,0\\) started"),
    PLANT_KERNEL(store_of_bulk_copy, kForward,
                 "read of byte 16 of shared memory at .* before the barrier_wait for the bulk copy "
                 "that thread \\(0,0,0\\) started"),
    PLANT_FLOAT(
        kUnfenced, kNowhere,
        "reads byte 0 of shared memory, which thread .* did not fence_async_proxy\\(\\) before"),
    PLANT_FLOAT(kLoadsAccumulator, kForward,
                "load of acc\\[0\\] at .* before the warpgroup_wait for the warpgroup_mma at"),
    PLANT_FLOAT(kMultipliesBeyondTile, kForward,
                "reads byte \\d+ of shared memory, which nothing in the block has written"),
    PLANT_FLOAT(
        kSkipsResults, kNowhere,
        "load of acc\\[1\\] at .* before the warpgroup_fence_operand of the warpgroup_mma at"),
    PLANT_STORE(kStoresBeforeTensor, kStops, "store_tensor at .* begins at a negative coordinate"),
    {"MultipliesInAWarp", launch_warp, launch_warpgroup<multiply_stored_tiles<false>>,
     "by a warpgroup of fewer than 128 threads", kStops},
    PLANT_KERNEL(fence_often, kNowhere,
                 "too many barriers without __syncthreads: 65535 of a thread are counted at most"),
    {"ExchangesWithoutBarrier", launch<kRacingExchange<true>>, launch<kRacingExchange<false>>,
     "race at byte \\d+ .*; no (barrier|__syncthreads) between", kReverse},
    PLANT_KERNEL(wait_for_warp, kForward, "read of byte \\d+ .* before the barrier_wait for"),
    PLANT_KERNEL(store_after_arrival, kNowhere,
                 "race at byte 0 .*; no (barrier|__syncthreads) between"),
    PLANT_KERNEL(wait_for_old_phase, kNowhere,
                 "race at byte 0 .*; no (barrier|__syncthreads) between"),
    PLANT_KERNEL(fence_after_barrier, kNowhere, "did not fence_async_proxy\\(\\) before a barrier"),
    PLANT_KERNEL(
        write_what_others_read, kNowhere,
        "race at byte 4 .* writes at .*; thread \\(\\d+,0,0\\) read at .*; no barrier between"),
    {"WaitsAtOtherBarrier", launch<kStuckExchange<true>>, launch<kStuckExchange<false>>,
     "deadlock: thread \\(0,0,0\\) \\(and 31 more\\) waits at .* for named barrier 1, which has 32 "
     "of 64 threads; thread \\(32,0,0\\) \\(and 31 more\\) waits at .* for named barrier 2",
     kStops},
    {"WaitsForOtherThreads", launch<kUnequalExchange<true>>, launch<kUnequalExchange<false>>,
     "named_barrier<1> at .* is of \\d\\d threads, and of \\d\\d at", kStops},
};

}  // namespace
}  // namespace async

std::span<const Plant> async_plants() { return async::kPlants; }

}  // namespace tilegate::planted
