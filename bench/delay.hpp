// A pause of known length on the device, to plant a slow-down of known size.
#pragma once

#include <tilegate/stage.hpp>

namespace tilegate::bench {

// Enqueues a kernel that keeps the device for so many clock cycles and uses nothing else of it.
// Throws Failure.
void enqueue_spin(long long cycles, Stream stream);

}  // namespace tilegate::bench
