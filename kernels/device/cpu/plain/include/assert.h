// A failed assertion ends the launch.
#include_next <assert.h>

#include <tilegate/device/cpu/plain.hpp>
#if !defined(NDEBUG)
#undef assert
#define assert(condition) \
  ((condition) ? (void)0  \
               : ::tilegate::simt::executor::fail_assertion(#condition, __FILE__, __LINE__))
#endif
