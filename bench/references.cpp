#include "references.hpp"

#include <algorithm>
#include <new>

#include "errors.hpp"
#include "platform.hpp"

namespace tilegate::bench {
namespace {

Reference allocate(std::size_t bytes) { return {device::Buffer(bytes), device::Buffer(bytes)}; }

}  // namespace

const Reference& References::get(const Problem& problem, verifier::Inputs inputs,
                                 std::uint64_t seed, const Operands& operands) {
  Problem key = problem;
  key.offset_bytes = {};
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.problem == key && entry.inputs == inputs && entry.seed == seed;
  });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front().reference;
  }

  const std::int64_t elements = key.shape.m * key.shape.n;
  const auto bytes = static_cast<std::size_t>(elements * key.batch) * sizeof(double);
  make_room(2 * bytes);
  Reference reference;
  try {
    reference = allocate(bytes);
  } catch (const std::bad_alloc&) {
    clear();
    reference = allocate(bytes);
  }
  for (std::int64_t index = 0; index < key.batch; ++index) {
    check(verifier::reference_on_device(
        verifier::product_of(problem, operands, index),
        reinterpret_cast<double*>(reference.value.data()) + index * elements,
        reinterpret_cast<double*>(reference.scale.data()) + index * elements, stream()));
  }
  check(device::synchronize());
  entries_.push_front({key, inputs, seed, std::move(reference)});
  return entries_.front().reference;
}

void References::make_room(std::size_t bytes) {
  std::size_t total = bytes;
  for (const Entry& entry : entries_) total += entry.bytes();
  while (!entries_.empty() && total > budget_bytes_) {
    total -= entries_.back().bytes();
    entries_.pop_back();
  }
}

}  // namespace tilegate::bench
