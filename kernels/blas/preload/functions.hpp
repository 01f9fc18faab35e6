// The functions of cuBLAS that the preload takes over.
#pragma once

namespace tilegate::preload {

// Ours of that name, or nullptr.
void* own_function(const char* name);

}  // namespace tilegate::preload
