// Links one rung: what ../consumer.cpp links of an installed Tilegate takes long to compile.
#include <iostream>

#include <tilegate/coalesced.hpp>

using namespace tilegate;

int main() {
  const Status prepared = coalesced::stage.prepare();
  const Plan plan = coalesced::stage.plan(Problem::dense({3, 5, 7}));
  for (const Status& each : {prepared, plan.status()}) {
    if (!each.ok()) {
      std::cerr << each.message() << '\n';
      return 1;
    }
  }
  std::cout << device::current().name << ", " << plan.configuration() << '\n';
  return 0;
}
