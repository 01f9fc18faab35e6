// Exits with one sentence where no GPU answers; every test on a GPU requires it.
#include <cstdio>

#include <tilegate/device.hpp>

int main() {
  const tilegate::Status status = tilegate::device::available();
  std::puts(status.ok() ? tilegate::device::current().name.c_str() : status.message().c_str());
  return status.ok() ? 0 : 1;
}
