// Random cases of asynchronous hardware, by number; see cases.cu.
#pragma once

#include <cstdint>
#include <vector>

#include <tilegate/device.hpp>

namespace tilegate::async_model {

constexpr std::uint32_t kSourceWords = 1U << 16;  // that bulk copies read

// Fills what copies read, of kSourceWords words.
Status fill_source(const device::Buffer& source);

// Cases first, first + 1, …: as many as there are checksums, which must be 0.
Status run_copies(std::uint32_t first, std::vector<std::uint32_t>* checksums);
Status run_boxes(std::uint32_t first, std::vector<std::uint32_t>* checksums);
template <int kN>
Status run_multiplications(std::uint32_t first, std::vector<std::uint32_t>* checksums);
enum class FloatType { kF16, kBf16, kTf32 };
template <FloatType kType, int kN>
Status run_float_multiplications(std::uint32_t first, std::vector<std::uint32_t>* checksums);

}  // namespace tilegate::async_model
