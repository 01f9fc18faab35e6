// tilegate::matmul's kernel on libtorch's stable ABI: one build serves PyTorch 2.10 and later.
// tilegate/_torch.py defines the operator, its gradient and its fake kernel.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <dlfcn.h>
#include <tilegate.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

using torch::stable::Tensor;
using torch::stable::accelerator::DeviceGuard;

namespace {

#ifdef TILEGATE_TORCH_CUDA
constexpr bool kIsCuda = true;
#else
constexpr bool kIsCuda = false;
#endif

const std::size_t* workspace_limit = nullptr;

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message); }

// A thread's handle.
class Handle {
 public:
  Handle() {
    if (tilegate_create(&handle_) != TILEGATE_SUCCESS) fail("no handle could be made");
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { tilegate_destroy(handle_); }

  template <typename... Parameters, typename... Arguments>
  void call(tilegate_status (*function)(tilegate_handle, Parameters...), Arguments... arguments) {
    const tilegate_status status = function(handle_, arguments...);
    if (status == TILEGATE_SUCCESS) return;
    const std::string message = tilegate_message(handle_);
    fail(message.empty() ? tilegate_status_string(status) : message);
  }

 private:
  tilegate_handle handle_ = nullptr;
};

struct Matrix {
  Tensor tensor;
  tilegate_op op;
  std::int64_t ld, stride;

  const float* data() const { return static_cast<const float*>(tensor.const_data_ptr()); }
};

// Row-major, transposed, or a copy.
Matrix matrix_of(const Tensor& tensor) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  const std::size_t row = sizes.size() - 2, col = row + 1;
  const std::int64_t stride = row == 1 ? strides[0] : 0;
  for (const auto& [op, along, across] :
       {std::tuple{TILEGATE_NO_TRANS, col, row}, std::tuple{TILEGATE_TRANS, row, col}}) {
    const std::int64_t width = sizes[along], lines = sizes[across], ld = strides[across];
    if ((strides[along] == 1 || width <= 1) && (ld >= width || lines <= 1)) {
      return {tensor, op, lines > 1 ? ld : width, stride};
    }
  }
  return matrix_of(torch::stable::contiguous(tensor));
}

Tensor empty(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
             std::int32_t dtype, const Tensor& like) {
  std::int32_t device_type = 0;
  AtenTensorHandle result = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device_type));
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()),
                                                  sizes.data(), strides.data(), dtype, device_type,
                                                  like.get_device_index(), &result));
  return Tensor(result);
}

// From libtorch_cuda.so, which this library does not link: PyTorch for the CPU has none.
[[maybe_unused]] CUstream_st* current_stream(std::int32_t device) {
  static const auto function = reinterpret_cast<AOTITorchError (*)(std::int32_t, void**)>(dlsym(
      dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD), "aoti_torch_get_current_cuda_stream"));
  void* stream = nullptr;
  if (function == nullptr) fail("PyTorch was built without CUDA");
  TORCH_ERROR_CODE_CHECK(function(device, &stream));
  return static_cast<CUstream_st*>(stream);
}

void check(const Tensor& a, const Tensor& b) {
  for (const Tensor& tensor : {a, b}) {
    if (tensor.dim() != 2 && tensor.dim() != 3) fail("an operand is neither a matrix nor a batch");
    if (tensor.scalar_type() != torch::headeronly::ScalarType::Float)
      fail("an operand is not FP32");
  }
  if (a.size(-1) != b.size(-2) || (a.dim() == 3 && b.dim() == 3 && a.size(0) != b.size(0))) {
    fail("the shapes do not fit");
  }
  if (a.is_cuda() != b.is_cuda() || a.get_device_index() != b.get_device_index()) {
    fail("the operands are on different devices");
  }
}

Tensor multiply(const Tensor& a, const Tensor& b, tilegate_math math) {
  check(a, b);
  const std::int32_t device = a.get_device_index();
  std::optional<DeviceGuard> guard;
  CUstream_st* stream = nullptr;
  if constexpr (kIsCuda) {
    if (torch::stable::accelerator::getCurrentDeviceIndex() != device) guard.emplace(device);
    stream = current_stream(device);
  }
  const bool is_batch = a.dim() == 3 || b.dim() == 3;
  const std::int64_t m = a.size(-2), n = b.size(-1), k = a.size(-1);
  const std::int64_t batch = a.dim() == 3 ? a.size(0) : b.dim() == 3 ? b.size(0) : 1;
  const std::array<std::int64_t, 3> sizes{batch, m, n};
  const std::int64_t row = std::max<std::int64_t>(n, 1);
  const std::array<std::int64_t, 3> strides{std::max<std::int64_t>(m, 1) * row, row, 1};
  const Tensor c =
      empty(std::span(sizes).subspan(is_batch ? 0 : 1),
            std::span(strides).subspan(is_batch ? 0 : 1), aoti_torch_dtype_float32(), a);
  const Matrix of_a = matrix_of(a), of_b = matrix_of(b);

  thread_local Handle handle;
  handle.call(tilegate_set_math, math);
  handle.call(tilegate_set_stream, stream);
  handle.call(tilegate_set_workspace_limit, *workspace_limit);
  const auto call = [&](auto function, auto... last) {
    handle.call(function, TILEGATE_ROW_MAJOR, of_a.op, of_b.op, m, n, k, 1.0F, of_a.data(), of_a.ld,
                of_a.stride, of_b.data(), of_b.ld, of_b.stride, 0.0F,
                static_cast<float*>(c.mutable_data_ptr()), n, m * n, batch, last...);
  };
  std::size_t bytes = 0;
  call(tilegate_sgemm_strided_batched_workspace_bytes, &bytes);
  std::optional<Tensor> workspace;
  if (bytes > 0) {
    const std::array size{static_cast<std::int64_t>(bytes)}, step{std::int64_t{1}};
    workspace = empty(size, step, aoti_torch_dtype_uint8(), a);
    handle.call(tilegate_set_workspace, workspace->mutable_data_ptr(), bytes);
  }
  call(tilegate_sgemm_strided_batched);
  return c;
}

// In PyTorch 2.11 the conversion to std::string leaks.
tilegate_math math_of(StableIValue value) {
  const std::unique_ptr<StringOpaque, void (*)(StringHandle)> name(
      torch::stable::detail::to<StringHandle>(value),
      [](StringHandle handle) { torch_delete_string(handle); });
  const char* text = nullptr;
  TORCH_ERROR_CODE_CHECK(torch_string_c_str(name.get(), &text));
  if (std::string_view(text) == "fp32") return TILEGATE_MATH_FP32;
  if (std::string_view(text) == "fp32_split") return TILEGATE_MATH_FP32_SPLIT;
  fail("math is neither fp32 nor fp32_split");
}

void matmul(StableIValue* stack, std::uint64_t /*inputs*/, std::uint64_t /*outputs*/) try {
  namespace detail = torch::stable::detail;
  const auto a = detail::to<Tensor>(stack[0]), b = detail::to<Tensor>(stack[1]);
  stack[0] = detail::from(multiply(a, b, math_of(stack[2])));
} catch (const std::exception& error) {
  throw std::runtime_error(std::string("tilegate: ") + error.what());  // as _torch.py expects it
}

}  // namespace

// Before the first call: where tilegate/_library.py keeps the limit of workspaces.
extern "C" void tilegate_torch_set_limit(const std::size_t* limit) { workspace_limit = limit; }

#ifdef TILEGATE_TORCH_CUDA
STABLE_TORCH_LIBRARY_IMPL(tilegate, CUDA, library) { library.impl("matmul", matmul); }
#else
STABLE_TORCH_LIBRARY_IMPL(tilegate, CPU, library) { library.impl("matmul", matmul); }
#endif
