// An operand that does not change, such as the weights of a layer: split once for many products.
//
//   const Problem problem = Problem::dense({m, n, k}, Op::kN, Op::kT);
//   PreparedOperand weights(problem, Operand::kB);
//   const device::Buffer memory(weights.bytes());
//   Status status = sgemm::stage.prepare();
//   status = weights.prepare(b, memory.data(), memory.size(), stream);
//   const Plan plan = weights.plan(problem);  // another M needs another plan, but no new split
//   status = plan.launch({.a = a, .b = b, .c = c, .workspace = …}, stream);
//
// Link tilegate::sgemm. The header needs no CUDA.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tilegate/stage.hpp>

namespace tilegate {

#if defined(NDEBUG)
constexpr bool kChecksPrepared = false;
#else
constexpr bool kChecksPrepared = true;
#endif

// Describes the operand and points to the caller's memory; copies share that memory. The digits
// belong to the values that the operand had in `prepare`. To change it, prepare it again, on the
// stream of the products or with an event between. Memory may be freed after the last product.
class PreparedOperand {
 public:
  // Empty: it can only be assigned to.
  PreparedOperand() = default;

  // `operand`, A or B, of a problem without a batch. K and this operand's extent, op and leading
  // dimension are fixed. The other operand, ldc, alpha, beta and offsets may differ from product to
  // product. With `is_checked`, by default in debug builds of the caller, each launch compares a
  // checksum of the operand with that of `prepare`. Where they differ, the device stops: the next
  // call that waits for it returns an error, and a message on stderr names the reason. On CUDA no
  // work is possible afterwards, as after a failed assert() in a kernel.
  PreparedOperand(const Problem& problem, Operand operand, const Device& device = device::current(),
                  bool is_checked = kChecksPrepared);

  // Ok, or the wrong field of the problem, or what is unsupported.
  const Status& status() const { return status_; }

  // Device memory that `prepare` needs, 16-byte aligned: about 4 bytes per element on compute
  // capability 9.0, 3 on others, and 256 KiB for a checksum. 0 where products are always in FP32: K
  // below 128, or compute capability below 7.5.
  std::size_t bytes() const { return bytes_; }

  // Enqueues the split of the operand at `from` into `memory`, on the device, which must be
  // current. Does not allocate device memory or synchronise. Call sgemm::stage.prepare() once per
  // device before.
  Status prepare(const float* from, void* memory, std::size_t memory_bytes,
                 Stream stream = nullptr);

  // A plan for products with the prepared operand. It is the fastest configuration of Int8x3, named
  // "Prepared:128x64", or of Sgemm in FP32, by expected time; or the one that `configuration`
  // names. Problem::math is not read. A launch takes the floats of both operands, because the
  // device may decide for FP64. It decides as Int8x3 does, but sets no outliers apart. A plan that
  // is not ok says why. It refers to the memory, not to this object.
  Plan plan(const Problem& problem, std::string_view configuration = {},
            std::size_t workspace_limit = kNoWorkspaceLimit) const;

 private:
  Status check(const Problem& problem) const;

  Problem problem_;
  Operand operand_ = Operand::kB;
  Device device_;
  bool is_checked_ = false;
  std::size_t bytes_ = 0;
  std::byte* memory_ = nullptr;
  bool is_prepared_ = false;
  Status status_ = Status::invalid_argument("operand", "operand: this PreparedOperand is empty");
};

}  // namespace tilegate
