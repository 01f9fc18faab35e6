// Random cases of asynchronous hardware, by number; see cases.cu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tilegate/device.hpp>

namespace tilegate::async_model {

constexpr std::uint32_t kSourceWords = 1U << 16;  // that bulk copies read

// Fills what copies read, of kSourceWords words.
Status fill_source(const device::Buffer& source);

// Cases first, first + 1, …: as many as there are checksums, which must be 0.
Status run_copies(std::uint32_t first, std::vector<std::uint32_t>* checksums);
Status run_boxes(std::uint32_t first, std::vector<std::uint32_t>* checksums);
Status run_stores(std::uint32_t first, std::vector<std::uint32_t>* checksums);
Status run_multicasts(std::uint32_t first, std::vector<std::uint32_t>* checksums);
template <int kN>
Status run_multiplications(std::uint32_t first, std::vector<std::uint32_t>* checksums);
enum class FloatType { kF16, kBf16, kTf32 };
// Transposed: of a, of b, or of both the lines lie along the rows.
template <FloatType kType, int kN, bool kTransposed = false>
Status run_float_multiplications(std::uint32_t first, std::vector<std::uint32_t>* checksums);

struct Kind {
  const char* name;
  Status (*run)(std::uint32_t first, std::vector<std::uint32_t>* checksums);
};
std::span<const Kind> kinds();

// One checksum of each `group` cases.
std::vector<std::uint32_t> of_groups(const std::vector<std::uint32_t>& checksums,
                                     std::size_t group);

}  // namespace tilegate::async_model
