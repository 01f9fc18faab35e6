// The __shared__ variables of the running launch: their bounds and names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilegate::simt::counted {

class SharedVariables {
 public:
  // A launch with this much dynamic shared memory, and this much shared memory in all.
  void begin_launch(std::size_t dynamic_bytes, std::size_t all_bytes) {
    dynamic_bytes_ = dynamic_bytes;
    has_gaps_ = all_bytes > dynamic_bytes;
    variables_.clear();
  }
  void add(std::size_t offset, std::size_t bytes, const char* name) {
    variables_.push_back({offset, bytes, name});
  }

  // Whether all bytes are in dynamic shared memory, or all in one variable.
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
  // The same for bytes outside of all variables: "4 bytes past the end of As".
  std::string name_outside(std::uint64_t offset) const;

 private:
  struct Variable {
    std::size_t offset, bytes;
    std::string name;
  };

  std::size_t dynamic_bytes_ = 0;
  bool has_gaps_ = false;
  std::vector<Variable> variables_;
  std::size_t last_ = 0;  // the last variable accessed
};

}  // namespace tilegate::simt::counted
