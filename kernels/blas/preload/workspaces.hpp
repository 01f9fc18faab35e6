// Device memory that products need beside their operands, where the handle's own is too small.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

namespace tilegate::preload {

// At least so many bytes for the work that is now enqueued on a stream of the device, or nullptr:
// there is no room.
//
// Calls of one stream share a buffer, which grows. A graph that is being captured gets a buffer of
// its own per stream, as it may be launched at any time, beside anything; that one is given up with
// the graph and all that was instantiated from it.
void* get_workspace(int device, cudaStream_t stream, std::size_t bytes);

// The most bytes that were held at a time.
std::size_t peak_of_workspaces();

}  // namespace tilegate::preload
