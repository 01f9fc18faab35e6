#include "warpgroup.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "executor_impl.hpp"
#include "matrix_tile.hpp"
#include "tensor_arithmetic.hpp"

namespace tilegate::simt {
namespace {

template <typename Arithmetic>
std::vector<typename Arithmetic::Row> rows_of(const std::byte* shared, const MatrixTile& tile,
                                              unsigned count) {
  std::vector<typename Arithmetic::Row> rows;
  rows.reserve(count);
  for (unsigned row = 0; row < count; ++row) {
    rows.push_back(Arithmetic::row(tile.row(shared, row)));
  }
  return rows;
}

}  // namespace

// The rows of a, from the registers of all threads. Thread t has four registers: bytes t % 4 · 4 to
// t % 4 · 4 + 3 of row t / 32 · 16 + t % 32 / 4, the same bytes 8 rows below, and both again 16
// bytes further.
std::array<RowBytes, kRowsOfA> Warpgroup::rows_in_registers(Executor& executor,
                                                            std::size_t number) {
  std::array<RowBytes, kRowsOfA> rows{};
  for (unsigned thread = 0; thread < kWarpgroupSize; ++thread) {
    const ShareOfA& share = executor.warpgroup_thread(thread).multiplications.share_of_a(number);
    const unsigned row = thread / kWarpSize * 16 + thread % kWarpSize / 4;
    for (unsigned i = 0; i < share.size(); ++i) {
      std::memcpy(&rows[row + i % 2 * 8][i / 2 * kPieceBytes + thread % 4 * sizeof(share[i])],
                  &share[i], sizeof(share[i]));
    }
  }
  return rows;
}

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
  if (done_ < count) executor.wait_as(State::kLate, site);  // other threads run as far as they can
  complete(executor, count);
}

void Warpgroup::complete(Executor& executor, std::size_t count) {
  for (; done_ < count; ++done_) compute(executor, done_);
}

void Warpgroup::compute(Executor& executor, std::size_t number) const {
  switch (operations_[number].product.type) {
    case MmaType::kS8:
      return compute_as<Int8>(executor, number);
    case MmaType::kF16:
      return compute_as<Float16>(executor, number);
    case MmaType::kBf16:
      return compute_as<BFloat16>(executor, number);
    case MmaType::kTf32:
      return compute_as<TFloat32>(executor, number);
  }
}

template <typename Arithmetic>
void Warpgroup::compute_as(Executor& executor, std::size_t number) const {
  const MatrixProduct& product = operations_[number].product;
  const std::byte* const shared = executor.shared_memory(0);
  std::vector<typename Arithmetic::Row> a;
  if (product.registers_of_a == nullptr) {
    a = rows_of<Arithmetic>(shared, MatrixTile(product.a, product.major_a), kRowsOfA);
  } else {
    for (const RowBytes& row : rows_in_registers(executor, number)) {
      a.push_back(Arithmetic::row(row));
    }
  }
  const auto b = rows_of<Arithmetic>(shared, MatrixTile(product.b, product.major_b), product.n);
  for (unsigned thread = 0; thread < kWarpgroupSize; ++thread) {
    std::uint32_t* values = executor.warpgroup_thread(thread).multiplications.values_of(number);
    const unsigned row = thread / kWarpSize * 16 + thread % kWarpSize / 4;
    for (unsigned i = 0; i < product.n / 2; ++i) {
      const unsigned column = i / 4 * 8 + thread % 4 * 2 + i % 2;
      values[i] = Arithmetic::add(product.adds ? values[i] : 0, a[row + i % 4 / 2 * 8], b[column]);
    }
  }
}

}  // namespace tilegate::simt
