// A catalogue of planted faults in place of the ladder's, and one rung whose variant is faulty.
#include <vector>

#include <tilegate/catalogue.hpp>

#include "verifier_faults/faults.hpp"

namespace tilegate {
namespace {

constexpr std::string_view kRungWithFaultyVariant = "RightOneThreadPerElement";

const Stage* find(std::string_view name) {
  for (const faults::PlantedFault& fault : faults::element_faults()) {
    if (fault.stage.name == name) return &fault.stage;
  }
  return nullptr;
}

Stage faulty_variant() {
  Stage stage = *find("DoesNothing");
  stage.name = "RightOneThreadPerElement.does_nothing";
  return stage;
}

}  // namespace

std::span<const CatalogueEntry> catalogue() {
  static const Stage kFaulty = faulty_variant();
  static const Stage* const kVariants[] = {&kFaulty};
  static const std::vector<CatalogueEntry> kEntries = [] {
    std::vector<CatalogueEntry> entries;
    const auto add = [&](const Stage& stage) {
      entries.push_back({&stage, {}, "", "", "", /*yardstick=*/false, /*external=*/false});
    };
    for (const faults::PlantedFault& fault : faults::element_faults()) add(fault.stage);
    for (const faults::PlantedFault& fault : faults::tile_faults()) add(fault.stage);
    for (const auto& stages :
         {faults::vector_faults(), faults::stride_faults(), faults::workspace_faults(),
          faults::rounding_faults(), faults::plan_faults()}) {
      for (const Stage& stage : stages) add(stage);
    }
    for (CatalogueEntry& entry : entries) {
      if (entry.stage->name == kRungWithFaultyVariant) entry.variants = kVariants;
    }
    return entries;
  }();
  return kEntries;
}

}  // namespace tilegate
