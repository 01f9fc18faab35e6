// A Stage is one way to multiply; it makes a Plan of a problem, and a plan is launched on operands:
//
//   const Plan plan = tilegate::naive::stage.plan(Problem::dense({m, n, k}));
//   Status status = plan.launch({.a = a, .b = b, .c = c}, stream);
//
// The header needs no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/problem.hpp>
#include <tilegate/status.hpp>

namespace tilegate {

// The device memory of one call; pointers are at least as aligned as the problem's offsets promise.
struct Operands {
  const float* a = nullptr;         // not read when alpha == 0 or K == 0
  const float* b = nullptr;         // not read when alpha == 0 or K == 0
  float* c = nullptr;               // not read when beta == 0; overlaps neither A nor B
  void* workspace = nullptr;        // 16-byte aligned, contents free to change
  std::size_t workspace_bytes = 0;  // at least Plan::workspace_bytes()
};

// Problem and operands as kernels take them, by value. Stage::plan has normalised the problem:
// alpha == 0 and K == 0 arrive together, and the stride of a single row is its width.
struct KernelArgs {
  Shape shape;
  float alpha = 1.0F;
  const float* a = nullptr;  // (m, k), or (k, m) if op_a is kT
  std::int64_t lda = 0;
  const float* b = nullptr;  // (k, n), or (n, k) if op_b is kT
  std::int64_t ldb = 0;
  float beta = 0.0F;
  float* c = nullptr;  // (m, n)
  std::int64_t ldc = 0;
  void* workspace = nullptr;
  std::int64_t batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
};

// What a stage needs from the device that runs it.
struct Requirements {
  int compute_capability = 70;        // least CUDA compute capability, 10·major + minor
  bool no_later = false;              // its instructions are of that compute capability alone
  std::string_view not_on_simt = {};  // why the CPU device cannot run it; empty: it can
};

// What a stage's kernels need of a problem, where they do not take every one: a plan of any other
// is refused and says which of these it breaks. Tests of such problems are skipped, with that
// reason.
struct Restrictions {
  Shape multiple_of = {1, 1, 1};        // of M, N and K
  std::int64_t most_m = 0, most_n = 0;  // as their grids have limits; 0: none
  bool nonzero_k = false;               // neither K nor alpha is 0
  bool dense = false;                   // lda, ldb and ldc are the widths of the rows
  std::int64_t alignment = 4;           // bytes, of A, B and C
  bool int_indices = false;             // no operand has more than 2^31 - 1 elements
  // Why the same call may give other bits; empty: it gives the same.
  std::string_view not_repeatable = {};

  // Ok, or the first that the problem breaks.
  Status check(const Problem& problem) const;
};

// What a stage decides for one problem on one device.
struct Choice {
  Status status = {};              // why the stage cannot do it
  std::string configuration = {};  // of the kernels, as "128x64"; empty where there is only one
  // Length of the longest chain of roundings that an element of C goes through. An element may be
  // off by γ(L)·(|alpha|·|A||B| + |beta|·|C|), γ(L) = L·u / (1 - L·u), u = 2^-24.
  std::int64_t rounding_chain = 0;
  // Where operands are rounded, too, relative to the largest element of a row of op(A) or a column
  // of op(B): element (i, j) may be off by operand_error·|alpha|·K·max|A(i, :)|·max|B(:, j)| more.
  double operand_error = 0.0;
  std::size_t workspace_bytes = 0;
  // The device decides how it multiplies, and says so in the first word of the workspace, an int32:
  // the products of parts that it takes per product (3, 6, 8), or 32: plain FP32.
  bool decides_on_device = false;
  // Enqueues the kernels; neither allocates device memory nor synchronises. M, N, batch > 0.
  std::function<Status(const KernelArgs& args, Stream stream)> enqueue = {};
};

// Where a cost model sees the time go. What it does not tell apart is 0.
struct Parts {
  double rounds = 0.0;    // blocks per place that the device has for them at a time
  double tiles = 0.0;     // the share of the tiles' elements that are of C
  double multiply = 0.0;  // seconds: of the rounds
  double move = 0.0;      // seconds: of each operand through memory, while others multiply
  double add = 0.0;       // seconds: of the kernel that adds partial sums
  double pack = 0.0;      // seconds: of the kernel that packs operands
};

// One of several ways of a stage, with the time that its cost model expects.
struct Candidate {
  Choice choice;  // its configuration tells it from the others
  double seconds = 0.0;
  Parts parts = {};
  bool is_tuned = false;  // measured to be the quickest of such problems: goes before all others
};

// A problem, ready to run on one device as often as wanted, from any thread.
class Plan {
 public:
  // Ok if `launch` can run; otherwise which field of the problem is at fault, or what is missing.
  const Status& status() const { return choice_.status; }
  bool ok() const { return status().ok(); }

  const Problem& problem() const { return problem_; }
  const std::string& configuration() const { return choice_.configuration; }
  std::int64_t rounding_chain() const { return choice_.rounding_chain; }
  double operand_error() const { return choice_.operand_error; }
  // After a launch, the first word of its workspace is what the device decided; see Choice.
  bool decides_on_device() const { return choice_.decides_on_device; }
  std::size_t workspace_bytes() const { return choice_.workspace_bytes; }

  // Checks the operands (null or misaligned pointers, extents past the address space, C overlapping
  // A or B, too little workspace) and enqueues the work on `stream` of the plan's device, which
  // must be current. Never prints, exits, allocates device memory or synchronises. M == 0, N == 0
  // or an empty batch does nothing.
  Status launch(const Operands& operands, Stream stream = nullptr) const;

 private:
  friend struct Stage;
  Status check(const Operands& operands) const;

  Problem problem_;
  int device_ordinal_ = -1;
  std::string stage_;  // its name, for messages
  Choice choice_;
};

// One rung of the ladder: a descriptor that the rung's own file defines.
struct Stage {
  std::string_view name;       // "Warptile": how tests, benchmarks and baselines call the rung
  std::string_view idea = {};  // one line: what this rung adds
  Requirements requirements = {};
  Restrictions restrictions = {};
  Math math = Math::fp32;  // fp32_split: it splits operands, whatever the problem says

  bool takes_transposed = false;  // op(A) and op(B) in all four forms
  bool takes_batches = false;

  // Extents of the rung's tiles at every level, in elements: where its edge cases are.
  std::span<const std::int64_t> tile_sizes = {};

  // The rung's half of `plan`, one of the two; both get a valid, normalised problem that is not
  // empty.
  Choice (*choose)(const Problem& problem, const Device& device) = nullptr;
  // Every configuration that can do the problem; the plan takes the quickest.
  std::vector<Candidate> (*candidates)(const Problem& problem, const Device& device) = nullptr;

  // One-time work on the current device: attributes, handles; nullptr: none.
  Status (*setup)() = nullptr;

  // Ok if the stage takes such problems: transposed operands, batches, its restrictions.
  Status takes(const Problem& problem) const;

  // A plan that is not ok says why: negative sizes, short leading dimensions, extents past the
  // address space, misaligned offsets, what this stage does not do, a device below `requirements`.
  // `configuration`: one of the candidates instead of the quickest, to compare or to tune.
  Plan plan(const Problem& problem, const Device& device = device::current(),
            std::string_view configuration = {}) const;

  // Once per device before the first launch; may be called again.
  Status prepare() const;
};

// Ok if the device meets the stage's requirements.
Status check_device(const Requirements& requirements, const Device& device);

}  // namespace tilegate
