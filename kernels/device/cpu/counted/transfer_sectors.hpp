// Memory cost of a transfer by the copy engine.
#pragma once

#include "../executor/transfers.hpp"
#include "warp_access.hpp"

namespace tilegate::simt::counted {

// Sectors of global memory. A sector counts again for each row of a box and each 128-byte line of
// shared memory that it goes to. Zero fill of a load counts too, by sectors of shared memory.
// `ideal`: the fewest sectors that hold the bytes inside the tensor.
Cost transfer_sectors(const Transfer& transfer, bool store);

}  // namespace tilegate::simt::counted
