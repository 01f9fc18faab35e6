// One call of a stage as the tests make it, and the verdict on what the stage did.
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

// A problem by what it adds to the dense one.
struct Padded {
  Shape shape = {};
  std::array<std::int64_t, 3> pad = {0, 0, 0};  // elements after each row of A, B and C
  std::array<std::int64_t, 3> offset_bytes = {0, 0, 0};
  float alpha = 1.0F;
  float beta = 0.0F;
  Op op_a = Op::kN, op_b = Op::kN;
  std::int64_t batch = 1;
  std::int64_t gap = 0;  // rows between two matrices of a batch; -1: one A and one B for all
  std::array<std::int64_t, 3> shift = {0, 0, 0};  // elements beyond that, of A, B and C

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
  std::string configuration = {};  // one of the stage's; empty: its own choice
  int decision = 0;                // what the device must decide (see Choice); 0: anything
  int multiprocessors = 0;         // that the plan is for; 0: those of the device
  int compute_capability = 0;      // of a GPU that the stage plans for; 0: as the device is
  std::size_t workspace_limit = kNoWorkspaceLimit;  // of the plan, in bytes
};

// The problem's text form, then _s<seed>, _null, plants, _at_<configuration>, _sm<multiprocessors>,
// _cc<capability>, _ws<bytes>, _int, _picksA, _picksB where they are not the default: as a test's
// name may hold it, "_" for a slash or a colon, "m" for a minus sign, "p" for a point. Different
// for different cases.
std::string name_of(const Case& test_case);

// What the stage plans for: the current device, but for the multiprocessors, by whose number plans
// split K and share tiles, and the compute capability that the case names.
Device device_of(const Case& test_case);

// How `verify` lays out an operand of the problem.
GuardedMatrix::Layout layout_of(const Problem& problem, Operand operand);

// Device memory that `verify` takes for the operands of the case, in bytes.
std::size_t device_bytes(const Case& test_case);

// The order in which the SIMT executor runs blocks and threads; a GPU keeps its own. kSample runs a
// part of the blocks, from end to end: an element of C is then right or as it was, the first and
// the last are right, and as many are as the blocks that ran have. A plan with a workspace runs
// whole: its kernels need each other's blocks. kEnds runs two blocks at each
// end of a grid, which is refused where it does not have a block for every tile of some 2^31 rows.
enum class Order { kForward, kReverse, kShuffled, kSample, kEnds };
inline constexpr std::array kBothOrders = {Order::kForward, Order::kReverse};

// The checks, in the order in which they are made; the first that fails is the verdict's.
//   status     prepare, plan, launch and device say ok
//   guards     256 bytes on each side of every operand, and of the workspace, are as they were
//   padding    so are the elements between the rows (the first 64 after each row)
//   inputs     so are A and B, bit for bit
//   decision   the device has decided as the case says
//   finite     C is finite where the reference is
//   class      C is NaN, or the same infinity, where the reference is
//   sample     as many elements are written as the blocks that ran have (Order::kSample)
//   exact      C equals the reference (all inputs but uniform ones)
//   bound      C is within the forward error bound of the plan's rounding chain (uniform inputs),
//              which is at most K + 16
//   repeat     each further run, into a fresh C, gives the same bits; that of a stage that is not
//              repeatable is judged as the first one is
struct Verdict {
  bool ok = true;
  std::string check;  // empty when ok
  // First what is wrong, in one line: stage, problem, and the element, place or source line at
  // fault. Then check, case, seed and more elements.
  std::string report;
};

// Runs the case once per entry of `orders`, with NaN in the padding of A and B and, if beta == 0,
// in C; guards are unreadable where the device can enforce it. The workspace holds one of several
// patterns before the first run, by the name of the case, and before each other what the run before
// left. Throws std::bad_alloc if the operands do not fit in device memory.
Verdict verify(const Stage& stage, const Case& test_case,
               std::span<const Order> orders = kBothOrders);

// For the runs that follow; `seed` is of the shuffled order.
void set_order(Order order, std::uint64_t seed = 1);

// What is launched between these two is a call of a stage on the stream that `begin_call` gives.
// The executor refuses launches on another stream, and its counted build holds every access to the
// contract of the call; `end_call` says what the call left undone. On a GPU: the default stream.
Stream begin_call(const Problem& problem, const Operands& operands);
Status end_call();

// Blocks of the latest launch, and how many of them ran; both 1 on a GPU, where all do. None ran of
// a grid that was refused.
struct BlocksRun {
  double all = 1.0, run = 1.0;
};
BlocksRun blocks_run();

}  // namespace tilegate::verifier
