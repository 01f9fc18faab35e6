// The two kinds of errors of `bench`.
#pragma once

#include <stdexcept>

#include <tilegate/stage.hpp>

namespace tilegate::bench {

// An invalid command line, or an invalid file that it names: exit 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A benchmark cannot run, or its result is wrong: the benchmark failed, exit 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(const Status& status) {
  if (!status.ok()) throw Failure(status.message());
}

}  // namespace tilegate::bench
