// A matrix in device memory with guard bands around it, and the image of it that the host expects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/stage.hpp>

namespace tilegate::verifier {

// Finite, so that arithmetic on it shows: a NaN keeps its payload through a sum.
inline constexpr float kSentinel = -4.3125e17F;

// The device has, from the start of its buffer: a guard, `offset` bytes more of guard, `rows` rows
// `ld` elements apart, and from the end of the last row on a guard again. The host images hold, of
// the padding after each row, only the first kWindow elements: leading dimensions may be huge.
class GuardedMatrix {
 public:
  static constexpr std::int64_t kGuard = 64;   // elements
  static constexpr std::int64_t kWindow = 64;  // elements

  struct Image {
    std::vector<float> head, rows, tail;
  };

  // All elements, padding and guards are `filler` until written.
  GuardedMatrix(std::string name, std::int64_t rows, std::int64_t cols, std::int64_t ld, int offset,
                float filler);

  // Of the device buffer of such a matrix.
  static std::size_t device_bytes(std::int64_t rows, std::int64_t cols, std::int64_t ld);

  const std::string& name() const { return name_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }

  float* on_device() const { return data_; }

  // The image that `upload` sends; row `r` starts at `expected() + r * pitch()`.
  float* expected() { return before_.rows.data(); }
  const float* expected() const { return before_.rows.data(); }
  // What the last `download` found, laid out alike.
  const float* found() const { return after_.rows.data(); }
  std::int64_t pitch() const { return pitch_; }

  Status upload();
  Status download();

  // Bans kernels from the guards, or opens them again; see device::set_accessible.
  void set_guards_accessible(bool accessible) const;

  // The first thing that differs, bit for bit, between what was uploaded and what was found.
  std::optional<std::string> changed_guard() const;
  std::optional<std::string> changed_padding() const;
  std::optional<std::string> changed_element() const;

 private:
  std::optional<std::string> first_change(std::int64_t rows, std::int64_t first_col,
                                          std::int64_t end_col, const char* what) const;
  Status copy_rows(Image& image, bool to_device);

  std::string name_;
  std::int64_t rows_, cols_, ld_, pitch_, elements_;
  device::Buffer buffer_;
  float* data_;
  Image before_, after_;
};

// Bans kernels from the guards of a matrix for the lifetime of this object.
class ClosedGuards {
 public:
  explicit ClosedGuards(const GuardedMatrix& matrix) : matrix_(matrix) {
    matrix_.set_guards_accessible(false);
  }
  ~ClosedGuards() { matrix_.set_guards_accessible(true); }
  ClosedGuards(const ClosedGuards&) = delete;
  ClosedGuards& operator=(const ClosedGuards&) = delete;

 private:
  const GuardedMatrix& matrix_;
};

}  // namespace tilegate::verifier
