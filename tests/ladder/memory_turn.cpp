#include "ladder/memory_turn.hpp"

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace tilegate::ladder {

MemoryTurn::MemoryTurn() {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("tilegate-device-memory-" + std::to_string(::getuid()) + ".lock");
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  int failed = file_ < 0 ? -1 : ::flock(file_, LOCK_EX);
  while (file_ >= 0 && failed != 0 && errno == EINTR) failed = ::flock(file_, LOCK_EX);
  if (failed == 0) return;
  const std::error_code why(errno, std::generic_category());
  if (file_ >= 0) ::close(file_);
  throw std::system_error(why, "cannot lock " + path.string());
}

MemoryTurn::~MemoryTurn() { ::close(file_); }

}  // namespace tilegate::ladder
