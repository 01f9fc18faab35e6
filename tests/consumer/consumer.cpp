// The program of the README: multiplies on the device that Tilegate was built for, a GPU or the
// CPU.
#include <cstdint>
#include <iostream>
#include <vector>

#include <tilegate/sgemm.hpp>

using namespace tilegate;

namespace {

// A buffer on the device with these values in it.
device::Buffer upload(const std::vector<float>& values, Status* status) {
  device::Buffer buffer(values.size() * sizeof(float));
  if (status->ok()) *status = device::copy_to_device(buffer.data(), values.data(), buffer.size());
  return buffer;
}

float* floats(const device::Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

}  // namespace

int main() {
  const std::int64_t m = 3, n = 5, k = 7;
  std::vector<float> result(m * n);
  Status copied;
  const device::Buffer buffer_a = upload(std::vector<float>(m * k, 2.0F), &copied);
  const device::Buffer buffer_b = upload(std::vector<float>(k * n, 3.0F), &copied);
  const device::Buffer buffer_c = upload(result, &copied);
  const float *a = floats(buffer_a), *b = floats(buffer_b);
  float* c = floats(buffer_c);
  const Stream stream = nullptr;

  Status status = sgemm::stage.prepare();                          // once per device
  const Plan plan = sgemm::stage.plan(Problem::dense({m, n, k}));  // once per problem
  const device::Buffer workspace(plan.workspace_bytes());
  const Operands operands{a, b, c, workspace.data(), workspace.size()};
  if (status.ok()) status = plan.launch(operands, stream);  // as often as wanted

  for (const Status& each :
       {copied, status, device::copy_to_host(result.data(), buffer_c.data(), buffer_c.size())}) {
    if (!each.ok()) {
      std::cerr << each.message() << '\n';
      return 1;
    }
  }
  std::cout << device::current().name << ", " << plan.configuration() << ": " << result.front()
            << '\n';
  for (const float element : result) {
    if (element != 2.0F * 3.0F * k) return 1;
  }
  return 0;
}
