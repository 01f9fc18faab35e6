// Faults of a kernel. The first one ends the launch; its message names kernel, block and thread.
#include <string>
#include <utility>

#include <tilegate/device/cpu/device.hpp>

#include "executor_impl.hpp"

namespace tilegate::simt {

std::string to_string(const Index3& i) {
  return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

std::string to_string(const Site& site) {
  return std::string(site.file_name()) + ":" + std::to_string(site.line());
}

void Executor::record_fault(const std::string& what) {
  if (fault_) return;
  const bool is_line = config_.blocks_y == 1 && config_.blocks_z == 1;
  fault_ = std::string(config_.kernel) + ": block " +
           (is_line ? std::to_string(block_of(*current_)) : to_string(blockIdx)) + ", thread " +
           to_string(current_->index) + ": " + what;
}

void Executor::fail(const std::string& what) {
  record_fault(what);
  throw ThreadFault{};
}

void Executor::report(unsigned number, const std::string& what) {
  Thread* const running = std::exchange(current_, threads_[number].get());
  record_fault(what);
  current_ = running;
}

}  // namespace tilegate::simt
