// Multiplies on the device that Tilegate was built for, a GPU or the CPU: C ← A·B.
#include <cstdint>
#include <iostream>
#include <vector>

#include <tilegate/sgemm.hpp>

using namespace tilegate;

int main() {
  constexpr std::int64_t kM = 3, kN = 5, kK = 7;
  const std::vector<float> a(kM * kK, 2.0F), b(kK * kN, 3.0F);
  std::vector<float> c(kM * kN);
  const std::size_t bytes_a = a.size() * sizeof(float), bytes_b = b.size() * sizeof(float);
  const std::size_t bytes_c = c.size() * sizeof(float);

  const device::Buffer on_device_a(bytes_a), on_device_b(bytes_b), on_device_c(bytes_c);
  Status status = device::copy_to_device(on_device_a.data(), a.data(), bytes_a);
  if (status.ok()) status = device::copy_to_device(on_device_b.data(), b.data(), bytes_b);

  // Once per problem; launching allocates nothing.
  if (status.ok()) status = sgemm::stage.prepare();
  const Plan plan = sgemm::stage.plan(Problem::dense({kM, kN, kK}));
  const device::Buffer workspace(plan.workspace_bytes());
  if (status.ok()) {
    status = plan.launch({.a = reinterpret_cast<const float*>(on_device_a.data()),
                          .b = reinterpret_cast<const float*>(on_device_b.data()),
                          .c = reinterpret_cast<float*>(on_device_c.data()),
                          .workspace = workspace.data(),
                          .workspace_bytes = workspace.size()});
  }
  if (status.ok()) status = device::copy_to_host(c.data(), on_device_c.data(), bytes_c);
  if (!status.ok()) {
    std::cerr << status.message() << '\n';
    return 1;
  }
  std::cout << device::current().name << ", " << plan.configuration() << ": " << c.front() << '\n';
  for (const float element : c) {
    if (element != 2.0F * 3.0F * kK) return 1;
  }
  return 0;
}
