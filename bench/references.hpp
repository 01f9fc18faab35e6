// References on the device. At 8192×8192×8192 a reference takes longer than a whole benchmark, so
// it is cached for the next rungs on the same problem.
#pragma once

#include <cstdint>
#include <list>

#include <tilegate/device.hpp>
#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"

namespace tilegate::bench {

struct Reference {
  device::Buffer value, scale;  // doubles, one per compared element; integers have no scale

  double* value_data() const { return reinterpret_cast<double*>(value.data()); }
  double* scale_data() const { return reinterpret_cast<double*>(scale.data()); }
};

// The part of matrix `index` that is compared: all rows of C, or, if a float64 reference would take
// long, some rows in every tile of a rung.
verifier::Product compared(const Problem& problem, verifier::Inputs inputs,
                           const Operands& operands, std::int64_t index);

class References {
 public:
  // Caches at most `budget_bytes`, not counting the latest reference.
  explicit References(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // The reference of `problem` for operands with `inputs` of `seed`. Valid until the next call.
  const Reference& get(const Problem& problem, verifier::Inputs inputs, std::uint64_t seed,
                       const Operands& operands);

  void clear() { entries_.clear(); }

 private:
  struct Entry {
    Problem problem;  // without offsets, which change no values
    verifier::Inputs inputs;
    std::uint64_t seed;
    Reference reference;

    std::size_t bytes() const { return reference.value.size() + reference.scale.size(); }
  };

  // Drops the oldest references until `bytes` more fit into the budget.
  void make_room(std::size_t bytes);

  std::size_t budget_bytes_;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace tilegate::bench
