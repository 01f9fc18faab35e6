#include "verifier/guarded_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

namespace tilegate::verifier {
namespace {

constexpr std::int64_t kMaxOffset = 16;  // bytes

std::int64_t extent(std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  return rows == 0 ? 0 : (rows - 1) * ld + cols;
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

std::size_t GuardedMatrix::device_bytes(std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  return static_cast<std::size_t>(2 * kGuard + extent(rows, cols, ld)) * sizeof(float) + kMaxOffset;
}

GuardedMatrix::GuardedMatrix(std::string name, std::int64_t rows, std::int64_t cols,
                             std::int64_t ld, int offset, float filler)
    : name_(std::move(name)),
      rows_(rows),
      cols_(cols),
      ld_(ld),
      pitch_(cols + std::min(ld - cols, kWindow)),
      elements_(extent(rows, cols, ld)),
      buffer_(device_bytes(rows, cols, ld)) {
  const std::int64_t head = kGuard + offset / static_cast<std::int64_t>(sizeof(float));
  const auto total = static_cast<std::int64_t>(buffer_.size() / sizeof(float));
  data_ = reinterpret_cast<float*>(buffer_.data()) + head;
  before_.head.assign(static_cast<std::size_t>(head), filler);
  before_.rows.assign(static_cast<std::size_t>(rows * pitch_), filler);
  before_.tail.assign(static_cast<std::size_t>(total - head - elements_), filler);
  after_ = before_;
}

// Whole windows but for the last row, after which the operand ends.
Status GuardedMatrix::copy_rows(Image& image, bool to_device) {
  if (rows_ == 0) return {};
  const auto bytes = [](std::int64_t elements) {
    return static_cast<std::size_t>(elements) * sizeof(float);
  };
  float* host_last = image.rows.data() + (rows_ - 1) * pitch_;
  float* device_last = data_ + (rows_ - 1) * ld_;
  const auto whole = static_cast<std::size_t>(rows_ - 1);
  if (to_device) {
    if (Status s = device::copy_to_device(data_, bytes(ld_), image.rows.data(), bytes(pitch_),
                                          bytes(pitch_), whole);
        !s.ok()) {
      return s;
    }
    return device::copy_to_device(device_last, host_last, bytes(cols_));
  }
  if (Status s = device::copy_to_host(image.rows.data(), bytes(pitch_), data_, bytes(ld_),
                                      bytes(pitch_), whole);
      !s.ok()) {
    return s;
  }
  return device::copy_to_host(host_last, device_last, bytes(cols_));
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
  // In whole units of 8 bytes that hold nothing of the operand: what the sanitizer can tell apart.
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

std::optional<std::string> GuardedMatrix::first_change(std::int64_t rows, std::int64_t first_col,
                                                       std::int64_t end_col,
                                                       const char* what) const {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = first_col; col < end_col; ++col) {
      const float was = expected()[row * pitch_ + col];
      const float is = found()[row * pitch_ + col];
      if (same_bits(was, is)) continue;
      return name_ + ", " + what + " at row " + std::to_string(row) + ", column " +
             std::to_string(col) + ": " + was_and_is(was, is);
    }
  }
  return std::nullopt;
}

std::optional<std::string> GuardedMatrix::changed_padding() const {
  return first_change(rows_ - 1, cols_, pitch_, "padding");  // the operand ends with its last row
}

std::optional<std::string> GuardedMatrix::changed_element() const {
  return first_change(rows_, 0, cols_, "element");
}

}  // namespace tilegate::verifier
