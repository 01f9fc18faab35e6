#include <tilegate/stage.hpp>

#if defined(CUDART_VERSION) || defined(__CUDACC__)
#error "the public headers pull in CUDA"
#endif

#include <cstdint>
#include <type_traits>

static_assert(std::is_same_v<decltype(tilegate::Shape::m), std::int64_t>);
static_assert(std::is_trivially_copyable_v<tilegate::KernelArgs>, "kernels take it by value");
static_assert(std::is_pointer_v<tilegate::Stream>);
