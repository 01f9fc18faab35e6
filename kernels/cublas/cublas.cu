#include <tilegate/sgemm.hpp>
namespace tilegate::cublas {
extern const Stage stage;
constexpr std::int64_t kTileSizes[] = {128};
const Stage stage{.name = "Cublas",
                  .idea = "x",
                  .requirements = {.not_on_simt = "cuBLAS needs a CUDA GPU"},
                  .tile_sizes = kTileSizes,
                  .rounding_chain = nullptr,
                  .enqueue = nullptr};
}  // namespace tilegate::cublas
