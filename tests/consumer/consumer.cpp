// The program of the README: multiplies on the device that Tilegate was built for, a GPU or the
// CPU.
#include <cstdint>
#include <iostream>
#include <vector>

#include <tilegate/sgemm.hpp>

using namespace tilegate;

float* floats(const device::Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

int main() {
  const std::int64_t m = 3, n = 5, k = 7;
  const std::vector<float> host_a(m * k, 2.0F), host_b(k * n, 3.0F);
  std::vector<float> host_c(m * n);
  const device::Buffer a(m * k * 4), b(k * n * 4), c(m * n * 4);  // bytes, on the device

  const Status prepared = sgemm::stage.prepare();                  // once per device
  const Plan plan = sgemm::stage.plan(Problem::dense({m, n, k}));  // once per problem
  const device::Buffer workspace(plan.workspace_bytes());
  const Operands operands{floats(a), floats(b), floats(c), workspace.data(), workspace.size()};

  for (const Status& status : {
           prepared,
           device::copy_to_device(a.data(), host_a.data(), a.size()),
           device::copy_to_device(b.data(), host_b.data(), b.size()),
           plan.launch(operands),  // as often as wanted; it does not wait for the device
           device::copy_to_host(host_c.data(), c.data(), c.size()),
       }) {
    if (!status.ok()) {
      std::cerr << status.message() << '\n';
      return 1;
    }
  }
  std::cout << plan.configuration() << ": " << host_c[0] << '\n';
  return host_c == std::vector<float>(m * n, 2.0F * 3.0F * k) ? 0 : 1;
}
