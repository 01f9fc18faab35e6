#include "runner.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include <tilegate/catalogue.hpp>

#include "errors.hpp"
#include "shapes.hpp"

namespace tilegate::bench {
namespace {

constexpr int kMaxLaunches = 10'000;         // of a batch
constexpr int kMaxReplaysInARow = 256;       // enqueued at once
constexpr int kPlantSamples = 20;            // pairs by which a planted slow-down is checked
constexpr double kMargin = 1.1;              // over a least duration, as estimates are a little off
constexpr double kPlacesShare = 8.0;         // the operands at all places take one byte in so many
constexpr std::size_t kSpacing = 3U << 20U;  // bytes; not a multiple of a page of 2 MiB

// Records a batch that runs every call once, then larger ones until a replay lasts long enough.
Batch record(const Plan& plan, std::span<const Operands> calls) {
  Batch batch(plan, calls, static_cast<int>(calls.size()));
  batch.replay();
  const double least_s = defaults().min_replay_s;
  while (batch.replay_s() < least_s && batch.launches() < kMaxLaunches) {
    const double factor = kMargin * least_s / batch.replay_s();
    const auto round = static_cast<double>(calls.size());
    const double launches = std::ceil(batch.launches() * factor / round) * round;
    batch = Batch(plan, calls, static_cast<int>(std::min<double>(launches, kMaxLaunches)));
    batch.replay();
  }
  return batch;
}

// With such factors, integer operands give sums that float32 holds exactly.
bool is_exact(float factor) { return std::fabs(factor) <= 4.0F && factor == std::rint(factor); }

}  // namespace

Runner::Runner(const Settings& settings) : settings_(settings), checks_(settings.seed) {}

void Runner::run(benchmark::State& state, const Stage& stage, const NamedProblem& named) {
  std::string error;
  try {
    measure(state, stage, named);
    return;
  } catch (const std::bad_alloc&) {
    error = "no memory left on the device for " + to_string(named.problem);
  } catch (const Failure& failure) {
    error = failure.what();
  }
  failed_ = true;
  current_.reset();
  state.SkipWithError(error.c_str());
}

void Runner::measure(benchmark::State& state, const Stage& stage, const NamedProblem& named) {
  if (!current_ || current_->name != benchmark_name(named, settings_.cold)) {
    current_.reset();  // its memory first
    try {
      current_ = prepare(stage, named);
    } catch (const std::bad_alloc&) {
      checks_.forget();
      current_ = prepare(stage, named);
    }
  }
  const std::vector<Placement>& placements = current_->placements;
  for (const Placement& placement : placements) {
    placement.memory.reset_result(verifier::Inputs::kUniform, settings_.seed);
  }

  const int launches = placements.front().rung.launches();
  const std::int64_t total = replays(placements.front().rung, state.max_iterations);
  Samples samples(std::min(placements.size(), static_cast<std::size_t>(total)));
  const auto count = static_cast<std::int64_t>(samples.size());
  while (state.KeepRunningBatch(total * launches)) {
    for (std::int64_t place = 0; place < count; ++place) {
      const auto index = static_cast<std::size_t>(place);
      const std::int64_t share = total / count + (place < total % count ? 1 : 0);
      for (const Sample& sample : replay_at(placements[index], share)) {
        state.SetIterationTime(sample.rung_s * launches);
        samples[index].push_back(sample);
      }
    }
  }
  for (std::size_t place = 0; place < samples.size(); ++place) {
    const Memory& memory = placements[place].memory;
    if (named.problem.beta == 0.0F) {
      checks_.verify(current_->work, memory, verifier::Inputs::kUniform);
    } else {  // each launch has changed the C of the next
      checks_.launch_and_verify(current_->work, memory, verifier::Inputs::kUniform);
    }
  }
  report(state, samples);
}

std::vector<Sample> Runner::replay_at(const Placement& placement, std::int64_t count) {
  const Batch* yardstick = placement.yardstick ? &*placement.yardstick : nullptr;
  std::vector<Sample> samples;
  while (count > 0) {
    const auto now = static_cast<int>(std::min<std::int64_t>(count, kMaxReplaysInARow));
    std::ranges::copy(replay_in_turn(placement.rung, yardstick, now), std::back_inserter(samples));
    count -= now;
  }
  return samples;
}

// Google Benchmark would come to the number of iterations by trying ever larger ones. How long a
// replay takes is known by now, so the first try can last long enough.
std::int64_t Runner::replays(const Batch& rung, std::int64_t iterations) const {
  const double enough =
      settings_.min_time_s ? std::ceil(kMargin * *settings_.min_time_s / rung.replay_s()) : 1.0;
  const double asked_for = std::ceil(static_cast<double>(iterations) / rung.launches());
  return static_cast<std::int64_t>(std::max(enough, asked_for));
}

// Where the operands lie can decide how quick a rung is, for as long as they lie there. So they are
// laid out several times, but no more often than there are replays, or room.
std::size_t Runner::places(const Problem& problem, const Batch& rung) const {
  const double bytes = 2.0 * compulsory_bytes(problem);  // C is there twice
  const double room = static_cast<double>(device::current().total_memory) / kPlacesShare / bytes;
  const double most = std::min(static_cast<double>(replays(rung, 1)), room);
  return static_cast<std::size_t>(std::clamp(most, 1.0, static_cast<double>(settings_.placements)));
}

Runner::Prepared Runner::prepare(const Stage& stage, const NamedProblem& named) {
  const Problem& problem = named.problem;
  check(stage.prepare());
  std::optional<PreparedB> b;
  if (&stage == &prepared_b()) b.emplace(problem);
  const std::size_t limit = settings_.workspace_limit;
  Prepared prepared{
      .name = benchmark_name(named, settings_.cold),
      .work = {problem, b ? b->plan(problem, named.configuration, limit)
                          : stage.plan(problem, device::current(), named.configuration, limit)},
      .placements = {},
      .planted_percent = {},
      .counters = {},
      .kernels = {},
      .b = std::move(b)};
  const Workload& work = prepared.work;
  check(work.plan.status());
  const std::optional<Plan> against = plan_yardstick(problem);
  const int copies = settings_.cold ? copies_to_outrun(cache_bytes(), problem) : 1;
  const auto lay_out = [&] {
    return Memory(problem, work.plan, against ? &*against : nullptr, copies);
  };
  Memory memory = lay_out();
  const auto fill = [&](verifier::Inputs inputs) {
    memory.fill(inputs, settings_.seed);
    if (prepared.b) prepared.b->prepare(memory);
  };
  // Before the timed inputs, integers: each sum is exact, so that a single dropped term shows,
  // which the error bound of a long sum would hide.
  if (is_exact(problem.alpha) && is_exact(problem.beta)) {
    fill(verifier::Inputs::kIntegers);
    checks_.launch_and_verify(work, memory, verifier::Inputs::kIntegers);
  }
  fill(verifier::Inputs::kUniform);
  if (prepared.b) {
    prepared.counters = {{"prepare_us", 1e6 * prepared.b->prepare_s(memory)}};
  }
  std::vector<Placement>& placements = prepared.placements;
  Batch rung = record(work.plan, memory.rung());
  std::optional<Batch> other;
  if (against) other = record(*against, memory.yardstick());
  placements.push_back({{}, std::move(memory), std::move(rung), std::move(other)});
  const std::size_t count = places(problem, placements.front().rung);
  while (placements.size() < count) {
    device::Buffer spacer(placements.size() * kSpacing);
    Placement placement = like(placements.front(), lay_out(), work.plan, against);
    placement.spacer = std::move(spacer);
    placements.push_back(std::move(placement));
  }
  if (!prepared.b && limit == kNoWorkspaceLimit) {  // they are of plans without one
    prepared.counters = exact_counters(named);
  }
  if (!named.configuration.empty() && &stage != cublas_lt()) {  // a library hides its kernels
    prepared.kernels = kernel_symbols(work.plan, placements.front().memory.rung().front());
  } else if (prepared.b) {
    prepared.kernels = work.plan.configuration();
  }
  if (settings_.plant && settings_.plant->rung == stage.name) plant(prepared);
  return prepared;
}

// None on the CPU, and for a rung alone.
std::optional<Plan> Runner::plan_yardstick(const Problem& problem) const {
  if (!defaults().is_cuda || settings_.alone) return std::nullopt;
  const Stage* stage = find_in_catalogue("Cublas");
  std::string configuration;
  if (settings_.yardstick) {
    const std::string name =
        benchmark_name({.stage = {}, .problem = problem}, settings_.cold).substr(1);
    const auto choice = settings_.yardstick->find(name);
    if (choice == settings_.yardstick->end()) {
      throw Failure("--yardstick: no choice for " + name + "; --choose-yardstick makes one");
    }
    configuration = choice->second;
    if (!configuration.empty()) stage = cublas_lt();
  }
  if (stage == nullptr) return std::nullopt;  // a catalogue without cuBLAS
  check(stage->prepare());
  Plan plan = stage->plan(problem, device::current(), configuration);
  check(plan.status());
  return plan;
}

// The same batches on operands in other memory.
Runner::Placement Runner::like(const Placement& first, Memory memory, const Plan& plan,
                               const std::optional<Plan>& against) const {
  memory.fill(verifier::Inputs::kUniform, settings_.seed);
  Batch rung(plan, memory.rung(), first.rung.launches());
  std::optional<Batch> other;
  if (against) other.emplace(*against, memory.yardstick(), first.yardstick->launches());
  return {{}, std::move(memory), std::move(rung), std::move(other)};
}

// Puts a delay behind the batches of the rung, and times the first against the batch as it was.
void Runner::plant(Prepared& prepared) const {
  const auto seconds = [](const Sample& sample) { return sample.rung_s; };
  const Batch& rung = prepared.placements.front().rung;
  const double replay_s =
      rung.launches() * median_of(replay_in_turn(rung, nullptr, kPlantSamples), seconds);
  const double delay_s = replay_s * settings_.plant->percent / 100.0;
  for (Placement& placement : prepared.placements) {
    Batch planted(prepared.work.plan, placement.memory.rung(), placement.rung.launches(), delay_s);
    planted.replay();
    if (!prepared.planted_percent) {
      const double factor =
          median_of(replay_in_turn(planted, &placement.rung, kPlantSamples),
                    [](const Sample& sample) { return sample.rung_s / sample.yardstick_s; });
      prepared.planted_percent = 100.0 * (factor - 1.0);
    }
    placement.rung = std::move(planted);
  }
}

void Runner::report(benchmark::State& state, const Samples& samples) const {
  report_speed(state, samples, current_->work.problem, settings_.peak_gflops);
  state.counters["verified"] = 1.0;
  for (const auto& [name, value] : current_->counters) state.counters[name] = value;
  if (current_->planted_percent) state.counters["planted_pct"] = *current_->planted_percent;
  if (!current_->kernels.empty()) state.SetLabel(current_->kernels);
  if (settings_.samples != nullptr) write_samples(*settings_.samples, current_->name, samples);
}

}  // namespace tilegate::bench
