// A Stage is a GEMM implementation. It makes a Plan for a problem, which is launched on operands:
//
//   const Plan plan = tilegate::naive::stage.plan(Problem::dense({m, n, k}));
//   Status status = plan.launch({.a = a, .b = b, .c = c}, stream);
//
// The header needs no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/parameter.hpp>
#include <tilegate/problem.hpp>
#include <tilegate/status.hpp>

namespace tilegate {

// Device memory of one call. Pointers have the alignment that the problem's offsets promise.
struct Operands {
  const float* a = nullptr;         // not read when alpha == 0 or K == 0
  const float* b = nullptr;         // not read when alpha == 0 or K == 0
  float* c = nullptr;               // not read when beta == 0; overlaps neither A nor B
  void* workspace = nullptr;        // 16-byte aligned, contents free to change
  std::size_t workspace_bytes = 0;  // at least Plan::workspace_bytes()
};

// Kernel parameter: problem and operands. Stage::plan normalises the problem: alpha == 0 implies
// K == 0 and the reverse, and the leading dimension of a single row is its width.
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

// Requirements of a stage on the device.
struct Requirements {
  int compute_capability = 70;        // minimum CUDA compute capability, 10·major + minor
  bool no_later = false;              // no other compute capability has its instructions
  std::string_view not_on_simt = {};  // why the CPU device cannot run it; empty: it can
};

// Restrictions of a stage's kernels on the problem. Plans for other problems are kUnsupported and
// name the restriction; tests of such problems are skipped, with that reason.
struct Restrictions {
  Shape multiple_of = {1, 1, 1};        // of M, N and K
  std::int64_t most_m = 0, most_n = 0;  // limits of grids; 0: none
  bool nonzero_k = false;               // neither K nor alpha is 0
  bool dense = false;                   // leading dimensions are the widths of rows
  std::int64_t alignment = 4;           // bytes, of A, B and C
  bool int_indices = false;             // no operand has more than 2^31 - 1 elements
  // Why the same call may give different bits; empty: it gives the same bits.
  std::string_view not_repeatable = {};

  // Ok, or the first restriction that the problem violates.
  Status check(const Problem& problem) const;
};

// A stage's choice for one problem on one device.
struct Choice {
  Status status = {};              // why the stage does not support it
  std::string configuration = {};  // "128x64"; empty where there is only one
  // Length L of the longest chain of roundings of an element of C. Its error is at most
  // γ(L)·(|alpha|·|A||B| + |beta|·|C|), γ(L) = L·u / (1 - L·u), u = 2^-24 (N. J. Higham, Accuracy
  // and Stability of Numerical Algorithms, 2nd edition, SIAM 2002, chapter 3).
  std::int64_t rounding_chain = 0;
  // Rounding of operands, relative to the largest element of a row of op(A) or a column of op(B):
  // it adds operand_error·|alpha|·K·max|A(i, :)|·max|B(:, j)| to the bound of element (i, j).
  double operand_error = 0.0;
  std::size_t workspace_bytes = 0;
  // The device decides how to multiply, and stores the decision in the first word of the workspace,
  // an int32: the number of products of planes (3, 6, 8, 10), 32 for FP32, or 64 for FP64. It
  // decides for each panel by itself; the last one's decision stays. Bf16x6 decides for each tile
  // of C, and has a word for each.
  bool decides_on_device = false;
  // Fewer blocks run at a time than fit on the device. If they start while another plan's kernel
  // still runs, some multiprocessors may get several of them, and others none. So Plan::launch lets
  // them start early only behind a launch of the same plan.
  bool may_crowd = false;
  // Enqueues the kernels; does not allocate device memory or synchronise. M, N, batch > 0.
  std::function<Status(const KernelArgs& args, Stream stream)> enqueue = {};
  // The kernels of the plan with their discrete parameters, for tests. Empty: one kernel, which
  // depends on the stage's tile sizes alone.
  std::function<std::vector<PlannedKernel>()> kernels = {};
};

// Breakdown of a cost model's expected time. 0: not modelled.
struct Parts {
  double waves = 0.0;     // blocks divided by resident blocks of the device
  double tiles = 0.0;     // share of the tiles' elements inside C
  double multiply = 0.0;  // seconds of the waves
  double move = 0.0;      // seconds of memory traffic, which overlaps multiply
  double add = 0.0;       // seconds of the kernel that reduces partial sums
  double pack = 0.0;      // seconds of the kernel that packs operands
};

// A configuration of a stage, with its expected time.
struct Candidate {
  Choice choice;
  double seconds = 0.0;
  Parts parts = {};
  bool is_tuned = false;  // measured to be the fastest for the problem class: precedes all others
  // Of stages that split operands: the expected time with data for which the device decides against
  // it. 0: unknown, and Sgemm does not compare it.
  double fallback_seconds = 0.0;
};

// A problem planned for one device. Can be launched any number of times, from any thread.
class Plan {
 public:
  // Ok if `launch` can run; otherwise the wrong field of the problem, or what is unsupported.
  const Status& status() const { return choice_.status; }
  bool ok() const { return status().ok(); }

  const Problem& problem() const { return problem_; }
  const std::string& configuration() const { return choice_.configuration; }
  std::int64_t rounding_chain() const { return choice_.rounding_chain; }
  double operand_error() const { return choice_.operand_error; }
  // After a launch, the first word of its workspace is the device's decision; see Choice.
  bool decides_on_device() const { return choice_.decides_on_device; }
  std::size_t workspace_bytes() const { return choice_.workspace_bytes; }
  const Choice& choice() const { return choice_; }

  // Checks the operands (null or misaligned pointers, extents beyond the address space, C
  // overlapping A or B, too small a workspace, or one that overlaps A, B or C) and enqueues the
  // work on `stream` of the plan's device, which must be current. Does not print, exit, allocate
  // device memory or synchronise. M == 0, N == 0 or an empty batch does nothing.
  Status launch(const Operands& operands, Stream stream = nullptr) const;

 private:
  friend struct Stage;
  friend class PreparedOperand;
  Status check(const Operands& operands) const;

  Problem problem_;
  int device_ordinal_ = -1;
  std::string stage_;  // name, for messages
  Choice choice_;
  std::size_t key_ = 0;  // the same for plans of the same problem and configuration
};

inline constexpr std::size_t kNoWorkspaceLimit = std::numeric_limits<std::size_t>::max();

// Descriptor of a rung of the ladder, defined in the rung's file.
struct Stage {
  std::string_view name;       // "Warptile", in tests, benchmarks and baselines
  std::string_view idea = {};  // one line: what this rung adds
  Requirements requirements = {};
  Restrictions restrictions = {};
  Math math = Math::fp32;  // fp32_split: it splits operands, regardless of the problem's math

  bool takes_transposed = false;  // any op(A) and op(B)
  bool takes_batches = false;

  // Extents of the rung's tiles at every level, in elements: tests derive edge cases from them.
  std::span<const std::int64_t> tile_sizes = {};

  // A rung defines one of these. Both get a valid, normalised problem that is not empty.
  Choice (*choose)(const Problem& problem, const Device& device) = nullptr;
  // Every configuration that supports the problem; the plan takes the fastest.
  std::vector<Candidate> (*candidates)(const Problem& problem, const Device& device) = nullptr;
  // Configurations that compute the product in panels, which share a workspace of at most
  // `workspace_limit` bytes; nullptr: none. The plan takes them where the fastest candidate needs
  // more, or by name.
  std::vector<Candidate> (*panels)(const Problem& problem, const Device& device,
                                   std::size_t workspace_limit) = nullptr;

  // One-time setup on the current device: attributes, handles; nullptr: none.
  Status (*setup)() = nullptr;

  // Ok if the stage supports the problem's transposed operands, batch and restrictions.
  Status takes(const Problem& problem) const;

  // A plan that is not ok says why: negative sizes, short leading dimensions, extents beyond the
  // address space, misaligned offsets, problems that the stage does not support, a device below
  // `requirements`. `configuration`: one of the candidates instead of the fastest, to compare or
  // tune. `workspace_limit`: most bytes of workspace. Where the fastest candidate needs more, the
  // plan takes the fastest that does not, in panels or whole; Sgemm has one for every limit.
  Plan plan(const Problem& problem, const Device& device = device::current(),
            std::string_view configuration = {},
            std::size_t workspace_limit = kNoWorkspaceLimit) const;

  // Call once per device before the first launch; may be called again.
  Status prepare() const;
};

// Ok if `data` can be the problem's operand: not null, aligned as the offset promises, and within
// the address space.
Status check_pointer(const Problem& problem, Operand operand, const float* data);

// Ok if the device meets the stage's requirements.
Status check_device(const Requirements& requirements, const Device& device);

}  // namespace tilegate
