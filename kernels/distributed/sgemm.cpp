// The plan of a rank, its cost model, and the launch.
#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include <tilegate/device/launch_config.hpp>
#include <tilegate/distributed/sgemm.hpp>
#include <tilegate/sgemm.hpp>

#include "digits.hpp"
#include "kernels.hpp"
#include "plan.hpp"

namespace tilegate::distributed {
namespace {

// Whether the kernel adds the products of an element one by one, in the order of K. Then tile
// sizes, shape and position of the element do not change its bits. Other configurations have a
// suffix for slices or parts.
bool adds_in_order(std::string_view configuration) {
  const std::size_t colon = configuration.find(':');
  const std::string_view stage = configuration.substr(0, colon);
  return (stage == "Tiles" || stage == "Interleaved" || stage == "AsyncCopy") &&
         configuration.find_first_not_of("0123456789x", colon + 1) == std::string_view::npos;
}

struct TimedPlan {
  Plan plan;
  double seconds = 0.0;
};

TimedPlan plan_sgemm(const Problem& problem, const Device& device, bool in_order) {
  TimedPlan timed{.plan = sgemm::stage.plan(problem, device)};
  if (!timed.plan.ok() || problem.is_empty()) return timed;
  std::vector<Candidate> candidates = sgemm::stage.candidates(timed.plan.problem(), device);
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const std::string& name = candidate.choice.configuration;
    return in_order ? !adds_in_order(name) : name != timed.plan.configuration();
  });
  // Without candidates, a plan with this name fails with a message that there is none.
  std::string configuration = "one that adds in the order of K";
  if (!candidates.empty()) {
    const Candidate& fastest = *std::ranges::min_element(candidates, {}, &Candidate::seconds);
    configuration = fastest.choice.configuration;
    timed.seconds = fastest.seconds;
  }
  timed.plan = sgemm::stage.plan(problem, device, configuration);
  return timed;
}

std::string joined(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : "+") + std::to_string(size);
  return text;
}

Status check_sizes(const char* name, const std::vector<std::int64_t>& sizes, int ranks,
                   std::int64_t extent) {
  const auto fail = [&](const std::string& what) {
    return Status::invalid_argument(name, std::string(name) + " = " + joined(sizes) + " " + what);
  };
  if (sizes.size() != static_cast<std::size_t>(ranks)) {
    return fail("has no size for each of " + std::to_string(ranks) + " ranks");
  }
  std::int64_t rest = extent;
  for (const std::int64_t size : sizes) {
    if (size < 0) return fail("has a negative size");
    if (size > rest) return fail("exceeds " + std::to_string(extent));
    rest -= size;
  }
  return rest == 0 ? Status() : fail("does not add up to " + std::to_string(extent));
}

// The memory from the first to the last element of an operand of the plan.
Access access(const Plan& plan, Operand operand, const float* data) {
  const Problem& problem = plan.problem();
  const bool is_read = operand == Operand::kC || problem.reads_a_and_b();
  return {.data = data,
          .bytes = problem.is_empty() || !is_read ? 0 : bytes_of(problem.span(operand)),
          .writes = operand == Operand::kC};
}

// Addresses that are far apart; kernels that are only loaded do not access them.
constexpr std::int64_t kUnusedAddress = std::int64_t{1} << 44;

struct UnusedMemory : Memory {
  std::byte* data() const override { return reinterpret_cast<std::byte*>(4 * kUnusedAddress); }
};

// Exchanges nothing.
class NoTransport : public Transport {
 public:
  NoTransport(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status agree(const Card& /*mine*/, std::vector<Card>& /*all*/) override { return {}; }
  Status allocate(std::size_t /*bytes*/, std::unique_ptr<Memory>* /*memory*/) override {
    return {};
  }
  Status fork(Stream /*stream*/) override { return {}; }
  Status exchange(int /*number*/, const Memory& /*memory*/, std::span<const Outgoing> /*out*/,
                  std::span<const Incoming> /*in*/) override {
    return {};
  }
  Status wait(int /*number*/, Stream /*stream*/) override { return {}; }
  Status poll() override { return {}; }
  Status synchronize(Stream /*stream*/) override { return {}; }
  void abort(std::string_view /*reason*/) override {}

 private:
  int rank_, size_;
};

}  // namespace

Card Card::of(std::string_view text) {
  Card card{.hash = 0xCBF29CE484222325U};  // FNV-1a: the same in every build
  for (const char c : text) {
    card.hash = (card.hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  text.copy(card.text.data(), card.text.size() - 1);
  return card;
}

DistributedProblem DistributedProblem::even(Form form, const Shape& shape, int ranks, int rank) {
  DistributedProblem problem{.form = form, .shape = shape};
  const std::int64_t parted = form == Form::kColumnParallel ? shape.n : shape.k;
  for (std::int64_t i = 0; i < ranks; ++i) {
    problem.rows.push_back(shape.m * (i + 1) / ranks - shape.m * i / ranks);
    problem.parts.push_back(parted * (i + 1) / ranks - parted * i / ranks);
  }
  const Problem dense = Problem::dense(problem.shard(rank));
  problem.lda = dense.lda;
  problem.ldb = dense.ldb;
  problem.ldc = dense.ldc;
  return problem;
}

Shape DistributedProblem::shard(int rank) const {
  const std::int64_t part = parts[static_cast<std::size_t>(rank)];
  return form == Form::kColumnParallel ? Shape{shape.m, part, shape.k}
                                       : Shape{shape.m, shape.n, part};
}

std::string to_string(const DistributedProblem& problem) {
  const auto [m, n, k] = problem.shape;
  std::string text = problem.form == Form::kColumnParallel ? "column-parallel " : "row-parallel ";
  text += to_string(Problem{.shape = problem.shape,
                            .lda = k,
                            .ldb = n,
                            .ldc = n,
                            .alpha = problem.alpha,
                            .beta = problem.beta,
                            .math = problem.math});
  text += ", rows " + joined(problem.rows);
  text += (problem.form == Form::kColumnParallel ? ", columns " : ", K ") + joined(problem.parts);
  if (problem.same_bits) text += ", same bits";
  return text;
}

DistributedSgemm::DistributedSgemm(Transport& transport, DistributedProblem problem,
                                   const Device& device)
    : DistributedSgemm(Deferred(), transport, std::move(problem), device) {
  if (!status_.ok() || device.ordinal != device::current().ordinal) return;
  status_ = transport_->allocate(memory_bytes_, &memory_);
}

DistributedSgemm::DistributedSgemm(Deferred /*deferred*/, Transport& transport,
                                   DistributedProblem problem, const Device& device)
    : transport_(&transport), problem_(std::move(problem)) {
  status_ = check();
  if (!plan_with_others(device)) plan_with_others(device);
  if (!status_.ok() || digits_ == nullptr) return;  // the same on all ranks
  DistributedProblem in_fp32 = problem_;
  in_fp32.math = Math::fp32;
  // Not every problem has such a kernel.
  for (const bool same_bits : {true, false}) {
    in_fp32.same_bits = same_bits;
    in_fp32_.reset(new DistributedSgemm(Deferred(), *transport_, in_fp32, device));
    if (in_fp32_->ok()) break;
  }
  status_ = in_fp32_->status();
}

// Plans, and compares with the other ranks. False if the ranks have planned different schedules:
// then all take that of the first rank from now on.
bool DistributedSgemm::plan_with_others(const Device& device) {
  if (status_.ok()) plan(device);
  // A plan for another device than the current one can only be inspected.
  const bool is_current = device.ordinal == device::current().ordinal;
  if (status_.ok() && is_current) status_ = sgemm::stage.prepare();
  if (status_.ok() && is_current && digits_ != nullptr) status_ = prepare_digits(device);
  if (status_.ok() && is_current) status_ = load_kernels();
  std::vector<Card> cards;
  if (Status agreed = agree(is_current, &cards); status_.ok()) status_ = std::move(agreed);
  const auto is_first = [&](const Card& card) { return card.choice == cards.front().choice; };
  if (!status_.ok() || std::ranges::all_of(cards, is_first)) return true;
  problem_.schedule = static_cast<Schedule>(cards.front().choice);
  return false;
}

int DistributedSgemm::neighbour(int distance) const {
  const int size = transport_->size();
  return ((transport_->rank() + distance) % size + size) % size;
}

bool DistributedSgemm::exchanges() const {
  return transport_->size() > 1 && problem_.alpha != 0.0F && problem_.shape.k != 0;
}

std::int64_t DistributedSgemm::first_row(int rank) const {
  return std::accumulate(problem_.rows.begin(), problem_.rows.begin() + rank, std::int64_t{0});
}

Status DistributedSgemm::check() const {
  const int size = transport_->size();
  const auto [m, n, k] = problem_.shape;
  const bool by_columns = is_column_parallel();
  if (Status s = check_sizes("rows", problem_.rows, size, m); !s.ok()) return s;
  if (Status s = check_sizes("parts", problem_.parts, size, by_columns ? n : k); !s.ok()) return s;
  if (problem_.same_bits && !by_columns && problem_.math == Math::fp32) {
    return Status::unsupported(
        "same_bits: a row-parallel product in FP32 adds one sum per rank, so its bits depend on "
        "the number of ranks; make it column-parallel, or take Math::fp32_split");
  }
  // Leading dimensions, offsets, extents past the address space.
  if (Status s = stored(Operand::kA).check(); !s.ok()) return s;
  return stored(Operand::kC).check();
}

// A problem with this rank's shard of an operand. A and C may differ in their rows.
Problem DistributedSgemm::stored(Operand operand) const {
  const Shape shard = problem_.shard(transport_->rank());
  const bool is_c = operand == Operand::kC;
  const bool has_all_rows = is_c == is_column_parallel();
  return {.shape = {has_all_rows ? shard.m : rows_of(transport_->rank()), shard.n, shard.k},
          .op_a = is_c ? Op::kN : problem_.op_a,
          .op_b = problem_.op_b,
          .lda = is_c ? shard.k : problem_.lda,
          .ldb = problem_.ldb,
          .ldc = problem_.ldc,
          .offset_bytes = problem_.offset_bytes};
}

// Fails on every rank if one rank has failed or passes another problem.
Status DistributedSgemm::agree(bool is_current, std::vector<Card>* cards) {
  const std::string mine =
      to_string(problem_) + (is_current ? "" : ", for a device that is not current");
  Card card = Card::of(status_.ok() ? mine : "fails: " + status_.message());
  card.choice = static_cast<char>(schedule_);
  if (Status s = transport_->agree(card, *cards); !s.ok()) return s;
  std::string others;
  for (int rank = 0; rank < transport_->size(); ++rank) {
    const Card& other = (*cards)[static_cast<std::size_t>(rank)];
    if (other.hash == card.hash) continue;
    others += "rank " + std::to_string(rank) + " plans " + other.text.data() + "; ";
  }
  if (others.empty()) return {};
  return Status::invalid_argument(
      "problem", others + "rank " + std::to_string(transport_->rank()) + " plans " + mine);
}

// `is_own`: whether these are this rank's rows of C.
DistributedSgemm::Step DistributedSgemm::step(std::int64_t first_row, std::int64_t rows,
                                              bool is_own, const Device& device) const {
  const Shape shard = problem_.shard(transport_->rank());
  Problem p{.shape = {rows, shard.n, shard.k},
            .op_b = problem_.op_b,
            .lda = shard.k,
            .ldb = problem_.ldb,
            .offset_bytes = problem_.offset_bytes,
            .alpha = problem_.alpha,
            .math = problem_.math};
  const auto float_bytes = static_cast<std::int64_t>(sizeof(float));
  // A is the caller's, or the gathered one, or not read.
  const bool is_callers = !is_column_parallel() || (is_own && !packs_);
  if (transport_->size() == 1 || (exchanges() && is_callers)) {
    const bool by_rows = problem_.op_a == Op::kN;
    const std::int64_t skipped =
        is_column_parallel() ? 0 : first_row * (by_rows ? problem_.lda : 1);
    p.op_a = problem_.op_a;
    p.lda = problem_.lda;
    p.offset_bytes[0] = offset_of(problem_.offset_bytes[0] + skipped * float_bytes);
  } else {
    p.offset_bytes[0] = offset_of(first_row * shard.k * float_bytes);
  }
  // C is the caller's, or the partial sums.
  if (is_column_parallel() || !exchanges()) {
    const std::int64_t skipped = is_column_parallel() ? first_row * problem_.ldc : 0;
    p.ldc = problem_.ldc;
    p.beta = problem_.beta;
    p.offset_bytes[2] = offset_of(problem_.offset_bytes[2] + skipped * float_bytes);
  } else {
    p.ldc = shard.n;
    p.alpha = 1.0F;
    p.offset_bytes[2] = offset_of(first_row * shard.n * float_bytes);
  }
  auto [plan, seconds] = plan_sgemm(p, device, problem_.same_bits);
  return {std::move(plan), first_row, seconds};
}

double DistributedSgemm::overlapped_seconds(const std::vector<double>& multiplications) const {
  double multiplied = 0.0, exchanged = 0.0;
  for (int i = 0; i < transport_->size(); ++i) {
    const double seconds = multiplications[static_cast<std::size_t>(i)];
    const bool is_last = i + 1 == transport_->size();
    if (is_column_parallel()) {
      if (i > 0) exchanged += exchange_seconds(message_bytes_of(neighbour(i)));
      multiplied = std::max(multiplied, exchanged) + seconds;
    } else {
      multiplied += seconds;
      if (is_last) return std::max(multiplied, exchanged);
      exchanged =
          std::max(exchanged, multiplied) + exchange_seconds(message_bytes_of(neighbour(i + 1)));
    }
  }
  return multiplied;
}

double DistributedSgemm::in_turn_seconds(double multiplication) const {
  std::size_t bytes = 0;
  for (int i = 1; i < transport_->size(); ++i) bytes += message_bytes_of(neighbour(i));
  return multiplication + exchange_seconds(bytes);
}

bool DistributedSgemm::take_faster(double overlapped, double in_turn) {
  const bool overlaps = problem_.schedule == Schedule::kOverlapped ||
                        (problem_.schedule == Schedule::kFaster && overlapped < in_turn);
  schedule_ = overlaps ? Schedule::kOverlapped : Schedule::kInTurn;
  seconds_ = overlaps ? overlapped : in_turn;
  return overlaps;
}

void DistributedSgemm::plan(const Device& device) {
  steps_.clear();
  message_bytes_.clear();
  multiply_bytes_ = memory_bytes_ = 0;
  packs_ = false;
  multiplies_digits() ? plan_digits(device) : plan_products(device);
}

void DistributedSgemm::plan_products(const Device& device) {
  const int size = transport_->size(), rank = transport_->rank();
  const auto [m, n, k] = problem_.shape;
  const std::int64_t own_rows = rows_of(rank);
  if (!exchanges()) {
    schedule_ = Schedule::kInTurn;
    steps_.push_back(step(0, is_column_parallel() ? m : own_rows, true, device));
    seconds_ = steps_.front().seconds;
  } else {
    for (const std::int64_t rows : problem_.rows) {
      message_bytes_.push_back(bytes_of(rows * (is_column_parallel() ? k : n)));
    }
    // Messages are dense, and the gathered rows are one matrix.
    const bool is_dense =
        problem_.op_a == Op::kN && (problem_.lda == problem_.shape.k || own_rows <= 1);
    packs_ = is_column_parallel() && !is_dense;
    for (int i = 0; i < size; ++i) {
      const int of = neighbour(is_column_parallel() ? i : i + 1);
      steps_.push_back(step(first_row(of), rows_of(of), of == rank, device));
    }
    const bool packs_overlapped = std::exchange(packs_, is_column_parallel());
    Step whole = step(0, m, false, device);
    const double pack = stream_seconds(bytes_of(own_rows * k), bytes_of(own_rows * k));
    std::vector<double> multiplications;
    multiplications.reserve(steps_.size());
    for (const Step& step : steps_) multiplications.push_back(step.seconds);
    const bool overlaps =
        take_faster(overlapped_seconds(multiplications) + (packs_overlapped ? pack : 0.0),
                    in_turn_seconds(whole.seconds) + (packs_ ? pack : 0.0));
    if (!is_column_parallel()) {
      seconds_ += stream_seconds(bytes_of(size * own_rows * n), bytes_of(own_rows * n));
    }
    packs_ = overlaps ? packs_overlapped : packs_;
    if (!overlaps) {
      steps_.clear();
      steps_.push_back(std::move(whole));
    }
  }
  for (const Step& step : steps_) {
    if (!step.plan.ok()) {
      status_ = step.plan.status();
      return;
    }
    multiply_bytes_ = std::max(multiply_bytes_, aligned(step.plan.workspace_bytes()));
  }
  if (exchanges()) {
    partial_at_ = is_column_parallel() ? 0 : aligned(bytes_of((size - 1) * own_rows * n));
    memory_bytes_ = partial_at_ + aligned(bytes_of(m * (is_column_parallel() ? k : n)));
  }
  workspaces_at_ = memory_bytes_;
  memory_bytes_ += (steps_.size() > 1 ? 2 : 1) * multiply_bytes_;
}

std::vector<std::string> DistributedSgemm::configurations() const {
  if (digits_ != nullptr) return configurations_of_digits();
  std::vector<std::string> all;
  all.reserve(steps_.size());
  for (const Step& step : steps_) all.push_back(step.plan.configuration());
  return all;
}

std::int64_t DistributedSgemm::rounding_chain() const {
  if (in_fp32_ != nullptr) return in_fp32_->rounding_chain();
  std::int64_t longest = 0;
  for (const Step& step : steps_) longest = std::max(longest, step.plan.rounding_chain());
  // The ranks' sums are read, C is read and written.
  return is_column_parallel() ? longest : longest + transport_->size() + 1;
}

double DistributedSgemm::operand_error() const {
  if (digits_ != nullptr) return error_of_digits();
  double largest = 0.0;
  for (const Step& step : steps_) largest = std::max(largest, step.plan.operand_error());
  return largest;
}

Status DistributedSgemm::launch(const Operands& operands, Stream stream) {
  if (!ok()) return status_;
  Status status = transport_->poll();
  if (!status.ok()) return status;
  status = enqueue(operands, stream);
  if (!status.ok()) {
    transport_->abort("rank " + std::to_string(transport_->rank()) +
                      " failed to launch: " + status.message());
  }
  return status;
}

// CUDA loads a kernel at its first launch, and may then wait for all work of the device. If that
// work waits for another rank, which waits to load a kernel, no launch returns.
Status DistributedSgemm::load_kernels() {
  const device::OnlyLoad scope;
  NoTransport none(transport_->rank(), transport_->size());
  Transport* const transport = std::exchange(transport_, &none);
  memory_ = std::make_unique<UnusedMemory>();
  const auto address = [&](std::size_t operand) {
    const auto number = static_cast<std::int64_t>(operand) + 1;
    return reinterpret_cast<float*>(number * kUnusedAddress + problem_.offset_bytes[operand]);
  };
  Status status = enqueue({.a = address(0), .b = address(1), .c = address(2)}, nullptr);
  memory_.reset();
  transport_ = transport;
  return status;
}

Status DistributedSgemm::enqueue(const Operands& operands, Stream stream) {
  if (memory_ == nullptr) {
    return Status::invalid_argument("device", "the plan is for a device that was not current");
  }
  if (!exchanges() && digits_ == nullptr) {
    return steps_.front().plan.launch(
        {operands.a, operands.b, operands.c, memory_->data(), multiply_bytes_}, stream);
  }
  for (const auto& [operand, data] :
       {std::pair{Operand::kA, operands.a}, std::pair{Operand::kB, operands.b},
        std::pair{Operand::kC, static_cast<const float*>(operands.c)}}) {
    const Problem problem = stored(operand);
    const auto [rows, cols] = problem.extent(operand);
    if (rows == 0 || cols == 0) continue;
    if (Status s = check_pointer(problem, operand, data); !s.ok()) return s;
  }
  if (digits_ != nullptr) return enqueue_digits(operands, stream);
  return is_column_parallel() ? enqueue_column_parallel(operands, stream)
                              : enqueue_row_parallel(operands, stream);
}

Status DistributedSgemm::exchange(int number, int distance, const Routes& routes) {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  const int last = distance > 0 ? distance : transport_->size() - 1;
  for (int i = distance > 0 ? distance : 1; i <= last; ++i) {
    if (const Outgoing message = routes.out(i); message.bytes > 0) out.push_back(message);
    if (const Incoming message = routes.in(i); message.bytes > 0) in.push_back(message);
  }
  return transport_->exchange(number, *memory_, out, in);
}

// Every second multiplication runs on a second stream: it begins where the previous one leaves
// multiprocessors idle.
Status DistributedSgemm::enqueue_column_parallel(const Operands& operands, Stream stream) {
  const int size = transport_->size(), rank = transport_->rank();
  const std::int64_t k = problem_.shape.k;
  const std::int64_t own_rows = rows_of(rank);
  auto* const gathered = reinterpret_cast<float*>(memory_->data());
  const float* own = operands.a;
  if (packs_) {
    float* const packed = gathered + first_row(rank) * k;
    const Access accesses[] = {{packed, bytes_of(own_rows * k), true}};
    if (Status s = transport_->begin_step("pack own rows", accesses); !s.ok()) return s;
    const PackArgs args{operands.a, problem_.op_a, problem_.lda, own_rows, k, packed};
    if (Status s = enqueue_pack(args, stream); !s.ok()) return s;
    own = packed;
  }
  if (Status s = transport_->fork(stream); !s.ok()) return s;
  // In each exchange the ranks send along the ring at one distance: no two send to the same rank.
  const Routes routes{[&](int distance) -> Outgoing {
                        return {neighbour(-distance), own, bytes_of(own_rows * k),
                                bytes_of(first_row(rank) * k)};
                      },
                      [&](int distance) -> Incoming {
                        const int from = neighbour(distance);
                        return {from, bytes_of(rows_of(from) * k), bytes_of(first_row(from) * k)};
                      }};
  const bool overlaps = schedule_ == Schedule::kOverlapped;
  for (int i = 1; i <= (overlaps ? size - 1 : 1); ++i) {
    if (Status s = exchange(i, overlaps ? i : 0, routes); !s.ok()) return s;
  }
  std::array<Stream, 2> streams = {stream, stream};
  if (overlaps) {
    if (Status s = transport_->branch(stream, false, &streams[1]); !s.ok()) return s;
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Stream on = streams[i % 2];
    const int needed = overlaps ? static_cast<int>(i) : 1;
    if (needed > 0) {
      if (Status s = transport_->wait(needed, on); !s.ok()) return s;
    }
    const Step& step = steps_[i];
    const bool is_own = overlaps && i == 0;
    const float* const a = is_own ? own : gathered + step.first_row * k;
    float* const c = operands.c + step.first_row * problem_.ldc;
    const Access accesses[] = {access(step.plan, Operand::kA, a),
                               access(step.plan, Operand::kC, c)};
    if (Status s = transport_->begin_step("multiply rows", accesses); !s.ok()) return s;
    Status s = step.plan.launch({a, operands.b, c, workspace(i % 2), multiply_bytes_}, on);
    if (!s.ok()) return s;
  }
  return overlaps ? transport_->join(streams[1], stream) : Status();
}

// Others' rows begin first: their sums are sent while own rows, which need no exchange, are
// multiplied. With `others_first` their blocks also go first, so that they do not end with own
// rows.
Status DistributedSgemm::branch_for_sums(bool others_first, SumStreams* streams) {
  Stream stream = streams->own, side = nullptr;
  if (Status s = transport_->branch(stream, others_first, &side); !s.ok()) return s;
  *streams = others_first ? SumStreams{stream, side} : SumStreams{side, stream};
  return others_first ? transport_->join(side, stream) : Status();
}

Status DistributedSgemm::join_for_sums(const SumStreams& streams, Stream stream) {
  return transport_->join(streams.own == stream ? streams.others : streams.own, stream);
}

Status DistributedSgemm::enqueue_row_parallel(const Operands& operands, Stream stream) {
  const int size = transport_->size(), rank = transport_->rank();
  const std::int64_t n = problem_.shape.n;
  const std::int64_t own_rows = rows_of(rank);
  auto* const received = reinterpret_cast<float*>(memory_->data());
  auto* const partial = reinterpret_cast<float*>(memory_->data() + partial_at_);
  const bool overlaps = schedule_ == Schedule::kOverlapped;
  SumStreams streams{stream, stream};
  if (overlaps) {
    const bool is_long = exchange_seconds(message_bytes_of(neighbour(1))) > kLongExchange;
    if (Status s = branch_for_sums(is_long, &streams); !s.ok()) return s;
  }
  const auto multiply = [&](std::size_t i) -> Status {
    const Step& step = steps_[i];
    const bool is_own = i + 1 == steps_.size();
    const std::int64_t skipped = step.first_row * (problem_.op_a == Op::kN ? problem_.lda : 1);
    float* const c = partial + step.first_row * n;
    const Access accesses[] = {access(step.plan, Operand::kC, c)};
    if (Status s = transport_->begin_step("multiply partial sums", accesses); !s.ok()) return s;
    return step.plan.launch(
        {operands.a + skipped, operands.b, c, workspace(is_own ? 0 : 1), multiply_bytes_},
        is_own ? streams.own : streams.others);
  };
  // The sums of rank `from` in the memory of rank `to`.
  const auto slot = [&](int from, int to) {
    return bytes_of((from < to ? from : from - 1) * rows_of(to) * n);
  };
  const Routes routes{[&](int distance) -> Outgoing {
                        const int to = neighbour(distance);
                        return {to, partial + first_row(to) * n, bytes_of(rows_of(to) * n),
                                slot(rank, to)};
                      },
                      [&](int distance) -> Incoming {
                        const int from = neighbour(-distance);
                        return {from, bytes_of(own_rows * n), slot(from, rank)};
                      }};
  const int exchanges = overlaps ? size - 1 : 1;
  for (int i = 1; i <= exchanges; ++i) {
    const auto step = static_cast<std::size_t>(i - 1);
    if (Status s = multiply(step); !s.ok()) return s;
    if (Status s = transport_->fork(streams.others); !s.ok()) return s;
    if (Status s = exchange(i, overlaps ? i : 0, routes); !s.ok()) return s;
  }
  if (overlaps) {
    if (Status s = multiply(steps_.size() - 1); !s.ok()) return s;
    if (Status s = join_for_sums(streams, stream); !s.ok()) return s;
  }
  if (Status s = transport_->wait(exchanges, stream); !s.ok()) return s;
  const float* const own = partial + first_row(rank) * n;
  const Access accesses[] = {{own, bytes_of(own_rows * n)},
                             {received, bytes_of((size - 1) * own_rows * n)}};
  if (Status s = transport_->begin_step("add partial sums", accesses); !s.ok()) return s;
  return enqueue_sum({own, received, rank, size, own_rows, n, problem_.alpha, problem_.beta,
                      operands.c, problem_.ldc, problem_.offset_bytes[2] % 16 == 0},
                     stream);
}

}  // namespace tilegate::distributed
