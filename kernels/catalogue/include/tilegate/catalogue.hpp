// Every stage of a build, with where it comes from: for the programs that test, time and count
// stages, not for those that use them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <tilegate/stage.hpp>

namespace tilegate {

struct CatalogueEntry {
  const Stage* stage;
  // Other configurations of the rung, for comparison: stages named `<Rung>.<word>`.
  std::span<const Stage* const> variants;
  std::string_view folder;   // from the root of the repository; absolute where it lies outside
  std::string_view library;  // the CMake target
  std::string_view sources;  // of `folder`, separated by spaces
  bool yardstick;            // what the ladder is measured against, no rung of it
  bool external;             // from TILEGATE_EXTRA_STAGES
};

// The ladder in its order, external rungs, the yardstick Cublas.
std::span<const CatalogueEntry> catalogue();

// Every stage of the catalogue, each followed by its variants.
std::vector<const Stage*> catalogue_stages();

// The stage or variant of that name, or nullptr.
const Stage* find_in_catalogue(std::string_view name);

}  // namespace tilegate
