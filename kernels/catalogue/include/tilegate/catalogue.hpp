// Every stage of a build, with its folder and sources. For programs that test, time and count
// stages.
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
  std::string_view folder;   // relative to the repository; absolute for a folder outside it
  std::string_view library;  // the CMake target
  std::string_view sources;  // of `folder`, separated by spaces
  bool yardstick;            // reference of the ladder, not a rung
  bool external;             // from TILEGATE_EXTRA_STAGES
  // CMake targets of the stages whose kernels it launches too, separated by spaces.
  std::string_view chooses_from = {};
};

// The ladder in order, then external rungs, then the yardstick Cublas.
std::span<const CatalogueEntry> catalogue();

// Every stage of the catalogue, each followed by its variants.
std::vector<const Stage*> catalogue_stages();

// The stage or variant of that name, or nullptr.
const Stage* find_in_catalogue(std::string_view name);

}  // namespace tilegate
