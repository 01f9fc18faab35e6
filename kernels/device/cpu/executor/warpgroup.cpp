#include "warpgroup.hpp"

#include <array>
#include <cstdint>

#include "executor_impl.hpp"
#include "matrix_tile.hpp"

namespace tilegate::simt {
namespace {

constexpr unsigned kK = kBytesOfK;  // of int8

// Wider than they are stored, as the CPU multiplies them.
using Row = std::array<std::int16_t, kK>;

std::vector<Row> rows_of(const std::byte* shared, const MatrixTile& tile, unsigned count) {
  std::vector<Row> rows(count);
  for (unsigned row = 0; row < count; ++row) {
    for (unsigned k = 0; k < kK; ++k) {
      const std::size_t offset = tile.offset(row, k / kPieceBytes) + k % kPieceBytes;
      const int byte = std::to_integer<int>(shared[offset]);
      rows[row][k] = static_cast<std::int16_t>(byte < 128 ? byte : byte - 256);
    }
  }
  return rows;
}

std::uint32_t dot(const Row& a, const Row& b) {
  std::int32_t sum = 0;
  for (unsigned k = 0; k < kK; ++k) sum += a[k] * b[k];
  return static_cast<std::uint32_t>(sum);
}

}  // namespace

void Warpgroup::start(Executor& executor, std::size_t number, const Operation& operation) {
  if (number == operations_.size()) {
    operations_.push_back(operation);
    operations_.back().is_late = executor.reads_are_late();
  }
  if (++operations_[number].threads < kWarpgroupSize) return;
  started_ = number + 1;
  if (!operations_[number].is_late && done_ == number) complete(executor, started_);
  std::erase_if(waiting_, [&](const auto& waiting) {
    if (waiting.second > started_) return false;
    executor.wake(waiting.first);
    return true;
  });
}

void Warpgroup::wait(Executor& executor, std::size_t count, const Site& site) {
  if (started_ < count) {
    waiting_.emplace_back(executor.current().number, count);
    executor.wait_as(State::kAtMultiplication, site);
  }
  if (done_ < count) executor.wait_as(State::kLate, site);  // the others go on as far as they can
  complete(executor, count);
}

void Warpgroup::complete(Executor& executor, std::size_t count) {
  for (; done_ < count; ++done_) compute(executor, done_);
}

void Warpgroup::compute(Executor& executor, std::size_t number) const {
  const Operation& operation = operations_[number];
  const std::byte* const shared = executor.shared_memory(0);
  const std::vector<Row> a = rows_of(shared, MatrixTile(operation.a), kRowsOfA);
  const std::vector<Row> b = rows_of(shared, MatrixTile(operation.b), operation.n);
  for (unsigned thread = 0; thread < kWarpgroupSize; ++thread) {
    std::int32_t* values = executor.warpgroup_thread(thread).multiplications.values_of(number);
    const unsigned row = thread / kWarpSize * 16 + thread % kWarpSize / 4;
    for (unsigned i = 0; i < operation.n / 2; ++i) {
      const unsigned column = i / 4 * 8 + thread % 4 * 2 + i % 2;
      values[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(values[i]) +
                                            dot(a[row + i % 4 / 2 * 8], b[column]));
    }
  }
}

}  // namespace tilegate::simt
