// A test case: one call of a stage, and the verdict on its results.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tilegate/stage.hpp>

#include "verifier/guarded_matrix.hpp"
#include "verifier/oracle.hpp"

namespace tilegate::verifier {

// A problem, as differences from the dense one.
struct Padded {
  Shape shape = {};
  std::array<std::int64_t, 3> pad = {0, 0, 0};  // elements after each row of A, B and C
  std::array<std::int64_t, 3> offset_bytes = {0, 0, 0};
  float alpha = 1.0F;
  float beta = 0.0F;
  Op op_a = Op::kN, op_b = Op::kN;
  std::int64_t batch = 1;
  std::int64_t gap = 0;  // rows between two matrices of a batch; -1: one A and one B for all
  std::array<std::int64_t, 3> shift = {0, 0, 0};  // added to the strides of A, B and C, in elements

  operator Problem() const;
};

// An element set by hand before the launch; negative positions count from the end.
struct Plant {
  Operand operand;
  std::int64_t row, col;
  float value;
};

struct Case {
  Problem problem = {};
  Inputs inputs = Inputs::kUniform;
  std::uint64_t seed = 1;
  bool null_inputs = false;  // A and B are null pointers; for alpha == 0 or K == 0
  std::vector<Plant> plants = {};
  std::string configuration = {};  // one of the stage's; empty: the stage's choice
  int decision = 0;                // that the device must make (see Choice); 0: any
  int multiprocessors = 0;         // planned for; 0: those of the device
  int compute_capability = 0;      // planned for; 0: that of the device
  std::size_t workspace_limit = kNoWorkspaceLimit;  // of the plan, in bytes
};

// The problem's text form, then the fields that are not the default: _s<seed>, _null, plants,
// _at_<configuration>, _sm<multiprocessors>, _cc<capability>, _ws<bytes>, _int, _picksA, _picksB.
// Spelt for names of tests: "_" for a slash or a colon, "m" for a minus sign, "p" for a point.
// Unique for each case.
std::string name_of(const Case& test_case);

// The device that the stage plans for: the current one, with the case's multiprocessors (plans use
// their number to split K and share tiles) and compute capability.
Device device_of(const Case& test_case);

// How `verify` lays out an operand of the problem.
GuardedMatrix::Layout layout_of(const Problem& problem, Operand operand);

// Device memory of the case's operands in `verify`, in bytes.
std::size_t device_bytes(const Case& test_case);

// The order in which the SIMT executor runs blocks and threads; a GPU has its own.
//   kSample  runs a part of the blocks, the first and the last among them. An element of C is then
//            correct or not written; the first and the last are correct; and the number of written
//            elements fits the number of blocks that ran. A plan with a workspace runs all blocks,
//            because its kernels depend on each other's blocks.
//   kEnds    runs two blocks at each end of the grid. The grid is refused if it has too few blocks
//            for one per tile of some 2^31 rows.
enum class Order { kForward, kReverse, kShuffled, kSample, kEnds };
inline constexpr std::array kBothOrders = {Order::kForward, Order::kReverse};

// The checks, in order. The verdict has the first one that fails.
//   status     prepare, plan, launch and device return ok
//   guards     256 bytes on each side of every operand, and of the workspace, are unchanged
//   padding    the elements between the rows are unchanged (the first 64 after each row)
//   inputs     A and B are unchanged, bit for bit
//   decision   the device has made the case's decision
//   finite     C is finite where the reference is
//   class      C is NaN, or the same infinity, where the reference is
//   sample     the number of written elements fits the blocks that ran (Order::kSample)
//   exact      C equals the reference (all inputs but uniform ones)
//   bound      C is within the forward error bound of the plan's rounding chain (uniform inputs),
//              which is at most K + 16
//   repeat     each further run, into a new C, gives the same bits; if the stage is not repeatable,
//              the elements of each run are checked instead
struct Verdict {
  bool ok = true;
  std::string check;  // empty when ok
  // The first line names stage, problem, and the faulty element, position or source line. Then
  // follow check, case, seed and more elements.
  std::string report;
};

// Runs the case once per entry of `orders`, with NaN in the padding of A and B and, if beta == 0,
// in C. Guards are inaccessible where the device can enforce it. The name of the case selects the
// pattern in the workspace before the first run; a later run finds what the run before has left.
// Throws std::bad_alloc if the operands do not fit in device memory.
Verdict verify(const Stage& stage, const Case& test_case,
               std::span<const Order> orders = kBothOrders);

// Sets the order of later runs; `seed`: of the shuffled order.
void set_order(Order order, std::uint64_t seed = 1);

// The launches between these two are a call of a stage, on the stream that `begin_call` returns (on
// a GPU the default stream). The executor refuses launches on another stream. Its instrumented
// build checks every access against the contract of the call; `end_call` returns an error if the
// call has not stored all of C.
Stream begin_call(const Problem& problem, const Operands& operands);
Status end_call();

// Blocks of the latest launch, and how many of them ran: 0 if the launch was refused. Both are 1 on
// a GPU.
struct BlocksRun {
  double all = 1.0, run = 1.0;
};
BlocksRun blocks_run();

}  // namespace tilegate::verifier
