// Launches cases of the ladder, each once and in order, for ncu to measure:
//
//   launch_cases Warptile/256x256x256/beta0.5 Swizzle/128x128x64
#include <cstdio>
#include <string>
#include <string_view>

#include <tilegate/sgemm.hpp>
#include <tilegate/simt/device.hpp>

namespace {

using namespace tilegate;

// Zeros: what a kernel counts does not depend on the values.
device::Buffer zeros(std::int64_t elements) {
  const std::string host(static_cast<std::size_t>(elements) * sizeof(float), '\0');
  device::Buffer buffer(host.size());
  static_cast<void>(device::copy_to_device(buffer.data(), host.data(), host.size()));
  return buffer;
}

Status launch(const Stage& stage, const Shape& shape, float beta) {
  const device::Buffer a = zeros(shape.m * shape.k);
  const device::Buffer b = zeros(shape.k * shape.n);
  const device::Buffer c = zeros(shape.m * shape.n);
  const device::Buffer workspace(stage.workspace_bytes(shape));
  const SgemmArgs args{.shape = shape,
                       .a = reinterpret_cast<const float*>(a.data()),
                       .lda = shape.k,
                       .b = reinterpret_cast<const float*>(b.data()),
                       .ldb = shape.n,
                       .beta = beta,
                       .c = reinterpret_cast<float*>(c.data()),
                       .ldc = shape.n,
                       .workspace = workspace.data(),
                       .workspace_bytes = workspace.size()};
  if (Status s = stage.prepare(); !s.ok()) return s;
  if (Status s = stage.launch(args); !s.ok()) return s;
  return device::synchronize();
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char rung[64];
    long long m = 0, n = 0, k = 0;
    float beta = 0.0F;
    const int fields =
        std::sscanf(argv[i], "%63[^/]/%lldx%lldx%lld/beta%f", rung, &m, &n, &k, &beta);
    const Stage* stage = fields >= 4 ? find_stage(rung) : nullptr;
    if (stage == nullptr) {
      std::fprintf(stderr, "launch_cases: %s: no case\n", argv[i]);
      return 2;
    }
    if (const Status status = launch(*stage, {m, n, k}, beta); !status.ok()) {
      std::fprintf(stderr, "launch_cases: %s: %s\n", argv[i], status.message().c_str());
      return 1;
    }
  }
  return 0;
}
