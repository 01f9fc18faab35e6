// Calls of a stage that break its contract, or that race in global memory, and what must be said of
// each.
#include "planted.hpp"
#include "planted_flags.cuh"
#include "planted_operands.cuh"
#include "planted_workspace.cuh"

namespace tilegate::planted {
namespace calls {
namespace {

Problem padded(float alpha = 1.0F, float beta = 1.0F) {
  Problem problem = Problem::dense({4, 6, 3});
  problem.lda = 5;
  problem.ldb = problem.ldc = 8;
  problem.alpha = alpha;
  problem.beta = beta;
  return problem;
}

// Two matrices each; a row lies between two of A.
Problem batched() {
  Problem problem = padded();
  problem.batch = 2;
  problem.stride_a = 5 * problem.lda;
  problem.stride_b = 3 * problem.ldb;
  problem.stride_c = 4 * problem.ldc;
  return problem;
}

// Both products have one A.
Problem shared() {
  Problem problem = batched();
  problem.stride_a = 0;
  return problem;
}

// The rows of two matrices of A lie in turn.
Problem interleaved() {
  Problem problem = batched();
  problem.stride_a = 4;
  problem.lda = 8;
  return problem;
}

#define PLANT(fault, problem, message) \
  {&(#fault)[1], problem, enqueue<Fault::fault>, enqueue<Fault::kNone>, message}
#define PLANT_THREE(fault, message)                              \
  {&(#fault)[1], padded(), enqueue_three<WorkspaceFault::fault>, \
   enqueue_three<WorkspaceFault::kNone>, message}
#define PLANT_FLAG(fault, message)                                                           \
  {&(#fault)[1], padded(), enqueue_flags<FlagFault::fault>, enqueue_flags<FlagFault::kNone>, \
   message}

}  // namespace
}  // namespace calls

std::span<const PlantedCall> planted_calls() {
  using namespace calls;
  static const PlantedCall kCalls[] = {
      PLANT(
          kLoadsPaddingOfA, padded(),
          "block 1, .* load of the padding of a after row 1, column 3 of 3, at .*planted_operands"),
      PLANT(kLoadsPaddingOfB, padded(), "load of the padding of b after row 1, column 7 of 6, at"),
      PLANT(kLoadsVectorOverEndOfRow, padded(),
            "load of the padding of b after row 0, column 6 of 6, at"),
      PLANT(kLoadsAfterA, padded(),
            "load of memory outside every operand, 2 elements after the last of a, at"),
      PLANT(kLoadsAAtAlphaZero, padded(0, 1), "load of a\\(0, 0\\), although alpha or K is 0, at"),
      PLANT(kLoadsBAtAlphaZero, padded(0, 1), "load of b\\(0, 0\\), although alpha or K is 0, at"),
      PLANT(kRewritesB, padded(), "store to b\\(0, 0\\), an input, at"),
      PLANT(kStoresVectorOverOthers, padded(1, 0), "second store to c\\(0, [123]\\), at"),
      PLANT(kRewritesA, padded(), "store to a\\(0, 0\\), an input, at"),
      PLANT(kRewritesAByBulkStore, padded(),
            "store to a\\(0, 0\\), an input, at .*planted_operands"),
      PLANT(kLoadsCAtBetaZero, padded(1, 0), "load of c\\(3, 5\\), although beta is 0, at"),
      PLANT(kRewritesPaddingOfC, padded(), "load of the padding of c after row 1, column 6 of 6"),
      PLANT(kStoresPaddingOfC, padded(), "store to the padding of c after row 1, column 6 of 6"),
      PLANT(kStoresTwice, padded(),
            "second store to c\\(3, 5\\), at .*; block 3, thread \\(5,0,0\\) stored it, at"),
      PLANT(kStoresTwiceAtOnce, padded(), "second store to c\\(0, 0\\), at"),
      PLANT(kStoresRowOfNextBlock, padded(),
            "block [01], .* (second store to|race at) c\\(1, \\d\\).*, at .*; block [01], thread"),
      PLANT(kLeavesElement, padded(), "^c\\(3, 5\\) was never stored"),
      PLANT(kStoresBeforeC, padded(),
            "store to memory outside every operand, 2 elements before the first of c, at"),
      PLANT(kLoadsPaddingOfA, batched(),
            "load of the padding of a\\[[01]\\] after row 1, column 3 of 3"),
      PLANT(kLoadsPaddingOfA, shared(), "load of the padding of a after row 1, column 3 of 3"),
      PLANT(kLoadsBetweenMatrices, batched(), "load of what lies between two matrices of a, at"),
      PLANT(kStoresTwice, batched(), "second store to c\\[0\\]\\(3, 5\\), at"),
      PLANT(kLoadsPaddingOfA, interleaved(),
            "load of the padding of a\\[[01]\\] after row [01], column \\d of 3"),
      PLANT(kDoesNotWait, padded(),
            "load of a\\(\\d, 0\\) before wait_for_previous_kernel\\(\\), at .*planted_operands"),
      PLANT(kOneThreadWaits, padded(),
            "load of a\\(\\d, 0\\) before wait_for_previous_kernel\\(\\), at .*planted_operands"),
      PLANT_THREE(kLoadsUnwritten,
                  "load of element 3 of the workspace, which no kernel of the call has stored, at"),
      PLANT_THREE(
          kLoadsOfOtherBlock,
          "race at element \\d+ of the workspace: this thread (loads|stores) it, at .*; block "
          "\\d, .* (stored|loaded) it, at .*; nothing orders the blocks of a launch"),
      PLANT_THREE(
          kStoresForAllBlocks,
          "race at element 0 of the workspace: this thread (stores|loads) it, at .*; block \\d, .* "
          "nothing orders the blocks"),
      PLANT_THREE(kStoresAfterLoads,
                  "race at element 0 of the workspace: this thread (stores|loads) it, at .*; block "
                  "\\d, thread \\(0,0,0\\) (loaded|stored) it, .* nothing orders the blocks"),
      PLANT_THREE(kNoBarrier, "race at element \\d+ of the workspace: .*; no barrier between"),
      PLANT_THREE(kStoresAfterTwoLoads,
                  "race at element \\d+ of the workspace: .*; no barrier between"),
      PLANT_THREE(kOtherStream, "planted: launched on another stream than its call"),
      PLANT_THREE(
          kStoresPastEnd,
          "store to memory outside every operand, 1 elements after the last of the workspace"),
      PLANT_FLAG(kLeavesFlag,
                 "block 1, .* flag in element 9 of the workspace, which no earlier kernel of the "
                 "call has stored, at .*planted_flags"),
      PLANT_FLAG(kNeverRaises,
                 "block 1, .* wait_for_flag at .*planted_flags.*: no earlier block has raised it"),
      PLANT_FLAG(kDoesNotWaitForFlag,
                 "block 1, .* race at element 1 of the workspace: this thread loads it, at .*; "
                 "block 0, .* stored it, at .*; nothing orders the blocks"),
      PLANT_FLAG(kStoresAfterRaise,
                 "block 1, .* race at element 1 of the workspace: this thread loads it, at .*; "
                 "block 0, thread \\(0,0,0\\) stored it, at .*; nothing orders the blocks"),
      PLANT_FLAG(kRaisesForOthers,
                 "block 1, .* race at element 1 of the workspace: this thread loads it, at .*; "
                 "block 0, thread \\(1,0,0\\) stored it, at .*; nothing orders the blocks"),
  };
  return kCalls;
}

}  // namespace tilegate::planted
