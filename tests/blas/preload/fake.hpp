// What the fake libraries let a test see and set.
#pragma once

extern "C" {
// Products that the fake cuBLAS has computed, all functions together.
int fake_products();
// Its version from now on, as cublasGetVersion says.
void fake_set_version(int version);
// Whether every stream is capturing, for the fake CUDA runtime.
void fake_set_capturing(int capturing);
// Allocations that succeed from now on; then there is no room.
void fake_set_room(int allocations);
}
