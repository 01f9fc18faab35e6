// What the fake libraries let a test see and set.
#pragma once

extern "C" {
// Products that the fake cuBLAS has computed, all functions together.
int fake_products();
// Its version from now on, as cublasGetVersion says.
void fake_set_version(int version);
// Begins a capture of every stream into a graph of its own, for the fake CUDA runtime; ends it.
void fake_begin_capture();
void fake_end_capture();
// The open capture is no longer valid, as after a call that it forbids.
void fake_invalidate_capture();
// Destroys all graphs that were captured.
void fake_destroy_graphs();
// Blocks of device memory that are not freed.
int fake_blocks();
// Allocations that succeed from now on; then there is no room.
void fake_set_room(int allocations);
}
