// Finds cuBLAS's own functions, and returns ours to programs that look one up by dlsym.
//
// The dynamic linker searches preloaded libraries before the linked ones: it finds our
// functions first, and RTLD_NEXT finds cuBLAS's. Libraries of Python extensions are not in that
// search order: there cuBLAS is found among the loaded objects by its file name. A program that
// opens cuBLAS itself calls dlsym with a handle; so dlsym is replaced, too.
#include "real.hpp"

#include <cstring>
#include <string>

#include <dlfcn.h>
#include <link.h>

#include "functions.hpp"

namespace tilegate::preload {
namespace {

using Dlsym = void*(void*, const char*);

Dlsym* real_dlsym() {
  static Dlsym* const kFound = [] {
    void* found = nullptr;
    for (const char* version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
      if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", version);
    }
    return reinterpret_cast<Dlsym*>(found);
  }();
  return kFound;
}

bool is_cublas(const char* path) {
  const char* slash = std::strrchr(path, '/');
  const char* file = slash == nullptr ? path : slash + 1;
  return std::strncmp(file, "libcublas.so", 12) == 0 ||
         std::strncmp(file, "libcublasLt.so", 14) == 0;
}

}  // namespace

void* find_real(const char* name) {
  if (void* found = real_dlsym()(RTLD_NEXT, name); found != nullptr) return found;
  struct Search {
    const char* name;
    void* found;
  } search{name, nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        if (!is_cublas(object->dlpi_name)) return 0;
        void* handle = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        if (handle == nullptr) return 0;
        wanted.found = real_dlsym()(handle, wanted.name);
        dlclose(handle);
        return wanted.found == nullptr ? 0 : 1;
      },
      &search);
  return search.found;
}

// Ends in a tail call, as dlsym(RTLD_NEXT, …) depends on its return address.
extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  if (handle != RTLD_NEXT && handle != RTLD_DEFAULT && std::strncmp(name, "cublas", 6) == 0) {
    void* const ours = own_function(name);
    if (ours != nullptr && real_dlsym()(handle, name) != nullptr) return ours;
  }
  return real_dlsym()(handle, name);
}

}  // namespace tilegate::preload
