// The two ways in which `bench` fails.
#pragma once

#include <stdexcept>

#include <tilegate/stage.hpp>

namespace tilegate::bench {

// The command line, or a file that it names, makes no sense: exit 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A benchmark cannot run, or its result is wrong: the benchmark is in error, exit 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(const Status& status) {
  if (!status.ok()) throw Failure(status.message());
}

}  // namespace tilegate::bench
