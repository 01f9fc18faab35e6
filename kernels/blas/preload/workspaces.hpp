// Workspaces of products, for handles whose workspace is too small.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

namespace tilegate::preload {

// Returns at least so many bytes for work that is now enqueued on the stream; nullptr: out of
// memory.
//
// Calls of one stream share a buffer, which grows. A graph that is being captured gets a separate
// buffer per stream, because it may be launched at any time. That buffer is released with the graph
// and its instances.
void* get_workspace(int device, cudaStream_t stream, std::size_t bytes);

// The largest number of bytes held at a time.
std::size_t peak_of_workspaces();

}  // namespace tilegate::preload
