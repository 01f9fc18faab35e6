// Shared by the plans in FP32 and in digits: costs, and offsets in the workspace.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/cost_model.hpp>

namespace tilegate::distributed {

constexpr std::size_t kAlignment = 256;  // of parts of the workspace

// Costs of an exchange by copy engines between two H200 over NVLink, measured: see the page.
constexpr double kExchangeSeconds = 17.5e-6, kExchangeBandwidth = 388e9;  // bytes per second

// Row-parallel, sums in FP32: from there on the multiplication of other ranks' rows goes first. See
// the page.
constexpr double kLongExchange = 75e-6;

inline double exchange_seconds(std::size_t bytes) {
  return bytes == 0 ? 0.0 : kExchangeSeconds + static_cast<double>(bytes) / kExchangeBandwidth;
}

// Expected time of a kernel that reads and writes so many bytes.
inline double stream_seconds(std::size_t read, std::size_t written) {
  return static_cast<double>(read) / cost::kReadBandwidth +
         static_cast<double>(written) / cost::kWriteBandwidth;
}

inline std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

inline std::size_t bytes_of(std::int64_t elements) {
  return static_cast<std::size_t>(elements) * sizeof(float);
}

// Problem::offset_bytes of an address that is so many bytes beyond an aligned one.
inline std::int64_t offset_of(std::int64_t bytes) {
  return bytes % static_cast<std::int64_t>(kAlignment);
}

}  // namespace tilegate::distributed
