#include "multiplications.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "executor_impl.hpp"
#include "matrix_tile.hpp"
#include "observer.hpp"

namespace tilegate::simt {
namespace {

constexpr unsigned kRowsOfWarp = 16;
constexpr std::uint32_t kTaken = 0x7ACC'ACC7;  // fills registers that a multiplication owns

void check_tile(Executor& executor, const MatrixTile& tile, unsigned rows, const char* name,
                const Site& site) {
  if (tile.is_across_lines()) {
    executor.fail("warpgroup_mma at " + to_string(site) + ": misaligned descriptor of " + name +
                  ", whose first 32 bytes along k are not in one line of its swizzle");
  }
  tile.for_each_piece(0, rows, [&](unsigned row, std::size_t offset) {
    if (offset + kPieceBytes <= executor.shared_bytes()) return;
    executor.fail("warpgroup_mma at " + to_string(site) + ": the descriptor of " + name +
                  " puts row " + std::to_string(row) + " at byte " + std::to_string(offset) +
                  " of " + std::to_string(executor.shared_bytes()) + " bytes of shared memory");
  });
}

// All fields of a product but its tiles, in one word.
std::uint64_t kind_of(const MatrixProduct& product) {
  const unsigned in_registers = product.registers_of_a == nullptr ? 0 : 1;
  return std::uint64_t{product.n} << 8 | in_registers << 7 |
         static_cast<unsigned>(product.type) << 3 | static_cast<unsigned>(product.major_a) << 2 |
         static_cast<unsigned>(product.major_b) << 1 | (product.adds ? 1 : 0);
}

}  // namespace

void Multiplications::start(Executor& executor, void* acc, const MatrixProduct& product,
                            const Site& site) {
  const MatrixTile a(product.a, product.major_a), b(product.b, product.major_b);
  const unsigned n = product.n;
  const unsigned number = executor.number_in_block(executor.current());
  if (executor.block_threads() / kWarpgroupSize <= number / kWarpgroupSize) {
    executor.fail("warpgroup_mma at " + to_string(site) + " by a warpgroup of fewer than " +
                  std::to_string(kWarpgroupSize) + " threads");
  }
  if (!has_arrived_) {
    executor.fail("warpgroup_mma at " + to_string(site) +
                  " without warpgroup_arrive() since the thread's last warpgroup_wait");
  }
  if (number % kWarpgroupSize == 0) {
    if (product.registers_of_a == nullptr) check_tile(executor, a, kRowsOfA, "a", site);
    check_tile(executor, b, n, "b", site);
  }
  for (const std::uint64_t value : {product.a, product.b, kind_of(product)}) {
    history_ = (history_ ^ value) * 0x9E37'79B9'7F4A'7C15;
  }
  auto* const registers = static_cast<std::byte*>(acc);
  take(executor, registers, n, site);
  if (observer::kIsObserved && number % kWarpSize == 0) {
    const unsigned first_row = number % kWarpgroupSize / kWarpSize * kRowsOfWarp;
    const unsigned rows_of_a = product.registers_of_a == nullptr ? kRowsOfA : 0;
    if (rows_of_a != 0) observe(executor, a, first_row, kRowsOfWarp, site);
    observe(executor, b, 0, n, site);
    const bool is_first = number % kWarpgroupSize == 0;
    observer::count_multiplication(is_first ? (rows_of_a + n) * kBytesOfK : 0, site);
  }
  ShareOfA share_of_a{};
  if (product.registers_of_a != nullptr) {
    std::memcpy(share_of_a.data(), product.registers_of_a, sizeof(share_of_a));
    use_share(executor, {product.registers_of_a, share_of_a, site});
  }
  running_.push_back({registers, started_, open_group_, site, product.registers_of_a, share_of_a});
  executor.warpgroup().start(executor, started_++, {product});
}

void Multiplications::observe(Executor& executor, const MatrixTile& tile, unsigned first_row,
                              unsigned rows, const Site& site) const {
  tile.for_each_piece(first_row, rows, [&](unsigned /*row*/, std::size_t offset) {
    observer::start_multiplication(executor.shared_base() + offset, kPieceBytes,
                                   executor.warpgroup_number(), open_group_ + 1, site);
  });
}

void Multiplications::take(Executor& executor, std::byte* acc, unsigned n, const Site& site) {
  const std::size_t count = n / 2;
  for (Accumulators& other : taken_) {
    if (other.registers == acc && other.values.size() == count) return;
    if (acc < other.registers + sizeof(kTaken) * other.values.size() &&
        other.registers < acc + sizeof(kTaken) * count) {
      executor.fail("warpgroup_mma at " + to_string(site) +
                    " uses accumulators of one with another shape at " + to_string(other.site) +
                    ", before its warpgroup_wait");
    }
  }
  std::vector<std::uint32_t> values(count);
  std::memcpy(values.data(), acc, sizeof(kTaken) * count);
  taken_.push_back({acc, std::move(values), site});
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(acc + sizeof(kTaken) * i, &kTaken, sizeof(kTaken));
  observer::take_registers(acc, count, site);
}

void Multiplications::wait(Executor& executor, int pending_groups, const Site& site) {
  const int first_pending = open_group_ - pending_groups;
  const auto is_covered = [&](const Multiplication& m) { return m.group < first_pending; };
  const auto pending = std::find_if_not(running_.begin(), running_.end(), is_covered);
  if (pending != running_.begin()) {
    executor.warpgroup().wait(executor, std::prev(pending)->number + 1, site);
    std::for_each(running_.begin(), pending,
                  [&](const Multiplication& m) { check_share_of_a(executor, m); });
  }
  std::erase_if(running_, is_covered);
  observer::finish_multiplications(executor.warpgroup_number(), std::max(first_pending, 0));
  std::erase_if(taken_, [&](const Accumulators& accumulators) {
    const bool is_used = std::any_of(running_.begin(), running_.end(), [&](const auto& m) {
      return m.acc == accumulators.registers;
    });
    if (!is_used) give_back(executor, accumulators);
    return !is_used;
  });
  has_arrived_ = false;
}

// Without warpgroup_fence_operand the compiler may have moved the write before the wait.
void Multiplications::use_share(Executor& executor, const UsedShare& share) {
  const auto used =
      std::find_if(used_shares_.begin(), used_shares_.end(),
                   [&](const UsedShare& other) { return other.registers == share.registers; });
  if (used == used_shares_.end()) {
    used_shares_.push_back(share);
  } else if (used->share != share.share) {
    executor.fail("a of the warpgroup_mma at " + to_string(share.site) +
                  " was written without warpgroup_fence_operand since that at " +
                  to_string(used->site));
  }
}

void Multiplications::results(const void* registers) {
  const bool is_running = std::any_of(running_.begin(), running_.end(),
                                      [&](const auto& m) { return m.registers_of_a == registers; });
  if (!is_running) {
    std::erase_if(used_shares_, [&](const auto& used) { return used.registers == registers; });
  }
  observer::give_back_registers(registers);
}

void Multiplications::check_share_of_a(Executor& executor, const Multiplication& multiplication) {
  const std::uint32_t* const now = multiplication.registers_of_a;
  if (now == nullptr) return;
  const auto written =
      std::mismatch(multiplication.share_of_a.begin(), multiplication.share_of_a.end(), now).second;
  if (written == now + multiplication.share_of_a.size()) return;
  executor.fail("a[" + std::to_string(written - now) + "] of the warpgroup_mma at " +
                to_string(multiplication.site) + " was written before its warpgroup_wait");
}

void Multiplications::give_back(Executor& executor, const Accumulators& accumulators) {
  observer::finish_registers(accumulators.registers);
  for (std::size_t i = 0; i < accumulators.values.size(); ++i) {
    if (std::memcmp(accumulators.registers + sizeof(kTaken) * i, &kTaken, sizeof(kTaken)) != 0) {
      executor.fail("acc[" + std::to_string(i) + "] of the warpgroup_mma at " +
                    to_string(accumulators.site) + " was written before its warpgroup_wait");
    }
  }
  std::memcpy(accumulators.registers, accumulators.values.data(),
              sizeof(kTaken) * accumulators.values.size());
}

const Multiplications::Multiplication& Multiplications::running(std::size_t number) const {
  return *std::find_if(running_.begin(), running_.end(),
                       [&](const auto& m) { return m.number == number; });
}

std::uint32_t* Multiplications::values_of(std::size_t number) {
  const std::byte* const acc = running(number).acc;
  const auto taken = std::find_if(taken_.begin(), taken_.end(), [&](const auto& accumulators) {
    return accumulators.registers == acc;
  });
  return taken->values.data();
}

}  // namespace tilegate::simt
