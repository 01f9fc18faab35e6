#include "verifier/case.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "verifier/guarded_matrix.hpp"

#if TILEGATE_ON_SIMT
#include <tilegate/device/cpu/executor.hpp>
#endif

namespace tilegate::verifier {
namespace {

// Selects some 640 of 65625 blocks, which 2 100 000 rows have in tiles of 32.
constexpr std::int64_t kSampleEnds = 32, kSampleStride = 113;
// A grid with one block per tile of 2^31 rows has at least so many blocks. A smaller grid is
// persistent: each block would loop over too many tiles.
constexpr std::int64_t kBlockPerTile = 1 << 20;

// Replaces characters that names of tests must not have.
std::string spell(const std::string& text) {
  std::string spelt;
  for (const char c : text) {
    if (c == '/' || c == ':') {
      spelt += '_';
    } else if (c == '-') {
      spelt += 'm';
    } else if (c == '.') {
      spelt += 'p';
    } else if (c != '+') {
      spelt += c;
    }
  }
  return spelt;
}

std::string spell(float value) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return spell(std::string(text.data(), end));
}

std::string spell_position(std::int64_t i) {
  return i < 0 ? "e" + std::to_string(-i) : std::to_string(i);
}

}  // namespace

Padded::operator Problem() const {
  Problem problem = Problem::dense(shape, op_a, op_b, batch);
  problem.lda += pad[0];
  problem.ldb += pad[1];
  problem.ldc += pad[2];
  const auto stride = [&](Operand operand) {
    const std::int64_t rows = problem.extent(operand).rows + std::max<std::int64_t>(gap, 0);
    return rows * problem.ld(operand) + shift[static_cast<std::size_t>(operand)];
  };
  problem.stride_a = gap < 0 ? 0 : stride(Operand::kA);
  problem.stride_b = gap < 0 ? 0 : stride(Operand::kB);
  problem.stride_c = stride(Operand::kC);
  problem.offset_bytes = offset_bytes;
  problem.alpha = alpha;
  problem.beta = beta;
  return problem;
}

std::string name_of(const Case& test_case) {
  std::string name = spell(to_string(test_case.problem));
  if (test_case.seed != Case{}.seed) name += "_s" + std::to_string(test_case.seed);
  if (test_case.null_inputs) name += "_null";
  for (const Plant& plant : test_case.plants) {
    name += "_" + spell(plant.value) + "In" + "ABC"[static_cast<int>(plant.operand)] +
            spell_position(plant.row) + "x" + spell_position(plant.col);
  }
  if (!test_case.configuration.empty()) name += "_at_" + spell(test_case.configuration);
  if (test_case.multiprocessors > 0) name += "_sm" + std::to_string(test_case.multiprocessors);
  if (test_case.compute_capability != 0) {
    name += "_cc" + std::to_string(test_case.compute_capability);
  }
  if (test_case.workspace_limit != kNoWorkspaceLimit) {
    name += "_ws" + std::to_string(test_case.workspace_limit);
  }
  switch (test_case.inputs) {
    case Inputs::kUniform:
      return name;
    case Inputs::kIntegers:
      return name + "_int";
    case Inputs::kPicksFromA:
      return name + "_picksA";
    case Inputs::kPicksFromB:
      return name + "_picksB";
  }
  return name;
}

Device device_of(const Case& test_case) {
  Device device = device::current();
  if (test_case.multiprocessors > 0) device.multiprocessors = test_case.multiprocessors;
  if (test_case.compute_capability != 0) {
    device.is_cuda = true;
    device.compute_capability = test_case.compute_capability;
  }
  return device;
}

GuardedMatrix::Layout layout_of(const Problem& problem, Operand operand) {
  const auto [rows, cols] = problem.extent(operand);
  const std::int64_t ld = problem.ld(operand);
  const std::int64_t stride = problem.stride(operand);
  const auto offset = static_cast<int>(problem.offset_bytes[static_cast<std::size_t>(operand)]);
  const bool is_shared = problem.batch > 1 && stride == 0;
  const bool is_batch = problem.batch > 1 && ld > 0;
  return {.rows = rows,
          .cols = cols,
          .ld = ld,
          .offset = offset,
          .batch = is_shared ? 1 : problem.batch,
          .period = is_batch ? stride / ld : 0,
          .shift = is_batch ? stride % ld : 0};
}

std::size_t device_bytes(const Case& test_case) {
  std::size_t bytes = 0;
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    bytes += GuardedMatrix::device_bytes(layout_of(test_case.problem, operand));
  }
  return bytes;
}

void set_order([[maybe_unused]] Order order, [[maybe_unused]] std::uint64_t seed) {
#if TILEGATE_ON_SIMT
  switch (order) {
    case Order::kForward:
      return simt::executor::set_schedule(simt::Schedule::forward());
    case Order::kReverse:
      return simt::executor::set_schedule(simt::Schedule::reverse());
    case Order::kShuffled:
      return simt::executor::set_schedule(simt::Schedule::shuffled(seed));
    case Order::kSample:
      return simt::executor::set_schedule(simt::Schedule::sample(kSampleEnds, kSampleStride));
    case Order::kEnds:
      return simt::executor::set_schedule(simt::Schedule::sample(2, 0, kBlockPerTile));
  }
#endif
}

Stream begin_call([[maybe_unused]] const Problem& problem,
                  [[maybe_unused]] const Operands& operands) {
#if TILEGATE_ON_SIMT
  static char address_of_a_stream = 0;
  const auto stream = reinterpret_cast<Stream>(&address_of_a_stream);
  simt::executor::begin_call(problem, operands, stream);
  return stream;
#else
  return nullptr;
#endif
}

Status end_call() {
#if TILEGATE_ON_SIMT
  return simt::executor::end_call();
#else
  return {};
#endif
}

BlocksRun blocks_run() {
#if TILEGATE_ON_SIMT
  const simt::Coverage coverage = simt::executor::coverage();
  return {static_cast<double>(coverage.blocks), static_cast<double>(coverage.run)};
#else
  return {};
#endif
}

}  // namespace tilegate::verifier
