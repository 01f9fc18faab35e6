// What the plans of both kinds of products share: costs and places in the workspace.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/cost_model.hpp>

namespace tilegate::distributed {

constexpr std::size_t kAlignment = 256;  // of parts of the workspace

// Of an exchange between two H200 over NVLink: assumptions, which no committed run backs.
constexpr double kExchangeSeconds = 45e-6, kExchangeBandwidth = 255e9;  // bytes per second

inline double exchange_seconds(std::size_t bytes) {
  return bytes == 0 ? 0.0 : kExchangeSeconds + static_cast<double>(bytes) / kExchangeBandwidth;
}

// Of a kernel that reads and writes so many bytes.
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

// What an address past an aligned one by so many bytes promises, for Problem::offset_bytes.
inline std::int64_t offset_of(std::int64_t bytes) {
  return bytes % static_cast<std::int64_t>(kAlignment);
}

}  // namespace tilegate::distributed
