// The cuBLAS functions that the preload replaces.
#pragma once

namespace tilegate::preload {

// Our function of that name, or nullptr.
void* own_function(const char* name);

}  // namespace tilegate::preload
