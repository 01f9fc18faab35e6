// make_passport STAGE...: the numerical passports of these stages on this build's device, as JSON.
// make_passport --shapes=COUNT STAGE: that many random shapes of a stage whose results must be
// exact.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include <tilegate/catalogue.hpp>
#include <tilegate/device.hpp>

#include "call.hpp"

namespace {

using namespace tilegate;

std::string passport_of(const Stage& stage) {
  return passport::Object()
      .add("error", passport::error_json(stage))
      .add("invariance", passport::invariance_json(stage))
      .add("special", passport::special_json(stage))
      .add("sum", passport::tree_json(stage))
      .json();
}

}  // namespace

int main(int argc, char** argv) try {
  constexpr std::string_view kShapes = "--shapes=";
  int num_shapes = 0;
  passport::Object stages;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.substr(0, kShapes.size()) == kShapes) {
      num_shapes = std::atoi(argv[i] + kShapes.size());
      continue;
    }
    const Stage* stage = find_in_catalogue(word);
    if (stage == nullptr) {
      std::cerr << "make_passport: there is no stage " << word << "; stages.json lists them\n";
      return 2;
    }
    stages.add(argv[i],
               num_shapes > 0 ? passport::yardstick_json(*stage, num_shapes) : passport_of(*stage));
  }
  std::cout << passport::Object()
                   .add_text("device", device::current().name)
                   .add("stages", stages.json())
                   .json()
            << '\n';
  return 0;
} catch (const std::exception& problem) {
  std::cerr << "make_passport: " << problem.what() << '\n';
  return 1;
}
