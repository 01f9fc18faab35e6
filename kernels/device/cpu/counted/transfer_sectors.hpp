// What a copy by the copy engine costs the memory system.
#pragma once

#include "../executor/transfers.hpp"
#include "warp_access.hpp"

namespace tilegate::simt::counted {

// Sectors of global memory, once for each row of a box and each line of 128 bytes of shared memory
// that they go to. What a load fills with zeros counts, too, by sectors of shared memory. `ideal`:
// as many sectors as hold the bytes inside the tensor.
Cost transfer_sectors(const Transfer& transfer, bool store);

}  // namespace tilegate::simt::counted
