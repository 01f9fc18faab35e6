// Cache of Sgemm's plans, by problem, workspace limit and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>

#include <tilegate/sgemm.hpp>

namespace tilegate {

// Not thread-safe.
class PlanCache {
 public:
  // The plan of the problem on the current device, new or cached. Valid until the next call.
  const Plan& find(const Problem& problem, std::size_t workspace_limit) {
    return find(problem, workspace_limit,
                [&] { return sgemm::stage.plan(problem, device::current(), {}, workspace_limit); });
  }

  // The same of other plans than Sgemm's; `make` makes a new one.
  template <typename Make>
  const Plan& find(const Problem& problem, std::size_t workspace_limit, Make make) {
    const Key key{problem, workspace_limit, device::current().ordinal};
    if (const auto kept = plans_.find(key); kept != plans_.end()) return kept->second;
    if (plans_.size() >= kMostPlans) plans_.clear();
    return plans_.emplace(key, make()).first->second;
  }

  // Call once per device before the first launch there; may be called again.
  Status prepare() {
    const int device = device::current().ordinal;
    if (prepared_.contains(device)) return {};
    if (Status s = sgemm::stage.prepare(); !s.ok()) return s;
    prepared_.insert(device);
    return {};
  }

 private:
  static constexpr std::size_t kMostPlans = 4096;

  struct Key {
    Problem problem;
    std::size_t workspace_limit;
    int device;

    friend bool operator==(const Key&, const Key&) = default;
  };

  struct Hash {
    std::size_t operator()(const Key& key) const {
      const Problem& p = key.problem;
      auto hash = static_cast<std::size_t>(key.device);
      const auto add = [&](auto value) {
        hash = (hash ^ std::hash<decltype(value)>()(value)) * 0x9E3779B97F4A7C15U;
        hash ^= hash >> 32;
      };
      for (const std::int64_t value :
           {p.shape.m, p.shape.n, p.shape.k, p.lda, p.ldb, p.ldc, p.batch, p.stride_a, p.stride_b,
            p.stride_c, p.offset_bytes[0], p.offset_bytes[1], p.offset_bytes[2]}) {
        add(value);
      }
      add(p.alpha);
      add(p.beta);
      add(key.workspace_limit);
      add((static_cast<int>(p.op_a) * 2 + static_cast<int>(p.op_b)) * 2 + static_cast<int>(p.math));
      return hash;
    }
  };

  std::unordered_map<Key, Plan, Hash> plans_;
  std::set<int> prepared_;
};

// Offset of a pointer from a 16-byte boundary, the alignment of the widest access.
inline std::int64_t offset_of(const float* pointer) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(pointer) % 16);
}

}  // namespace tilegate
