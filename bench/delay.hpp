// A delay of known length on the device, to inject a slow-down of known size.
#pragma once

#include <tilegate/stage.hpp>

namespace tilegate::bench {

// Enqueues a kernel that spins for so many clock cycles and uses no memory.
// Throws Failure.
void enqueue_spin(long long cycles, Stream stream);

}  // namespace tilegate::bench
