// The public API of Tilegate: single-precision matrix multiplication, one Stage a ladder rung.
//
//   C ← alpha·A·B + beta·C, row-major: A is M×K, B is K×N, C is M×N, float32.
//
// The header needs no CUDA: streams are forward-declared and sizes are 64-bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct CUstream_st;

namespace tilegate {

// A cudaStream_t; nullptr is the default stream. The CPU device ignores it and runs synchronously.
using Stream = CUstream_st*;

// Extents of one product, in elements; each is >= 0.
struct Shape {
  std::int64_t m = 0;  // rows of A and C
  std::int64_t n = 0;  // columns of B and C
  std::int64_t k = 0;  // columns of A, rows of B

  friend bool operator==(const Shape&, const Shape&) = default;
};

// One call. Pointers are device pointers, 4-byte aligned; leading dimensions count elements.
struct SgemmArgs {
  Shape shape;
  float alpha = 1.0F;
  const float* a = nullptr;  // (m, k), row stride lda >= k; not read when alpha == 0
  std::int64_t lda = 0;
  const float* b = nullptr;  // (k, n), row stride ldb >= n; not read when alpha == 0
  std::int64_t ldb = 0;
  float beta = 0.0F;
  float* c = nullptr;  // (m, n), row stride ldc >= n; not read when beta == 0
  std::int64_t ldc = 0;
  void* workspace = nullptr;        // 16-byte aligned device memory, contents free to change
  std::size_t workspace_bytes = 0;  // at least Stage::workspace_bytes(shape)
};

// The outcome of a call: success, or what is wrong in words. A failed call has not touched C,
// except for `kDeviceError`, which the device raised while it ran.
class [[nodiscard]] Status {
 public:
  enum class Code {
    kOk,
    kInvalidArgument,  // `argument()` names the field of SgemmArgs
    kUnsupported,      // valid, but this stage or this device cannot do it
    kDeviceError,      // CUDA or the SIMT executor reported an error
  };

  Status() = default;
  static Status invalid_argument(std::string argument, std::string message) {
    return {Code::kInvalidArgument, std::move(argument), std::move(message)};
  }
  static Status unsupported(std::string message) {
    return {Code::kUnsupported, {}, std::move(message)};
  }
  static Status device_error(std::string message) {
    return {Code::kDeviceError, {}, std::move(message)};
  }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& argument() const { return argument_; }
  const std::string& message() const { return message_; }

 private:
  Status(Code code, std::string argument, std::string message)
      : code_(code), argument_(std::move(argument)), message_(std::move(message)) {}

  Code code_ = Code::kOk;
  std::string argument_;
  std::string message_;
};

// What a stage needs from the device that runs it.
struct Requirements {
  int compute_capability = 70;   // least CUDA compute capability, 10·major + minor
  std::string_view not_on_simt;  // why the CPU device cannot run it; empty: it can
};

// One rung of the ladder: a descriptor that the rung's own file defines. Callers use the member
// functions; the function pointers are the rung's half and may assume validated arguments.
struct Stage {
  std::string_view name;  // "Warptile": how tests, benchmarks and baselines call the rung
  std::string_view idea;  // one line: what this rung adds
  Requirements requirements = {};

  // Extents of the rung's tiles at every level, in elements: where its edge cases are.
  std::span<const std::int64_t> tile_sizes;

  // Length of the longest chain of roundings that an element of C goes through; the forward error
  // bound of the tests is γ(rounding_chain(shape)).
  std::int64_t (*rounding_chain)(const Shape& shape);

  // Bytes of SgemmArgs::workspace that a call needs; nullptr: none.
  std::size_t (*workspace)(const Shape& shape) = nullptr;

  // The rung's own restrictions, beyond what every stage checks; nullptr: none.
  Status (*restrictions)(const SgemmArgs& args) = nullptr;

  // One-time work on the current device: attributes, handles; nullptr: none.
  Status (*setup)() = nullptr;

  // Enqueues the kernels. M, N > 0; alpha == 0 arrives as K == 0 and K == 0 as alpha == 0.
  Status (*enqueue)(const SgemmArgs& args, Stream stream);

  // Other configurations of the same rung, for comparison: stages named `<Rung>.<word>`, complete
  // in themselves. find_stage() knows them; stages() does not list them.
  std::span<const Stage* const> variants = {};

  // Bytes of device workspace for `shape`; 0 for most stages.
  std::size_t workspace_bytes(const Shape& shape) const;

  // Ok if `launch(args)` can run; otherwise which argument is at fault, or what is missing:
  // negative sizes, short leading dimensions, null or misaligned pointers, extents past the address
  // space, C overlapping A or B, too little workspace, a device below `requirements`.
  Status supports(const SgemmArgs& args) const;

  // Once per device before the first launch; may be called again.
  Status prepare() const;

  // Checks `args` as `supports` does and enqueues the work on `stream`. Never prints, exits,
  // allocates device memory or synchronises. M == 0 or N == 0 does nothing.
  Status launch(const SgemmArgs& args, Stream stream = nullptr) const;
};

// Every stage of this build, in ladder order; the yardstick `Cublas` comes last.
std::span<const Stage* const> stages();

// The stage of that name, variants included, or nullptr.
const Stage* find_stage(std::string_view name);

}  // namespace tilegate
