// DistributedSgemm: C ← alpha·op(A)·op(B) + beta·C over the ranks of a transport. Every rank makes
// the plan and launches it on its shards:
//
//   column-parallel   op(A) by rows, op(B) and C by columns: gathers A, then multiplies
//   row-parallel      op(A) by columns, op(B) by rows, C by rows: multiplies, then adds the sums
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/distributed/transport.hpp>
#include <tilegate/problem.hpp>
#include <tilegate/stage.hpp>
#include <tilegate/status.hpp>

namespace tilegate::distributed {

enum class Form : std::uint8_t { kColumnParallel, kRowParallel };

// The order of communication and multiplication.
enum class Schedule : std::uint8_t {
  kFaster,      // the one that the cost model expects to be faster
  kOverlapped,  // one multiplication per rank's rows, while other rows are exchanged
  kInTurn,      // gather, then multiply; or multiply, then reduce-scatter
};

// All ranks pass equal values, except for the storage of their shards, and for the schedule: that
// of the first rank counts.
struct DistributedProblem {
  Form form = Form::kColumnParallel;
  Shape shape = {};  // of the whole product
  // Per rank, any sizes >= 0. Column-parallel: the rank's rows of A. Row-parallel: its rows of C.
  std::vector<std::int64_t> rows = {};
  // Per rank. Column-parallel: its columns of B and C; the sum is N. Row-parallel: its columns of A
  // and rows of B; the sum is K.
  std::vector<std::int64_t> parts = {};
  float alpha = 1.0F, beta = 0.0F;
  // fp32_split: each rank splits the gathered operand; with same_bits the owner of a shard splits
  // it once.
  Math math = Math::fp32;
  // C has the same bits for any number of ranks and any shards. FP32, column-parallel only: takes
  // the fastest kernel that adds products one by one in the order of K. fp32_split, both forms: the
  // ranks exchange digits, or exact sums of their products; see finish().
  bool same_bits = false;
  Schedule schedule = Schedule::kFaster;
  // Storage of this rank's shards, as in Problem.
  Op op_a = Op::kN, op_b = Op::kN;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::array<std::int64_t, 3> offset_bytes = {0, 0, 0};

  // Shards that differ by at most one row or column, without padding.
  static DistributedProblem even(Form form, const Shape& shape, int ranks, int rank);

  // Shape of the product that a rank computes. Column-parallel: all rows of A times its columns of
  // B. Row-parallel: its partial sum of all of C.
  Shape shard(int rank) const;
};

// The fields that ranks compare: all except the schedule and the storage of their shards.
std::string to_string(const DistributedProblem& problem);

// A problem on one rank, ready to be launched as often as wanted. The transport outlives it.
class DistributedSgemm {
 public:
  // Collective: fails on all ranks if one of them passes another problem. Prepares the device,
  // loads the kernels and allocates the memory that launches need. A plan for a device that is not
  // the current one allocates nothing, and cannot be launched.
  DistributedSgemm(Transport& transport, DistributedProblem problem,
                   const Device& device = device::current());

  // Ok if `launch` can run; otherwise names the wrong field of the problem, or the failing rank.
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  const DistributedProblem& problem() const { return problem_; }
  // The chosen schedule: never kFaster.
  Schedule schedule() const { return schedule_; }
  // The cost model's time for this rank.
  double expected_seconds() const { return seconds_; }
  // The configuration of each multiplication, in order.
  std::vector<std::string> configurations() const;
  std::int64_t rounding_chain() const;
  double operand_error() const;
  // Device memory of this rank, which the plan owns.
  std::size_t memory_bytes() const { return memory_bytes_; }

  // Collective. Enqueues communication and kernels on `stream` and on streams of the transport;
  // later work of `stream` waits for all of them. Does not allocate or synchronise. Operands must
  // stay valid until the work is complete; Transport::synchronize waits for it and reports errors.
  // An error ends the transport on all ranks. The operands' workspace is not used.
  Status launch(const Operands& operands, Stream stream = nullptr);

  // Collective, after `launch` of fp32_split with same_bits; otherwise it does nothing. All devices
  // make the same decision whether digits are as accurate as FP32. If not, `launch` has left C
  // unchanged, and this multiplies in FP32, with same_bits where FP32 has them. Waits for the
  // decision, and allocates memory for the first product in FP32.
  Status finish(const Operands& operands, Stream stream = nullptr);

 private:
  // One multiplication of the launch: rows [first_row, first_row + plan's M) of the gathered A, or
  // of the partial sums.
  struct Step {
    Plan plan;
    std::int64_t first_row = 0;
    double seconds = 0.0;
  };

  struct Deferred {};  // allocates nothing
  DistributedSgemm(Deferred deferred, Transport& transport, DistributedProblem problem,
                   const Device& device);

  Status check() const;
  bool plan_with_others(const Device& device);
  Problem stored(Operand operand) const;
  Status agree(bool is_current, std::vector<Card>* cards);
  void plan(const Device& device);
  void plan_products(const Device& device);
  Step step(std::int64_t first_row, std::int64_t rows, bool is_own, const Device& device) const;
  double overlapped_seconds(const std::vector<double>& multiplications) const;
  double in_turn_seconds(double multiplication) const;
  // Sets schedule and expected seconds; returns whether it overlaps.
  bool take_faster(double overlapped, double in_turn);

  Status load_kernels();
  Status enqueue(const Operands& operands, Stream stream);
  Status enqueue_column_parallel(const Operands& operands, Stream stream);
  Status enqueue_row_parallel(const Operands& operands, Stream stream);
  // Row-parallel, overlapped: the streams of the multiplications.
  struct SumStreams {
    Stream own, others;
  };
  Status branch_for_sums(bool others_first, SumStreams* streams);
  Status join_for_sums(const SumStreams& streams, Stream stream);
  // Messages of a rank, by distance in the ring.
  struct Routes {
    std::function<Outgoing(int)> out;
    std::function<Incoming(int)> in;
  };
  // Exchanges with the neighbours at that distance; 0: with all other ranks.
  Status exchange(int number, int distance, const Routes& routes);

  // fp32_split with same_bits (digit_product.cpp).
  struct Digits;
  bool multiplies_digits() const;
  std::vector<std::string> configurations_of_digits() const;
  void plan_digits(const Device& device);
  Status enqueue_digits(const Operands& operands, Stream stream);
  Status enqueue_gathered_digits(const Operands& operands, Stream stream);
  Status enqueue_exact_sums(const Operands& operands, Stream stream);
  Status decide(int sets, Stream stream);

  // False for a single rank, and if A and B are not read.
  bool exchanges() const;
  std::byte* workspace(std::size_t stream) const {
    return memory_->data() + workspaces_at_ + stream * multiply_bytes_;
  }
  // The rank that is `distance` further in the ring.
  int neighbour(int distance) const;
  std::int64_t rows_of(int rank) const { return problem_.rows[static_cast<std::size_t>(rank)]; }
  std::int64_t first_row(int rank) const;
  std::size_t message_bytes_of(int rank) const {
    return message_bytes_[static_cast<std::size_t>(rank)];
  }
  bool is_column_parallel() const { return problem_.form == Form::kColumnParallel; }

  Transport* transport_;
  DistributedProblem problem_;
  Status status_;
  Schedule schedule_ = Schedule::kInTurn;
  std::vector<Step> steps_;  // overlapped: one per rank, in launch order
  bool packs_ = false;       // column-parallel: own rows are packed into the gathered A
  // Per rank: size of its rows of A, or of partial sums, in an exchange.
  std::vector<std::size_t> message_bytes_;
  double seconds_ = 0.0;
  // Offsets in memory. At 0: the gathered A, or the sums that other ranks send.
  std::size_t partial_at_ = 0;  // row-parallel: this rank's partial sums
  // The workspaces of the multiplications, one for each of two streams, if there are several.
  std::size_t workspaces_at_ = 0, multiply_bytes_ = 0;
  std::size_t memory_bytes_ = 0;
  std::unique_ptr<Memory> memory_;
  std::shared_ptr<const Digits> digits_;
  std::unique_ptr<DistributedSgemm> in_fp32_;  // the fallback of digits_
};

}  // namespace tilegate::distributed
