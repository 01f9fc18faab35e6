// References on the device. At 8192×8192×8192 one takes longer than all of a benchmark, so they are
// kept for the rungs that follow on the same problem.
#pragma once

#include <cstdint>
#include <list>

#include <tilegate/device.hpp>
#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"

namespace tilegate::bench {

struct Reference {
  device::Buffer value, scale;  // of each element compared, a double; integers have no scale

  double* value_data() const { return reinterpret_cast<double*>(value.data()); }
  double* scale_data() const { return reinterpret_cast<double*>(scale.data()); }
};

// What is compared of product number `index`: all rows of C, but of so many products of random
// numbers that a float64 reference would take long only some, in every tile of a rung.
verifier::Product compared(const Problem& problem, verifier::Inputs inputs,
                           const Operands& operands, std::int64_t index);

class References {
 public:
  // Keeps at most `budget_bytes`, the youngest reference apart.
  explicit References(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // The reference of `problem` on operands that hold `inputs` of `seed`. Valid until the next call.
  const Reference& get(const Problem& problem, verifier::Inputs inputs, std::uint64_t seed,
                       const Operands& operands);

  void clear() { entries_.clear(); }

 private:
  struct Entry {
    Problem problem;  // without the offset, which changes no value
    verifier::Inputs inputs;
    std::uint64_t seed;
    Reference reference;

    std::size_t bytes() const { return reference.value.size() + reference.scale.size(); }
  };

  // Drops the oldest until `bytes` more are within the budget.
  void make_room(std::size_t bytes);

  std::size_t budget_bytes_;
  std::list<Entry> entries_;  // the last used first
};

}  // namespace tilegate::bench
