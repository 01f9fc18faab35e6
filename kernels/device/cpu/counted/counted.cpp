#include "counted.h"

#include <string>

#include "count.hpp"

namespace {

using namespace tilegate::simt::counted;

struct Named {
  Kind kind;
  const char* requests;
  const char* units;
  const char* excess;
};
constexpr Named kNames[] = {
    {Kind::kGlobalLoad, "global_load.requests", "global_load.sectors",
     "global_load.excess_sectors"},
    {Kind::kGlobalStore, "global_store.requests", "global_store.sectors",
     "global_store.excess_sectors"},
    {Kind::kSharedLoad, "shared_load.requests", "shared_load.wavefronts", "shared_load.conflicts"},
    {Kind::kSharedStore, "shared_store.requests", "shared_store.wavefronts",
     "shared_store.conflicts"},
    {Kind::kSharedCopy, "shared_copy.requests", "shared_copy.wavefronts", "shared_copy.conflicts"},
    {Kind::kBulkLoad, "bulk_load.requests", "bulk_load.sectors", "bulk_load.excess_sectors"},
    {Kind::kBulkStore, "bulk_store.requests", "bulk_store.sectors", "bulk_store.excess_sectors"},
    {Kind::kSharedMultiply, "shared_multiply.requests", "shared_multiply.wavefronts",
     "shared_multiply.conflicts"},
    {Kind::kGlobalAtomic, "global_atomic.requests", "global_atomic.sectors",
     "global_atomic.excess_sectors"},
    {Kind::kSharedAtomic, "shared_atomic.requests", "shared_atomic.wavefronts",
     "shared_atomic.conflicts"},
};

}  // namespace

const char* tilegate_count_case(const char* name,
                                void (*visit)(void* context, const char* counter, double value),
                                void* context) {
  static std::string error;
  const Outcome outcome = count(std::string(name));
  if (!outcome.status.ok()) {
    error = std::string(name) + ": " + outcome.status.message();
    return error.c_str();
  }
  const Counters& counters = outcome.counters;
  for (const Named& named : kNames) {
    if (!counters.names(named.kind)) continue;
    const Traffic& traffic = counters.of(named.kind);
    visit(context, named.requests, static_cast<double>(traffic.requests));
    visit(context, named.units, static_cast<double>(traffic.units));
    visit(context, named.excess, static_cast<double>(traffic.excess));
  }
  visit(context, "barriers", static_cast<double>(counters.barriers));
  visit(context, "fma", static_cast<double>(counters.fma));
  return nullptr;
}
