// DistributedSgemm with Math::fp32_split and same_bits. op(A) is split in blocks, one for each
// rank's rows of A or C, and each block has its chunks of digits; op(B) is split as one block.
#include <algorithm>
#include <array>
#include <utility>

#include <tilegate/distributed/sgemm.hpp>

#include "18_int8x3/int8x3.hpp"
#include "digits.hpp"
#include "plan.hpp"

namespace tilegate::distributed {

// Members of type size_t are offsets in memory. The decision is at offset 0. What other ranks send
// comes first, so that it has the same offset on every rank.
struct DistributedSgemm::Digits {
  struct Block {
    std::int64_t first_row = 0;
    Problem problem = {};
    std::size_t planes = 0, steps = 0;  // adjacent: one message has both
    std::size_t flags = 0;
    int8x3::GivenPlan multiply = {};
  };
  std::vector<Block> blocks;  // one per rank
  int cluster = 0;            // of WholeRows
  int sets = 1;               // of row statistics: one per rank, or per block, with a part of a row
  std::int64_t rows = 0;      // rows of op(A) and op(B) in a set
  std::int64_t first_b = 0;   // the first row of op(B) in a set
  std::size_t widths = 0, totals = 0, bits = 0, sums = 0, planes_b = 0, steps_b = 0;
  std::array<std::size_t, 2> partials = {};  // of the multiplications on each of two streams
  std::size_t flags = 0, num_flags = 0;
  std::size_t partial_sums = 0, received = 0;  // row-parallel: exact sums
  float summed = 0.0F;
  Device device;
};

bool DistributedSgemm::multiplies_digits() const {
  const auto [m, n, k] = problem_.shape;
  return problem_.same_bits && problem_.math == Math::fp32_split && m > 0 && n > 0 && k > 0 &&
         problem_.alpha != 0.0F;
}

void DistributedSgemm::plan_digits(const Device& device) {
  const int size = transport_->size(), rank = transport_->rank();
  const auto [m, n, k] = problem_.shape;
  const bool by_columns = is_column_parallel();
  // The requirements of Int8x3's wgmma GEMM.
  if (!by_columns) status_ = check_device({.compute_capability = 90, .no_later = true}, device);
  if (!status_.ok()) return;
  if (!by_columns && k >= kMostTerms) {
    status_ = Status::unsupported("same_bits: exact sums of split operands take K below " +
                                  std::to_string(kMostTerms));
    return;
  }
  const Shape shard = problem_.shard(rank);
  auto digits = std::make_shared<Digits>();
  Digits& d = *digits;
  d.device = device;
  d.summed = summed_by_cublas(problem_.shape);
  d.cluster = by_columns ? whole_rows_cluster(k, device) : 0;
  d.sets = by_columns ? std::max(d.cluster, 1) : size;
  d.first_b = by_columns ? rows_of(rank) : m;
  d.rows = d.first_b + shard.n;
  std::size_t end = 0;
  const auto place = [&](std::size_t bytes) { return std::exchange(end, end + aligned(bytes)); };
  place(sizeof(std::int32_t));
  d.widths = place(8 * sizeof(float));
  d.totals = place(static_cast<std::size_t>(size) * sizeof(Totals));
  const auto place_statistics = [&] {
    const auto in_sets = static_cast<std::size_t>(d.sets * d.rows);
    d.bits = place(in_sets * sizeof(RowBits));
    d.sums = place(in_sets * sizeof(std::uint64_t));
  };
  if (!by_columns) {
    place_statistics();
    d.received =
        place(static_cast<std::size_t>((size - 1) * rows_of(rank) * n) * sizeof(std::int64_t));
  }
  std::size_t partial_bytes = 0;
  for (int i = 0; i < size; ++i) {
    const std::int64_t first = first_row(i), rows = rows_of(i);
    const std::int64_t skipped_a =
        by_columns ? 0 : first * (problem_.op_a == Op::kN ? problem_.lda : 1);
    Digits::Block block{.first_row = first,
                        .problem = {.shape = {rows, shard.n, shard.k},
                                    .op_a = problem_.op_a,
                                    .op_b = problem_.op_b,
                                    .lda = problem_.lda,
                                    .ldb = problem_.ldb,
                                    .ldc = problem_.ldc,
                                    .offset_bytes = problem_.offset_bytes,
                                    .alpha = problem_.alpha,
                                    .beta = problem_.beta,
                                    .math = problem_.math}};
    std::array<std::int64_t, 3>& offsets = block.problem.offset_bytes;
    offsets[0] = offset_of(offsets[0] + static_cast<std::int64_t>(sizeof(float)) * skipped_a);
    offsets[2] = offset_of(offsets[2] + static_cast<std::int64_t>(sizeof(float)) * first *
                                            (by_columns ? problem_.ldc : 0));
    block.planes = place(plane_bytes(rows, shard.k));
    block.steps = place(step_bytes(rows));
    message_bytes_.push_back(by_columns
                                 ? block.steps + step_bytes(rows) - block.planes
                                 : static_cast<std::size_t>(rows * n) * sizeof(std::int64_t));
    if (rows > 0 && shard.n > 0 && shard.k > 0) {
      block.multiply = int8x3::plan_given(block.problem, d.summed, device);
      if (status_ = block.multiply.status; !status_.ok()) return;
    }
    partial_bytes = std::max(partial_bytes, block.multiply.partial_bytes);
    d.blocks.push_back(std::move(block));
  }
  d.planes_b = place(plane_bytes(shard.n, shard.k));
  d.steps_b = place(step_bytes(shard.n));
  if (by_columns) {
    place_statistics();
    for (std::size_t& partials : d.partials) partials = place(partial_bytes);
    d.flags = end;
    for (Digits::Block& block : d.blocks) block.flags = place(block.multiply.flag_bytes);
    d.num_flags = (end - d.flags) / sizeof(unsigned);
  } else {
    d.partial_sums = place(static_cast<std::size_t>(m * n) * sizeof(std::int64_t));
  }
  memory_bytes_ = end;

  std::vector<double> multiplications;
  double all = 0.0;
  for (int i = 0; i < size; ++i) {
    const int of = neighbour(by_columns ? i : i + 1);
    multiplications.push_back(d.blocks[static_cast<std::size_t>(of)].multiply.seconds);
    all += multiplications.back();
  }
  if (size == 1) {
    schedule_ = Schedule::kInTurn;
    seconds_ = all;
  } else {
    take_faster(overlapped_seconds(multiplications), in_turn_seconds(all));
  }
  const std::size_t elements =
      static_cast<std::size_t>(d.first_b + shard.n) * static_cast<std::size_t>(shard.k);
  const std::size_t reads = d.cluster > 0 ? 1 : 2;
  seconds_ += stream_seconds(reads * sizeof(float) * elements, 3 * elements);
  const std::size_t others = static_cast<std::size_t>(size - 1);
  const std::size_t row_bytes = static_cast<std::size_t>(d.rows) * sizeof(RowBits);
  seconds_ += by_columns
                  ? exchange_seconds(others * sizeof(Totals))
                  : 2 * exchange_seconds(others * row_bytes) +
                        stream_seconds(static_cast<std::size_t>(size) * message_bytes_of(rank),
                                       bytes_of(rows_of(rank) * n));
  digits_ = std::move(digits);
}

std::vector<std::string> DistributedSgemm::configurations_of_digits() const {
  std::vector<std::string> all;
  for (const Digits::Block& block : digits_->blocks) all.push_back(block.multiply.configuration);
  return all;
}

Status DistributedSgemm::enqueue_digits(const Operands& operands, Stream stream) {
  return is_column_parallel() ? enqueue_gathered_digits(operands, stream)
                              : enqueue_exact_sums(operands, stream);
}

// Decides from `sets` totals: one per rank, or one that is already summed over ranks.
Status DistributedSgemm::decide(int sets, Stream stream) {
  const Digits& d = *digits_;
  std::byte* const workspace = memory_->data();
  const auto* totals = reinterpret_cast<const Totals*>(workspace + d.totals);
  const Access accesses[] = {{totals, static_cast<std::size_t>(sets) * sizeof(Totals)}};
  if (Status s = transport_->begin_step("decide", accesses); !s.ok()) return s;
  return enqueue_decide({.totals = totals,
                         .sets = sets,
                         .rows_a = problem_.shape.m,
                         .rows_b = problem_.shape.n,
                         .summed = d.summed,
                         .widths = reinterpret_cast<float*>(workspace + d.widths),
                         .decision = reinterpret_cast<std::int32_t*>(workspace),
                         .flags = reinterpret_cast<unsigned*>(workspace + d.flags),
                         .num_flags = static_cast<std::int64_t>(d.num_flags)},
                        stream);
}

Status DistributedSgemm::enqueue_gathered_digits(const Operands& operands, Stream stream) {
  const int size = transport_->size(), rank = transport_->rank();
  const Digits& d = *digits_;
  const Digits::Block& own = d.blocks[static_cast<std::size_t>(rank)];
  std::byte* const workspace = memory_->data();
  auto* const bits = reinterpret_cast<RowBits*>(workspace + d.bits);
  auto* const sums = reinterpret_cast<std::uint64_t*>(workspace + d.sums);
  auto* const totals = reinterpret_cast<Totals*>(workspace + d.totals);
  const auto digits_at = [&](int of) { return d.blocks[static_cast<std::size_t>(of)].planes; };
  const auto total_at = [&](int of) {
    return d.totals + static_cast<std::size_t>(of) * sizeof(Totals);
  };
  const Access accesses[] = {{workspace + digits_at(rank), message_bytes_of(rank), true},
                             {totals + rank, sizeof(Totals), true}};
  if (Status s = transport_->begin_step("split own rows", accesses); !s.ok()) return s;
  const auto step_at = [&](std::size_t at) { return reinterpret_cast<float*>(workspace + at); };
  const WholeRows rows{
      .of = {{{operands.a, workspace + own.planes, step_at(own.steps), sums},
              {operands.b, workspace + d.planes_b, step_at(d.steps_b), sums + d.first_b}}},
      .next_set = d.rows,
      .cluster = d.cluster};
  if (d.cluster > 0) {
    if (Status s = enqueue_split_whole_rows(own.problem, rows, stream); !s.ok()) return s;
  } else {
    for (const Operand operand : {Operand::kA, Operand::kB}) {
      const auto [from, planes, steps, of_rows] = rows.of[static_cast<std::size_t>(operand)];
      RowBits* const of_operand = bits + (operand == Operand::kA ? 0 : d.first_b);
      Status s = enqueue_row_bits(own.problem, operand, from, of_operand, stream);
      if (!s.ok()) return s;
      s = enqueue_split(own.problem, operand, from,
                        {.bits = of_operand, .planes = planes, .steps = steps, .sums = of_rows},
                        stream);
      if (!s.ok()) return s;
    }
  }
  Status status = enqueue_weigh({.sums = sums,
                                 .sets = d.sets,
                                 .next_set = d.rows,
                                 .rows_a = d.first_b,
                                 .rows_b = d.rows - d.first_b,
                                 .k = problem_.shape.k,
                                 .totals = totals + rank},
                                stream);
  if (!status.ok()) return status;

  const bool overlaps = schedule_ == Schedule::kOverlapped;
  const int exchanges = size == 1 ? 0 : overlaps ? size - 1 : 1;
  if (size > 1) {
    if (Status s = transport_->fork(stream); !s.ok()) return s;
    status =
        exchange(1, 0,
                 {[&](int distance) -> Outgoing {
                    return {neighbour(-distance), totals + rank, sizeof(Totals), total_at(rank)};
                  },
                  [&](int distance) -> Incoming {
                    const int from = neighbour(distance);
                    return {from, sizeof(Totals), total_at(from)};
                  }});
    if (!status.ok()) return status;
  }
  const Routes routes{[&](int distance) -> Outgoing {
                        return {neighbour(-distance), workspace + digits_at(rank),
                                message_bytes_of(rank), digits_at(rank)};
                      },
                      [&](int distance) -> Incoming {
                        const int from = neighbour(distance);
                        return {from, message_bytes_of(from), digits_at(from)};
                      }};
  for (int i = 1; i <= exchanges; ++i) {
    if (Status s = exchange(1 + i, overlaps ? i : 0, routes); !s.ok()) return s;
  }
  if (size > 1) {
    if (Status s = transport_->wait(1, stream); !s.ok()) return s;
  }
  if (Status s = decide(size, stream); !s.ok()) return s;
  std::array<Stream, 2> streams = {stream, stream};
  if (overlaps) {
    if (Status s = transport_->branch(stream, false, &streams[1]); !s.ok()) return s;
  }
  for (int i = 0; i < size; ++i) {
    const std::size_t turn = static_cast<std::size_t>(i) % 2;
    if (i > 0 && i <= exchanges) {
      if (Status s = transport_->wait(1 + i, streams[turn]); !s.ok()) return s;
    }
    const int of = neighbour(i);
    const Digits::Block& block = d.blocks[static_cast<std::size_t>(of)];
    const Problem& problem = block.problem;
    if (problem.is_empty()) continue;
    float* const c = operands.c + block.first_row * problem.ldc;
    const Access of_step[] = {{workspace + digits_at(of), message_bytes_of(of)},
                              {c, bytes_of(problem.span(Operand::kC)), true}};
    if (Status s = transport_->begin_step("multiply digits", of_step); !s.ok()) return s;
    status = block.multiply.enqueue({.shape = problem.shape,
                                     .alpha = problem.alpha,
                                     .beta = problem.beta,
                                     .c = c,
                                     .ldc = problem.ldc,
                                     .workspace = workspace},
                                    {.planes_a = block.planes,
                                     .steps_a = block.steps,
                                     .planes_b = d.planes_b,
                                     .steps_b = d.steps_b,
                                     .widths = d.widths,
                                     .partials = d.partials[turn],
                                     .flags = block.flags},
                                    streams[turn]);
    if (!status.ok()) return status;
  }
  return overlaps ? transport_->join(streams[1], stream) : Status();
}

Status DistributedSgemm::enqueue_exact_sums(const Operands& operands, Stream stream) {
  const int size = transport_->size(), rank = transport_->rank();
  const auto [m, n, k] = problem_.shape;
  const Digits& d = *digits_;
  std::byte* const workspace = memory_->data();
  auto* const bits = reinterpret_cast<RowBits*>(workspace + d.bits);
  auto* const sums = reinterpret_cast<std::uint64_t*>(workspace + d.sums);
  auto* const totals = reinterpret_cast<Totals*>(workspace + d.totals);
  auto* const partial = reinterpret_cast<std::int64_t*>(workspace + d.partial_sums);
  auto* const received = reinterpret_cast<std::int64_t*>(workspace + d.received);
  auto* const decision = reinterpret_cast<std::int32_t*>(workspace);
  // Calls `visit(problem, operand, elements, first row in a set, planes, steps)` for each block of
  // op(A), and for op(B).
  const auto for_each_operand = [&](const auto& visit) -> Status {
    for (const Digits::Block& block : d.blocks) {
      const std::int64_t skipped = block.first_row * (problem_.op_a == Op::kN ? problem_.lda : 1);
      const float* const a = operands.a == nullptr ? nullptr : operands.a + skipped;
      Status s = visit(block.problem, Operand::kA, a, block.first_row, block.planes, block.steps);
      if (!s.ok()) return s;
    }
    return visit(d.blocks.front().problem, Operand::kB, operands.b, d.first_b, d.planes_b,
                 d.steps_b);
  };
  // Gathers the statistics of all rows from all ranks.
  const auto share = [&](int number, auto* of_rows) -> Status {
    if (size == 1) return {};
    const std::size_t bytes = static_cast<std::size_t>(d.rows) * sizeof(*of_rows);
    const auto offset_of_set = [&](int of) {
      return static_cast<std::size_t>(reinterpret_cast<std::byte*>(of_rows + of * d.rows) -
                                      workspace);
    };
    if (Status s = transport_->fork(stream); !s.ok()) return s;
    Status s = exchange(number, 0,
                        {[&](int distance) -> Outgoing {
                           return {neighbour(-distance), of_rows + rank * d.rows, bytes,
                                   offset_of_set(rank)};
                         },
                         [&](int distance) -> Incoming {
                           const int from = neighbour(distance);
                           return {from, bytes, offset_of_set(from)};
                         }});
    return s.ok() ? transport_->wait(number, stream) : s;
  };
  // The access of a step to `count` sets of statistics.
  const auto set_of = [&](auto* of_rows, int first, int count, bool writes) -> Access {
    return {of_rows + first * d.rows, static_cast<std::size_t>(count * d.rows) * sizeof(*of_rows),
            writes};
  };

  const Access of_bits[] = {set_of(bits, rank, 1, true)};
  Status status = transport_->begin_step("find largest elements", of_bits);
  if (!status.ok()) return status;
  status = for_each_operand([&](const Problem& problem, Operand operand, const float* from,
                                std::int64_t first, std::size_t, std::size_t) {
    return enqueue_row_bits(problem, operand, from, bits + rank * d.rows + first, stream);
  });
  if (status.ok()) status = share(1, bits);
  if (!status.ok()) return status;

  const Access of_split[] = {set_of(bits, 0, size, false), set_of(sums, rank, 1, true)};
  status = transport_->begin_step("split", of_split);
  if (!status.ok()) return status;
  status = for_each_operand([&](const Problem& problem, Operand operand, const float* from,
                                std::int64_t first, std::size_t planes, std::size_t steps) {
    return enqueue_split(problem, operand, from,
                         {.bits = bits + first,
                          .sets = size,
                          .next_set = d.rows,
                          .planes = workspace + planes,
                          .steps = reinterpret_cast<float*>(workspace + steps),
                          .sums = sums + rank * d.rows + first},
                         stream);
  });
  if (status.ok()) status = share(2, sums);
  if (!status.ok()) return status;

  const Access of_sums[] = {set_of(sums, 0, size, false)};
  status = transport_->begin_step("weigh", of_sums);
  if (!status.ok()) return status;
  status = enqueue_weigh({.sums = sums,
                          .sets = size,
                          .next_set = d.rows,
                          .rows_a = m,
                          .rows_b = n,
                          .k = k,
                          .totals = totals},
                         stream);
  if (status.ok()) status = decide(1, stream);
  if (!status.ok()) return status;

  // A rank with no part of K has no sums.
  const auto has_sums = [&](int of) { return problem_.parts[static_cast<std::size_t>(of)] > 0; };
  const bool overlaps = size > 1 && schedule_ == Schedule::kOverlapped;
  SumStreams streams{stream, stream};
  if (overlaps) {
    status = branch_for_sums(false, &streams);
    if (!status.ok()) return status;
  }
  const auto multiply = [&](int to, Stream on) -> Status {
    const Digits::Block& block = d.blocks[static_cast<std::size_t>(to)];
    if (block.problem.is_empty() || !has_sums(rank)) return {};
    std::int64_t* const of_block = partial + block.first_row * n;
    const Access accesses[] = {{of_block, message_bytes_of(to), true}};
    if (Status s = transport_->begin_step("multiply to sums", accesses); !s.ok()) return s;
    return enqueue_multiply_sums({.shape = block.problem.shape,
                                  .planes_a = workspace + block.planes,
                                  .planes_b = workspace + d.planes_b,
                                  .decision = decision,
                                  .sums = of_block},
                                 d.device, on);
  };
  const std::int64_t own_elements = rows_of(rank) * n;
  // The sums of rank `from` in the memory of rank `to`; ranks without sums have none.
  const auto slot = [&](int from, int to) {
    std::size_t before = 0;
    for (int i = 0; i < from; ++i) before += i != to && has_sums(i) ? 1 : 0;
    return d.received + before * message_bytes_of(to);
  };
  const Routes routes{[&](int distance) -> Outgoing {
                        const int to = neighbour(distance);
                        return {to, partial + first_row(to) * n,
                                has_sums(rank) ? message_bytes_of(to) : 0, slot(rank, to)};
                      },
                      [&](int distance) -> Incoming {
                        const int from = neighbour(-distance);
                        return {from, has_sums(from) ? message_bytes_of(rank) : 0,
                                slot(from, rank)};
                      }};
  // Own rows come last, because they need no exchange.
  for (int i = 1; i <= size; ++i) {
    Stream on = i < size ? streams.others : streams.own;
    if (Status s = multiply(neighbour(i), on); !s.ok()) return s;
    if (size == 1 || (overlaps ? i == size : i < size)) continue;
    if (Status s = transport_->fork(on); !s.ok()) return s;
    if (Status s = exchange(overlaps ? 2 + i : 3, overlaps ? i : 0, routes); !s.ok()) return s;
  }
  if (overlaps) {
    if (Status s = join_for_sums(streams, stream); !s.ok()) return s;
  }
  if (size > 1) {
    if (Status s = transport_->wait(overlaps ? size + 1 : 3, stream); !s.ok()) return s;
  }
  int num_others = 0;
  for (int i = 0; i < size; ++i) num_others += i != rank && has_sums(i) ? 1 : 0;
  const Access of_scale[] = {
      {received, static_cast<std::size_t>(num_others * own_elements) * sizeof(std::int64_t)}};
  if (Status s = transport_->begin_step("scale sums", of_scale); !s.ok()) return s;
  return enqueue_scale_sums({.own = has_sums(rank) ? partial + first_row(rank) * n : nullptr,
                             .others = received,
                             .num_others = num_others,
                             .rows = rows_of(rank),
                             .n = n,
                             .steps_a = reinterpret_cast<const float*>(
                                 workspace + d.blocks[static_cast<std::size_t>(rank)].steps),
                             .steps_b = reinterpret_cast<const float*>(workspace + d.steps_b),
                             .decision = decision,
                             .alpha = problem_.alpha,
                             .beta = problem_.beta,
                             .c = operands.c,
                             .ldc = problem_.ldc},
                            stream);
}

Status DistributedSgemm::finish(const Operands& operands, Stream stream) {
  if (!ok() || digits_ == nullptr) return status_;
  if (Status s = transport_->synchronize(stream); !s.ok()) return s;
  std::int32_t decision = 0;
  Status status = device::copy_to_host(&decision, memory_->data(), sizeof(decision));
  if (!status.ok()) {
    transport_->abort("rank " + std::to_string(transport_->rank()) +
                      " failed to read the decision: " + status.message());
    return status;
  }
  if (decision < kWithoutDigits) return {};
  if (in_fp32_->memory_ == nullptr) {
    status = transport_->allocate(in_fp32_->memory_bytes_, &in_fp32_->memory_);
    if (!status.ok()) return status;
  }
  return in_fp32_->launch(operands, stream);
}

}  // namespace tilegate::distributed
