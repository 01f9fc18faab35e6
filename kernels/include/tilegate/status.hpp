// The outcome of a call: success, or an error with a message.
#pragma once

#include <string>
#include <utility>

namespace tilegate {

// A failed call has not written C, except after `kDeviceError`, which the device raised while it
// ran.
class [[nodiscard]] Status {
 public:
  enum class Code {
    kOk,
    kInvalidArgument,  // `argument()` names the field of Problem or Operands
    kUnsupported,      // valid, but this stage or this device does not support it
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

}  // namespace tilegate
