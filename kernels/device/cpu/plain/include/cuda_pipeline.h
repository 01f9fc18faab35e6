// Primitives of cp.async.
#pragma once
#include <tilegate/device/cpu/plain.hpp>

TILEGATE_INLINE void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes,
                                             std::size_t zeros = 0) {
  tilegate::plain::copy_piece(to, from, bytes, zeros == bytes);
}
inline void __pipeline_commit() { tilegate::device::copy_async_commit(); }
inline void __pipeline_wait_prior(int groups) { tilegate::simt::executor::copy_async_wait(groups); }
