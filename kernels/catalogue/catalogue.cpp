#include <tilegate/catalogue.hpp>

namespace tilegate {

std::vector<const Stage*> catalogue_stages() {
  std::vector<const Stage*> stages;
  for (const CatalogueEntry& entry : catalogue()) {
    stages.push_back(entry.stage);
    stages.insert(stages.end(), entry.variants.begin(), entry.variants.end());
  }
  return stages;
}

const Stage* find_in_catalogue(std::string_view name) {
  for (const Stage* stage : catalogue_stages()) {
    if (stage->name == name) return stage;
  }
  return nullptr;
}

}  // namespace tilegate
