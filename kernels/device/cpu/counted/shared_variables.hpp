// The __shared__ variables of the running launch: what belongs to them, and what to call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilegate::simt::counted {

class SharedVariables {
 public:
  // A launch with so much dynamic shared memory, and so much in all.
  void begin_launch(std::size_t dynamic_bytes, std::size_t all_bytes) {
    dynamic_bytes_ = dynamic_bytes;
    has_gaps_ = all_bytes > dynamic_bytes;
    variables_.clear();
  }
  void add(std::size_t offset, std::size_t bytes, const char* name) {
    variables_.push_back({offset, bytes, name});
  }

  // Is all of it in dynamic shared memory, or in one variable?
  bool holds(std::uint64_t offset, unsigned bytes) {
    if (!has_gaps_ || offset + bytes <= dynamic_bytes_) return true;
    const auto holds = [&](const Variable& variable) {
      return offset - variable.offset < variable.bytes &&
             offset - variable.offset + bytes <= variable.bytes;
    };
    if (last_ < variables_.size() && holds(variables_[last_])) return true;
    for (last_ = 0; last_ < variables_.size(); ++last_) {
      if (holds(variables_[last_])) return true;
    }
    return false;
  }

  // "byte 12 of As", or "byte 12 of shared memory".
  std::string name_of(std::uint64_t offset) const;
  // The same of what belongs to none: "4 bytes past the end of As".
  std::string name_outside(std::uint64_t offset) const;

 private:
  struct Variable {
    std::size_t offset, bytes;
    std::string name;
  };

  std::size_t dynamic_bytes_ = 0;
  bool has_gaps_ = false;
  std::vector<Variable> variables_;
  std::size_t last_ = 0;  // that an access hit
};

}  // namespace tilegate::simt::counted
