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

  // Where the matrix lies. With a batch, `period` rows and `shift` elements from one matrix to the
  // next; the rows between them are padding. No image has the elements of the shift.
  struct Layout {
    std::int64_t rows, cols, ld;
    int offset = 0;  // bytes
    std::int64_t batch = 1, period = 0, shift = 0;

    std::int64_t all_rows() const { return batch == 0 ? 0 : (batch - 1) * period + rows; }
  };

  // All elements, padding and guards are `filler` until written.
  GuardedMatrix(std::string name, const Layout& layout, float filler);

  // Of the device buffer of such a matrix.
  static std::size_t device_bytes(const Layout& layout);

  const std::string& name() const { return name_; }
  std::int64_t rows() const { return layout_.rows; }  // of one matrix of the batch
  std::int64_t cols() const { return layout_.cols; }
  std::int64_t batch() const { return layout_.batch; }

  float* on_device() const { return data_; }

  // The image that `upload` sends: row `row` of matrix `index`, and the elements to the next row
  // and to the next matrix.
  float* expected(std::int64_t row = 0, std::int64_t index = 0) {
    return before_.rows.data() + index * image_stride() + row * pitch_;
  }
  const float* expected(std::int64_t row = 0, std::int64_t index = 0) const {
    return before_.rows.data() + index * image_stride() + row * pitch_;
  }
  // Calls `visit(row of the image, row, matrix)` for each row of each matrix.
  template <typename Visit>
  void for_each_row(Visit visit) {
    for (std::int64_t index = 0; index < batch(); ++index) {
      for (std::int64_t row = 0; row < rows(); ++row) visit(expected(row, index), row, index);
    }
  }
  // What the last `download` found, laid out alike.
  const float* found(std::int64_t row = 0, std::int64_t index = 0) const {
    return after_.rows.data() + index * image_stride() + row * pitch_;
  }
  std::int64_t pitch() const { return pitch_; }
  std::int64_t image_stride() const { return layout_.period * pitch_; }

  Status upload();
  Status download();

  // Bans kernels from the guards, or opens them again; see device::set_accessible.
  void set_guards_accessible(bool accessible) const;

  // The first thing that differs, bit for bit, between what was uploaded and what was found.
  std::optional<std::string> changed_guard() const;
  std::optional<std::string> changed_padding() const;
  std::optional<std::string> changed_element() const;

 private:
  std::optional<std::string> first_change(bool in_matrix, const char* what) const;
  Status copy_rows(Image& image, bool to_device);

  std::string name_;
  Layout layout_;
  std::int64_t all_rows_, pitch_, elements_;
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
