// One rank of processes_test.cpp: multiplies twice with NCCL, and on the way plays a fault.
//
//   distributed_rank RANK SIZE ID FAULT MOMENT
//
// ID: the ncclUniqueId in hexadecimal. Prints the final status; exit code 0: ok, 3: an error.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <tilegate/distributed/nccl.hpp>
#include <tilegate/distributed/sgemm.hpp>

using namespace tilegate;
using namespace tilegate::distributed;

namespace {

constexpr std::chrono::seconds kTimeout{10};

void play(std::string_view fault) {
  if (fault == "killed") std::raise(SIGKILL);
  if (fault == "exits") std::_Exit(0);
  if (fault == "hangs") std::this_thread::sleep_for(std::chrono::minutes(5));
}

device::Buffer ones(std::int64_t elements) {
  const std::vector<float> host(static_cast<std::size_t>(elements), 1.0F);
  device::Buffer buffer(host.size() * sizeof(float));
  if (!device::copy_to_device(buffer.data(), host.data(), buffer.size()).ok()) std::abort();
  return buffer;
}

Status run(int rank, int size, const ncclUniqueId& id, std::string_view fault,
           std::string_view moment) {
  const auto at = [&](std::string_view now) {
    if (moment == now) play(fault);
  };
  if (cudaSetDevice(rank) != cudaSuccess) return Status::device_error("cudaSetDevice failed");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  ncclCommInitRankConfig(&comm, size, id, rank, &config);
  std::unique_ptr<Transport> transport;
  if (Status s = connect(comm, kTimeout, &transport); !s.ok()) return s;
  at("before-plan");
  const std::int64_t k = fault == "other-problem" ? 1024 : 2048;
  const auto problem = DistributedProblem::even(Form::kColumnParallel, {2048, 2048, k}, size, rank);
  const auto i = static_cast<std::size_t>(rank);
  const device::Buffer a = ones(problem.rows[i] * k), b = ones(k * problem.parts[i]),
                       c = ones(2048 * problem.parts[i]);
  DistributedSgemm sgemm(*transport, problem);
  if (!sgemm.ok()) return sgemm.status();
  at("before-launch");
  const Operands operands{
      .a = fault == "null-operand" ? nullptr : reinterpret_cast<const float*>(a.data()),
      .b = reinterpret_cast<const float*>(b.data()),
      .c = reinterpret_cast<float*>(c.data())};
  for (int launch = 0; launch < 2; ++launch) {
    if (Status s = sgemm.launch(operands); !s.ok()) return s;
    if (launch == 0) at("in-launch");
    if (Status s = transport->synchronize(nullptr); !s.ok()) return s;
    if (launch == 0) at("between-launches");
  }
  std::vector<float> result(c.size() / sizeof(float));
  if (Status s = device::copy_to_host(result.data(), c.data(), c.size()); !s.ok()) return s;
  const auto is_right = [&](float element) { return element == static_cast<float>(k); };
  return std::ranges::all_of(result, is_right) ? Status() : Status::device_error("C is wrong");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  ncclUniqueId id;
  const std::string hex = argv[3];
  for (std::size_t i = 0; i < sizeof(id.internal); ++i) {
    id.internal[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  const Status status = run(std::atoi(argv[1]), std::atoi(argv[2]), id, argv[4], argv[5]);
  std::printf("%s\n", status.ok() ? "ok" : status.message().c_str());
  return status.ok() ? 0 : 3;
}
