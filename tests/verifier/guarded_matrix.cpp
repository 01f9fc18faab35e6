#include "verifier/guarded_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

namespace tilegate::verifier {
namespace {

constexpr std::int64_t kMaxOffset = 16;  // bytes

std::int64_t elements_of(const GuardedMatrix::Layout& layout) {
  if (layout.all_rows() == 0) return 0;
  return (layout.all_rows() - 1) * layout.ld + layout.cols + (layout.batch - 1) * layout.shift;
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

std::string was_and_is(float was, float is) {
  char text[96];
  std::snprintf(text, sizeof(text), "was %.9g (0x%08x), is %.9g (0x%08x)", double{was},
                std::bit_cast<std::uint32_t>(was), double{is}, std::bit_cast<std::uint32_t>(is));
  return text;
}

std::optional<std::size_t> first_difference(const std::vector<float>& was,
                                            const std::vector<float>& is) {
  const auto [at, _] = std::mismatch(was.begin(), was.end(), is.begin(), same_bits);
  if (at == was.end()) return std::nullopt;
  return static_cast<std::size_t>(at - was.begin());
}

}  // namespace

std::size_t GuardedMatrix::device_bytes(const Layout& layout) {
  return static_cast<std::size_t>(2 * kGuard + elements_of(layout)) * sizeof(float) + kMaxOffset;
}

GuardedMatrix::GuardedMatrix(std::string name, const Layout& layout, float filler)
    : name_(std::move(name)),
      layout_(layout),
      all_rows_(layout.all_rows()),
      pitch_(layout.cols + std::min(layout.ld - layout.cols, kWindow)),
      elements_(elements_of(layout)),
      buffer_(device_bytes(layout)) {
  const std::int64_t head = kGuard + layout.offset / static_cast<std::int64_t>(sizeof(float));
  const auto total = static_cast<std::int64_t>(buffer_.size() / sizeof(float));
  data_ = reinterpret_cast<float*>(buffer_.data()) + head;
  before_.head.assign(static_cast<std::size_t>(head), filler);
  before_.rows.assign(static_cast<std::size_t>(all_rows_ * pitch_), filler);
  before_.tail.assign(static_cast<std::size_t>(total - head - elements_), filler);
  after_ = before_;
}

// Copies whole windows, except after the last row, where the operand ends. Matrices that are not
// whole rows apart are copied one by one.
Status GuardedMatrix::copy_rows(Image& image, bool to_device) {
  const auto bytes = [](std::int64_t elements) {
    return static_cast<std::size_t>(elements) * sizeof(float);
  };
  const std::size_t device_pitch = bytes(layout_.ld), host_pitch = bytes(pitch_);
  const std::int64_t period = layout_.shift == 0 ? all_rows_ : layout_.period;
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < all_rows_; row += count) {
    const bool is_last = row + 1 == all_rows_;
    count = is_last ? 1 : std::min(period, all_rows_ - 1 - row);
    float* const on_device = data_ + row * layout_.ld + row / period * layout_.shift;
    float* const on_host = image.rows.data() + row * pitch_;
    const std::size_t width = bytes(is_last ? layout_.cols : pitch_);
    const auto rows = static_cast<std::size_t>(count);
    const Status status =
        to_device
            ? device::copy_to_device(on_device, device_pitch, on_host, host_pitch, width, rows)
            : device::copy_to_host(on_host, host_pitch, on_device, device_pitch, width, rows);
    if (!status.ok()) return status;
  }
  return {};
}

Status GuardedMatrix::upload() {
  const std::size_t head_bytes = before_.head.size() * sizeof(float);
  const std::size_t tail_bytes = before_.tail.size() * sizeof(float);
  if (Status s = device::copy_to_device(buffer_.data(), before_.head.data(), head_bytes); !s.ok()) {
    return s;
  }
  if (Status s = copy_rows(before_, true); !s.ok()) return s;
  return device::copy_to_device(data_ + elements_, before_.tail.data(), tail_bytes);
}

Status GuardedMatrix::download() {
  const std::size_t head_bytes = after_.head.size() * sizeof(float);
  const std::size_t tail_bytes = after_.tail.size() * sizeof(float);
  if (Status s = device::copy_to_host(after_.head.data(), buffer_.data(), head_bytes); !s.ok()) {
    return s;
  }
  if (Status s = copy_rows(after_, false); !s.ok()) return s;
  return device::copy_to_host(after_.tail.data(), data_ + elements_, tail_bytes);
}

void GuardedMatrix::set_guards_accessible(bool accessible) const {
  // Whole units of 8 bytes without any byte of the operand: the granularity of the sanitizer.
  constexpr std::uintptr_t kUnit = 8;
  const auto begin = reinterpret_cast<std::uintptr_t>(data_);
  const auto end = begin + static_cast<std::uintptr_t>(elements_) * sizeof(float);
  const auto buffer = reinterpret_cast<std::uintptr_t>(buffer_.data());
  const auto closed_after = (end + kUnit - 1) / kUnit * kUnit;
  device::set_accessible(buffer_.data(), begin / kUnit * kUnit - buffer, accessible);
  device::set_accessible(reinterpret_cast<const void*>(closed_after),
                         buffer + buffer_.size() - closed_after, accessible);
}

std::optional<std::string> GuardedMatrix::changed_guard() const {
  if (const auto at = first_difference(before_.head, after_.head)) {
    return name_ + ", " + std::to_string(before_.head.size() - *at) +
           " elements before its first: " + was_and_is(before_.head[*at], after_.head[*at]);
  }
  if (const auto at = first_difference(before_.tail, after_.tail)) {
    return name_ + ", " + std::to_string(*at + 1) +
           " elements past its last: " + was_and_is(before_.tail[*at], after_.tail[*at]);
  }
  return std::nullopt;
}

// The first change in the elements of the matrices, or in the padding between them. The operand
// ends with the last row of its last matrix.
std::optional<std::string> GuardedMatrix::first_change(bool in_matrix, const char* what) const {
  for (std::int64_t row = 0; row < all_rows_; ++row) {
    const std::int64_t in_period = layout_.period > 0 ? row % layout_.period : row;
    const std::int64_t cols = in_period < layout_.rows ? layout_.cols : 0;
    const std::int64_t begin = in_matrix ? 0 : cols;
    const std::int64_t end = in_matrix || row + 1 == all_rows_ ? cols : pitch_;
    for (std::int64_t col = begin; col < end; ++col) {
      const float was = before_.rows[static_cast<std::size_t>(row * pitch_ + col)];
      const float is = after_.rows[static_cast<std::size_t>(row * pitch_ + col)];
      if (same_bits(was, is)) continue;
      const std::string matrix =
          layout_.batch > 1 ? "matrix " + std::to_string(row / layout_.period) + ", " : "";
      return name_ + ", " + what + " at " + matrix + "row " + std::to_string(in_period) +
             ", column " + std::to_string(col) + ": " + was_and_is(was, is);
    }
  }
  return std::nullopt;
}

std::optional<std::string> GuardedMatrix::changed_padding() const {
  return first_change(false, "padding");
}

std::optional<std::string> GuardedMatrix::changed_element() const {
  return first_change(true, "element");
}

}  // namespace tilegate::verifier
