#include "cases.hpp"

namespace tilegate::async_model {
namespace {

constexpr Kind kKinds[] = {
    {"copies", run_copies},
    {"boxes", run_boxes},
    {"stores", run_stores},
    {"multicasts", run_multicasts},
    {"s8_n64", run_multiplications<64>},
    {"s8_n128", run_multiplications<128>},
    {"f16_n64", run_float_multiplications<FloatType::kF16, 64>},
    {"f16_n128", run_float_multiplications<FloatType::kF16, 128>},
    {"bf16_n64", run_float_multiplications<FloatType::kBf16, 64>},
    {"bf16_n128", run_float_multiplications<FloatType::kBf16, 128>},
    {"tf32_n64", run_float_multiplications<FloatType::kTf32, 64>},
    {"tf32_n128", run_float_multiplications<FloatType::kTf32, 128>},
    {"f16_mn_n64", run_float_multiplications<FloatType::kF16, 64, true>},
    {"f16_mn_n128", run_float_multiplications<FloatType::kF16, 128, true>},
    {"bf16_mn_n64", run_float_multiplications<FloatType::kBf16, 64, true>},
    {"bf16_mn_n128", run_float_multiplications<FloatType::kBf16, 128, true>},
};

}  // namespace

std::span<const Kind> kinds() { return kKinds; }

std::vector<std::uint32_t> of_groups(const std::vector<std::uint32_t>& checksums,
                                     std::size_t group) {
  std::vector<std::uint32_t> groups((checksums.size() + group - 1) / group);
  for (std::size_t i = 0; i < checksums.size(); ++i) {
    std::uint32_t& sum = groups[i / group];
    sum = (sum ^ checksums[i]) * 0x01000193U;  // depends on the order, too
  }
  return groups;
}

}  // namespace tilegate::async_model
