// cuBLAS's own functions, which this preload's functions of the same names hide.
#pragma once

#include <atomic>

namespace tilegate::preload {

// The function `name` of the library that the program has loaded, or nullptr. Does not call our
// dlsym.
void* find_real(const char* name);

// A cuBLAS function, looked up by name at the first call.
template <typename Function>
class Real {
 public:
  explicit constexpr Real(const char* name) : name_(name) {}

  Function* get() {
    void* found = function_.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = find_real(name_);
      function_.store(found, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  std::atomic<void*> function_{nullptr};
};

}  // namespace tilegate::preload
