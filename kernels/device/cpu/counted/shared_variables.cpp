#include "shared_variables.hpp"

#include "../executor/executor_impl.hpp"

namespace tilegate::simt::counted {

std::string SharedVariables::name_of(std::uint64_t offset) const {
  for (const Variable& variable : variables_) {
    if (offset - variable.offset < variable.bytes) {
      return "byte " + std::to_string(offset - variable.offset) + " of " + variable.name;
    }
  }
  return "byte " + std::to_string(offset) + " of shared memory";
}

std::string SharedVariables::name_outside(std::uint64_t offset) const {
  std::size_t end = dynamic_bytes_;
  std::string name = "dynamic shared memory";
  for (const Variable& variable : variables_) {
    if (offset < variable.offset) {
      const std::size_t before = variable.offset - offset;
      if (before > kSharedGap / 2) break;
      return std::to_string(before) + " bytes before " + variable.name;
    }
    end = variable.offset + variable.bytes;
    name = variable.name;
  }
  return std::to_string(offset - end) + " bytes past the end of " + name;
}

}  // namespace tilegate::simt::counted
