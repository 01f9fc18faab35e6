#include "multiplications.hpp"

#include <algorithm>
#include <array>

#include "executor_impl.hpp"
#include "matrix_tile.hpp"
#include "observer.hpp"

namespace tilegate::simt {
namespace {

constexpr unsigned kK = 32;     // bytes of a row that one multiplication reads
constexpr unsigned kRows = 64;  // of a
constexpr unsigned kRowsOfWarp = 16;
constexpr std::int32_t kTaken = 0x7ACC'ACC7;  // in registers that are not the thread's

const std::int8_t* piece_at(Executor& executor, const MatrixTile& tile, unsigned row,
                            unsigned piece) {
  return reinterpret_cast<const std::int8_t*>(executor.shared_memory(0) + tile.offset(row, piece));
}

// A row of a tile.
std::array<std::int8_t, kK> row_of(Executor& executor, const MatrixTile& tile, unsigned row) {
  std::array<std::int8_t, kK> values;
  constexpr unsigned kPiece = MatrixTile::kPieceBytes;
  for (unsigned piece = 0; piece < kK / kPiece; ++piece) {
    std::copy_n(piece_at(executor, tile, row, piece), kPiece, values.begin() + piece * kPiece);
  }
  return values;
}

std::uint32_t dot(const std::array<std::int8_t, kK>& a, const std::array<std::int8_t, kK>& b) {
  std::int32_t sum = 0;
  for (unsigned k = 0; k < kK; ++k) sum += a[k] * b[k];
  return static_cast<std::uint32_t>(sum);
}

void check_inside(Executor& executor, const MatrixTile& tile, unsigned rows, const char* name,
                  const Site& site) {
  for (unsigned row = 0; row < rows; ++row) {
    for (unsigned piece = 0; piece < kK / MatrixTile::kPieceBytes; ++piece) {
      const std::size_t end = tile.offset(row, piece) + MatrixTile::kPieceBytes;
      if (end <= executor.shared_bytes()) continue;
      executor.fail("warpgroup_mma at " + to_string(site) + ": the descriptor of " + name +
                    " puts row " + std::to_string(row) + " at byte " +
                    std::to_string(end - MatrixTile::kPieceBytes) + " of " +
                    std::to_string(executor.shared_bytes()) + " bytes of shared memory");
    }
  }
}

}  // namespace

void Multiplications::start(Executor& executor, std::int32_t* acc, unsigned n,
                            device::MatrixDescriptor a, device::MatrixDescriptor b,
                            const Site& site) {
  const Thread& thread = executor.current();
  if (executor.num_threads() / kWarpgroupSize <= thread.number / kWarpgroupSize) {
    executor.fail("warpgroup_mma at " + to_string(site) + " by a warpgroup of fewer than " +
                  std::to_string(kWarpgroupSize) + " threads");
  }
  if (!has_arrived_) {
    executor.fail("warpgroup_mma at " + to_string(site) +
                  " without warpgroup_arrive() since the thread last had the accumulators");
  }
  if (thread.number % kWarpgroupSize == 0) {
    check_inside(executor, MatrixTile(a), kRows, "a", site);
    check_inside(executor, MatrixTile(b), n, "b", site);
  }
  for (const std::uint64_t value : {a, b, std::uint64_t{n}}) {
    history_ = (history_ ^ value) * 0x9E37'79B9'7F4A'7C15;
  }
  take(executor, acc, n, site);
  if (observer::kIsObserved && thread.number % kWarpSize == 0) {
    const unsigned first_row = thread.number % kWarpgroupSize / kWarpSize * kRowsOfWarp;
    observe(MatrixTile(a), first_row, kRowsOfWarp, site);
    observe(MatrixTile(b), 0, n, site);
  }
  running_.push_back({acc, n, a, b, open_group_, executor.multiplications_are_late(), site});
  if (!running_.back().is_late) compute(executor, running_.back());
}

void Multiplications::observe(const MatrixTile& tile, unsigned first_row, unsigned rows,
                              const Site& site) const {
  for (unsigned row = first_row; row < first_row + rows; ++row) {
    for (unsigned piece = 0; piece < kK / MatrixTile::kPieceBytes; ++piece) {
      observer::start_multiplication(tile.offset(row, piece), MatrixTile::kPieceBytes,
                                     open_group_ + 1, site);
    }
  }
}

void Multiplications::take(Executor& executor, std::int32_t* acc, unsigned n, const Site& site) {
  const std::size_t count = n / 2;
  for (Accumulators& other : taken_) {
    if (other.registers == acc && other.values.size() == count) return;
    if (acc < other.registers + other.values.size() && other.registers < acc + count) {
      executor.fail("warpgroup_mma at " + to_string(site) +
                    " has accumulators of the one of another shape at " + to_string(other.site) +
                    ", before its warpgroup_wait");
    }
  }
  taken_.push_back({acc, {acc, acc + count}, site});
  std::fill_n(acc, count, kTaken);
  observer::take_registers(acc, count, site);
}

void Multiplications::wait(Executor& executor, int pending_groups, const Site& site) {
  const int first_pending = open_group_ - pending_groups;
  const auto is_covered = [&](const Multiplication& m) { return m.group < first_pending; };
  if (std::any_of(running_.begin(), running_.end(),
                  [&](const auto& m) { return is_covered(m) && m.is_late; })) {
    executor.wait_as(State::kAtMultiplication, site);  // the others go on as far as they can
    for (const Multiplication& m : running_) {
      if (is_covered(m) && m.is_late) compute(executor, m);
    }
  }
  std::erase_if(running_, is_covered);
  observer::finish_multiplications(std::max(first_pending, 0));
  std::erase_if(taken_, [&](const Accumulators& accumulators) {
    const bool is_used = std::any_of(running_.begin(), running_.end(), [&](const auto& m) {
      return m.acc == accumulators.registers;
    });
    if (!is_used) give_back(executor, accumulators);
    return !is_used;
  });
  has_arrived_ = false;
}

void Multiplications::give_back(Executor& executor, const Accumulators& accumulators) {
  observer::give_back_registers(accumulators.registers);
  for (std::size_t i = 0; i < accumulators.values.size(); ++i) {
    if (accumulators.registers[i] != kTaken) {
      executor.fail("acc[" + std::to_string(i) + "] of the warpgroup_mma at " +
                    to_string(accumulators.site) + " was written before its warpgroup_wait");
    }
    accumulators.registers[i] = accumulators.values[i];
  }
}

void Multiplications::compute(Executor& executor, const Multiplication& multiplication) {
  const unsigned thread = executor.current().number % kWarpgroupSize;
  const unsigned row = thread / kWarpSize * kRowsOfWarp + thread % kWarpSize / 4;
  const unsigned first_column = thread % 4 * 2;
  const MatrixTile a(multiplication.a);
  const MatrixTile b(multiplication.b);
  const std::array rows = {row_of(executor, a, row), row_of(executor, a, row + 8)};
  auto& values = std::find_if(taken_.begin(), taken_.end(), [&](const auto& accumulators) {
                   return accumulators.registers == multiplication.acc;
                 })->values;
  for (unsigned i = 0; i < multiplication.n / 8; ++i) {
    for (unsigned j = 0; j < 2; ++j) {
      const auto column = row_of(executor, b, 8 * i + first_column + j);
      for (unsigned half = 0; half < 2; ++half) {
        std::int32_t& value = values[4 * i + 2 * half + j];
        value =
            static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + dot(rows[half], column));
      }
    }
  }
}

}  // namespace tilegate::simt
