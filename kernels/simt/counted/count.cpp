#include "count.hpp"

#include <charconv>
#include <cstring>
#include <vector>

#include <tilegate/simt/device.hpp>

#include "recorder.hpp"

namespace tilegate::simt::counted {
namespace {

device::Buffer make_operand(std::int64_t elements) {
  device::Buffer buffer(static_cast<std::size_t>(elements) * sizeof(float));
  std::vector<float> values(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3.0F;
  if (elements > 0) std::memcpy(buffer.data(), values.data(), buffer.size());
  return buffer;
}

float* floats(const device::Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

// Reads a number and what must follow it.
template <typename T>
bool take(std::string_view& text, T& value, std::string_view then) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.starts_with(then)) return false;
  text.remove_prefix(then.size());
  return true;
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
  constexpr std::string_view kBeta = "/beta";
  if (name.starts_with(kBeta)) {
    name.remove_prefix(kBeta.size());
    if (!take(name, result.beta, "")) return std::nullopt;
  }
  return name.empty() ? std::optional(result) : std::nullopt;
}

Outcome count(const Stage& stage, const Shape& shape, float beta) {
  const device::Buffer a = make_operand(shape.m * shape.k);
  const device::Buffer b = make_operand(shape.k * shape.n);
  const device::Buffer c = make_operand(shape.m * shape.n);
  const device::Buffer workspace(stage.workspace_bytes(shape));
  const SgemmArgs args{.shape = shape,
                       .alpha = 1.0F,
                       .a = floats(a),
                       .lda = shape.k,
                       .b = floats(b),
                       .ldb = shape.n,
                       .beta = beta,
                       .c = floats(c),
                       .ldc = shape.n,
                       .workspace = workspace.data(),
                       .workspace_bytes = workspace.size()};
  Recorder& recorder = Recorder::instance();
  recorder.reset();
  Status status = stage.prepare();
  if (status.ok()) status = stage.launch(args);
  return {status, recorder.counters()};
}

}  // namespace tilegate::simt::counted
