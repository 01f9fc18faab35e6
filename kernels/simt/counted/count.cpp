#include "count.hpp"

#include <charconv>
#include <cstring>
#include <vector>

#include <tilegate/simt/device.hpp>

#include "recorder.hpp"

namespace tilegate::simt::counted {
namespace {

// Memory of exactly one operand, so that an access beyond it is seen.
class Operand {
 public:
  Operand(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t offset)
      : buffer_(bytes(rows, cols, ld) + static_cast<std::size_t>(offset)), offset_(offset) {
    std::vector<float> values(bytes(rows, cols, ld) / sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3.0F;
    if (!values.empty()) std::memcpy(data(), values.data(), values.size() * sizeof(float));
  }

  float* data() const { return reinterpret_cast<float*>(buffer_.data() + offset_); }

 private:
  static std::size_t bytes(std::int64_t rows, std::int64_t cols, std::int64_t ld) {
    if (rows == 0 || cols == 0) return 0;
    return static_cast<std::size_t>((rows - 1) * ld + cols) * sizeof(float);
  }

  device::Buffer buffer_;
  std::int64_t offset_;
};

bool skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Reads a number and what must follow it.
template <typename T>
bool take(std::string_view& text, T& value, std::string_view then) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return skip(text, then);
}

}  // namespace

std::optional<Case> Case::parse(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Case result{.stage = std::string(name.substr(0, slash)), .shape = {}};
  name.remove_prefix(slash + 1);
  Shape& shape = result.shape;
  if (!take(name, shape.m, "x") || !take(name, shape.n, "x") || !take(name, shape.k, "")) {
    return std::nullopt;
  }
  result.lda = shape.k;
  result.ldb = result.ldc = shape.n;
  if (skip(name, "/ld") &&
      !(take(name, result.lda, "x") && take(name, result.ldb, "x") && take(name, result.ldc, ""))) {
    return std::nullopt;
  }
  if (skip(name, "/off") && !take(name, result.offset, "")) return std::nullopt;
  if (skip(name, "/beta") && !take(name, result.beta, "")) return std::nullopt;
  return name.empty() ? std::optional(result) : std::nullopt;
}

Outcome count(const Stage& stage, const Case& what) {
  const Shape& shape = what.shape;
  const Operand a(shape.m, shape.k, what.lda, what.offset);
  const Operand b(shape.k, shape.n, what.ldb, what.offset);
  const Operand c(shape.m, shape.n, what.ldc, what.offset);
  const device::Buffer workspace(stage.workspace_bytes(shape));
  const SgemmArgs args{.shape = shape,
                       .alpha = 1.0F,
                       .a = a.data(),
                       .lda = what.lda,
                       .b = b.data(),
                       .ldb = what.ldb,
                       .beta = what.beta,
                       .c = c.data(),
                       .ldc = what.ldc,
                       .workspace = workspace.data(),
                       .workspace_bytes = workspace.size()};
  Recorder& recorder = Recorder::instance();
  recorder.reset();
  Status status = stage.prepare();
  if (status.ok()) status = stage.launch(args);
  return {status, recorder.counters()};
}

}  // namespace tilegate::simt::counted
