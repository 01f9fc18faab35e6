// A matrix in device memory with guard bands around it, and host images of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/stage.hpp>

namespace tilegate::verifier {

// Finite, so that arithmetic on it changes it: a NaN would keep its payload in a sum.
inline constexpr float kSentinel = -4.3125e17F;

// The device buffer holds: a guard, `offset` further bytes of guard, `rows` rows `ld` elements
// apart, and another guard after the end of the last row. The host images have only the first
// kWindow elements of the padding after each row, because leading dimensions may be huge.
class GuardedMatrix {
 public:
  static constexpr std::int64_t kGuard = 64;   // elements
  static constexpr std::int64_t kWindow = 64;  // elements

  struct Image {
    std::vector<float> head, rows, tail;
  };

  // The layout in memory. In a batch, matrices are `period` rows and `shift` elements apart; the
  // rows between them are padding. Images do not have the elements of the shift.
  struct Layout {
    std::int64_t rows, cols, ld;
    int offset = 0;  // bytes
    std::int64_t batch = 1, period = 0, shift = 0;

    std::int64_t all_rows() const { return batch == 0 ? 0 : (batch - 1) * period + rows; }
  };

  // All elements, padding and guards are `filler` until written.
  GuardedMatrix(std::string name, const Layout& layout, float filler);

  // Size of the device buffer of such a matrix.
  static std::size_t device_bytes(const Layout& layout);

  const std::string& name() const { return name_; }
  std::int64_t rows() const { return layout_.rows; }  // per matrix of the batch
  std::int64_t cols() const { return layout_.cols; }
  std::int64_t batch() const { return layout_.batch; }

  float* on_device() const { return data_; }

  // Row `row` of matrix `index` in the image that `upload` sends; see pitch() and image_stride().
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
  // The same row in the image of the last `download`.
  const float* found(std::int64_t row = 0, std::int64_t index = 0) const {
    return after_.rows.data() + index * image_stride() + row * pitch_;
  }
  std::int64_t pitch() const { return pitch_; }
  std::int64_t image_stride() const { return layout_.period * pitch_; }

  Status upload();
  Status download();

  // Makes the guards inaccessible to kernels, or accessible again; see device::set_accessible.
  void set_guards_accessible(bool accessible) const;

  // Describes the first bit difference between the uploaded and the downloaded image.
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

// Makes the guards of a matrix inaccessible to kernels for the lifetime of this object.
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
