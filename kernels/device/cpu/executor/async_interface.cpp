// Implements async.cuh inside a kernel.
#include <algorithm>
#include <cstring>
#include <utility>

#include "executor_impl.hpp"
#include "observer.hpp"

namespace tilegate::simt {
namespace {

constexpr std::size_t kTensorAlignment = 128;  // of a box in shared memory

Transfer bulk_transfer(const char* use, const void* smem, const void* gmem, unsigned bytes,
                       const Site& site) {
  const std::size_t offset = this_executor().shared_offset(smem, bytes, use, site);
  if (bytes % kPieceBytes != 0 || offset % kPieceBytes != 0 ||
      reinterpret_cast<std::uintptr_t>(gmem) % kPieceBytes != 0) {
    this_executor().fail(std::string("misaligned ") + use + " at " + to_string(site) + " of " +
                         std::to_string(bytes) + " bytes at byte " + std::to_string(offset) +
                         " of shared memory: size and both addresses must be multiples of 16");
  }
  return contiguous(offset, gmem, bytes);
}

Transfer tensor_transfer(const char* use, const void* smem, const device::TensorMap& map,
                         const Coordinates& at, unsigned dimensions, const Site& site) {
  device::TensorLayout tensor;
  std::memcpy(static_cast<void*>(&tensor), &map, sizeof(tensor));
  if (tensor.dimensions != dimensions) {
    this_executor().fail(std::string(use) + " at " + to_string(site) + " names " +
                         std::to_string(dimensions) + " coordinates of a tensor of " +
                         std::to_string(tensor.dimensions) + " dimensions");
  }
  const std::size_t bytes =
      std::size_t{tensor.box[0]} * tensor.box[1] * tensor.box[2] * tensor.element_bytes;
  const std::size_t offset = this_executor().shared_offset(smem, bytes, use, site);
  if (offset % kTensorAlignment != 0) {
    this_executor().fail(std::string("misaligned ") + use + " at " + to_string(site) + " at byte " +
                         std::to_string(offset) +
                         " of shared memory: it must be a multiple of 128");
  }
  if (std::int64_t{at[0]} * tensor.element_bytes % kPieceBytes != 0) {
    this_executor().fail(std::string("misaligned ") + use + " at " + to_string(site) +
                         " of a box that begins at column " + std::to_string(at[0]) +
                         " of elements of " + std::to_string(tensor.element_bytes) +
                         " bytes: it must begin at a multiple of 16 bytes");
  }
  return box_of(tensor, at, offset);
}

// Copies to the corresponding address of each block in `mask`; 0: this block.
void multicast(const Transfer& transfer, device::Barrier& barrier, std::uint16_t mask,
               const Site& site) {
  Executor& executor = this_executor();
  observer::count_transfer(transfer, false, site);
  if (mask == 0) mask = static_cast<std::uint16_t>(1U << executor.rank());
  for (unsigned rank = 0; mask >> rank != 0; ++rank) {
    if ((mask >> rank & 1) == 0) continue;
    Transfer there = transfer;
    for (Piece& piece : there) {
      piece.offset = executor.peer_offset(piece.offset, rank, "copy", site);
    }
    executor.mbarriers().copy_to(rank, std::move(there), barrier, site);
  }
}

}  // namespace

namespace executor {

void barrier_init(device::Barrier& barrier, unsigned arrivals, const Site& site) {
  this_executor().mbarriers().init(barrier, arrivals, site);
}

unsigned barrier_parity(device::Barrier& barrier, const Site& site) {
  return this_executor().mbarriers().parity(barrier, site);
}

void barrier_init_fence() { this_executor().mbarriers().init_fence(); }

void barrier_arrive(device::Barrier& barrier, unsigned expected_bytes, const Site& site) {
  this_executor().mbarriers().arrive(barrier, expected_bytes, site);
}

void barrier_wait(device::Barrier& barrier, unsigned parity, const Site& site) {
  this_executor().mbarriers().wait(barrier, parity, site);
}

void copy_bulk(void* smem, const void* gmem, unsigned bytes, device::Barrier& barrier,
               std::uint16_t mask, const Site& site) {
  multicast(bulk_transfer("copy_bulk", smem, gmem, bytes, site), barrier, mask, site);
}

void copy_tensor(void* smem, const device::TensorMap& map, const Coordinates& at,
                 unsigned dimensions, device::Barrier& barrier, std::uint16_t mask,
                 const Site& site) {
  multicast(tensor_transfer("copy_tensor", smem, map, at, dimensions, site), barrier, mask, site);
}

void store_bulk(void* gmem, const void* smem, unsigned bytes, const Site& site) {
  Transfer transfer = bulk_transfer("store_bulk", smem, gmem, bytes, site);
  this_executor().stores().start(this_executor(), std::move(transfer), site);
}

void store_tensor(const device::TensorMap& map, const Coordinates& at, unsigned dimensions,
                  const void* smem, const Site& site) {
  if (*std::min_element(at.begin(), at.end()) < 0) {
    this_executor().fail("store_tensor at " + to_string(site) +
                         " begins at a negative coordinate: only copies may");
  }
  Transfer transfer = tensor_transfer("store_tensor", smem, map, at, dimensions, site);
  this_executor().stores().start(this_executor(), std::move(transfer), site);
}

void store_commit() { this_executor().stores().commit(); }

void store_wait(int pending_groups, const Site& site) {
  this_executor().stores().wait(this_executor(), pending_groups, site);
}

void fence_async_proxy() { observer::fence_async_proxy(); }

bool named_barrier_or(unsigned id, unsigned threads, bool value, const Site& site) {
  return this_executor().named_barrier_or(id, threads, value, site);
}

void check_descriptor(unsigned start, unsigned leading_bytes, unsigned stride_bytes,
                      const Site& site) {
  if ((start | leading_bytes | stride_bytes) % kPieceBytes == 0) return;
  this_executor().fail("misaligned matrix_descriptor at " + to_string(site) + " of byte " +
                       std::to_string(start) + " of shared memory, strides of " +
                       std::to_string(leading_bytes) + " and " + std::to_string(stride_bytes) +
                       " bytes: they must be multiples of 16");
}

void warpgroup_arrive() { this_executor().multiplications().arrive(); }

void warpgroup_mma(void* acc, const MatrixProduct& product, const Site& site) {
  this_executor().multiplications().start(this_executor(), acc, product, site);
}

void warpgroup_commit() { this_executor().multiplications().commit(); }

void warpgroup_wait(int pending_groups, const Site& site) {
  this_executor().multiplications().wait(this_executor(), pending_groups, site);
}

void warpgroup_fence_operand(const void* registers) {
  this_executor().multiplications().results(registers);
}

}  // namespace executor
}  // namespace tilegate::simt
