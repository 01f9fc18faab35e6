// warp_mma.cuh on the CPU, built from shuffles: so a lane that does not take part is reported as
// for any other shuffle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tilegate/device/cpu/device.hpp>

namespace tilegate::device {

inline void load_matrices(std::uint32_t (&v)[4], const void* row,
                          simt::Site site = simt::Site::current()) {
  simt::executor::check_alignment(row, 16, "matrix load");
  const auto lane = static_cast<int>(simt::executor::lane());
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto* from =
        static_cast<const std::byte*>(__shfl_sync(~0U, row, matrix * 8 + lane / 4, site));
    v[matrix] = *reinterpret_cast<const std::uint32_t*>(from + lane % 4 * 4);
  }
}

inline void multiply_s8(std::int32_t* acc, const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                        simt::Site site = simt::Site::current()) {
  const auto both = [](std::uint32_t low, std::uint32_t high) {
    return std::uint64_t{high} << 32 | low;
  };
  const auto low = both(a[0], a[1]), high = both(a[2], a[3]), all_b = both(b[0], b[1]);
  const auto lane = static_cast<int>(simt::executor::lane());
  const auto add = [](std::int32_t sum, std::uint64_t x, std::uint64_t y, int first) {
    for (int byte = first; byte < first + 4; ++byte) {
      sum += static_cast<std::int8_t>(x >> 8 * byte) * static_cast<std::int8_t>(y >> 8 * byte);
    }
    return sum;
  };
  for (int quad = 0; quad < 4; ++quad) {  // 4 k of the first 16, and 4 of the last 16
    const std::uint64_t first_a = __shfl_sync(~0U, low, lane / 4 * 4 + quad, site);
    const std::uint64_t last_a = __shfl_sync(~0U, high, lane / 4 * 4 + quad, site);
    for (int col = 0; col < 2; ++col) {
      const std::uint64_t of_b = __shfl_sync(~0U, all_b, (lane % 4 * 2 + col) * 4 + quad, site);
      const std::uint64_t swapped = of_b >> 32 | of_b << 32;
      acc[col] = add(add(acc[col], first_a, of_b, 0), last_a, swapped, 0);
      acc[2 + col] = add(add(acc[2 + col], first_a, swapped, 4), last_a, of_b, 4);
    }
  }
}

inline void mma_f64(double (&acc)[4], const double (&a)[8], const double (&b)[4],
                    simt::Site site = simt::Site::current()) {
  simt::executor::mma_f64(acc, a, b, site);
}

}  // namespace tilegate::device
