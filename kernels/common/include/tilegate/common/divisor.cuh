// Division by a kernel argument: the host computes a multiplier and a shift, so that the kernel
// needs no division instructions (CUTLASS: FastDivmod).
#pragma once

#include <bit>
#include <cstdint>

#include <tilegate/device/device.cuh>

namespace tilegate {

// n / divisor for n < 2^31 and 1 <= divisor < 2^31. With l the number of bits of divisor - 1 and
// m = ⌈2^(31 + l) / divisor⌉, n·m / 2^(31 + l) exceeds n / divisor by less than 1 / divisor (T.
// Granlund and P. Montgomery, Division by Invariant Integers using Multiplication, 1994).
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::uint32_t divisor)
      : divisor_(divisor),
        multiplier_(static_cast<std::uint32_t>(
            ((std::uint64_t{1} << shift_of(divisor)) + divisor - 1) / divisor)),
        shift_(shift_of(divisor)) {}

  __host__ __device__ std::uint32_t value() const { return divisor_; }
  __host__ __device__ std::uint32_t quotient(std::uint32_t n) const {
    return static_cast<std::uint32_t>(std::uint64_t{n} * multiplier_ >> shift_);
  }
  __host__ __device__ std::uint32_t remainder(std::uint32_t n, std::uint32_t quotient) const {
    return n - quotient * divisor_;
  }

 private:
  static int shift_of(std::uint32_t divisor) { return 31 + std::bit_width(divisor - 1); }

  std::uint32_t divisor_ = 1, multiplier_ = std::uint32_t{1} << 31;
  int shift_ = 31;
};

}  // namespace tilegate
