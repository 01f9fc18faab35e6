// Launches that are captured in a CUDA graph on every rank.
#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "distributed/ranks.hpp"

namespace tilegate::distributed {
namespace {

// Replays a captured launch three times, at first with other elements of A; returns the first
// error.
Status replay_on(Transport& transport, const DistributedProblem& shared, Whole& whole) {
  Rank rank = Rank::make(shared, whole.problem, transport.rank());
  Status status = rank.c.copy_from(whole.c);
  if (status.ok()) status = rank.a.copy_from(whole.a);
  if (status.ok()) status = rank.b.copy_from(whole.b);
  const device::Buffer right(rank.a.bytes());  // before the constructor: it might wait later
  DistributedSgemm sgemm(transport, rank.problem);
  if (status.ok()) status = sgemm.status();
  if (!status.ok()) return status;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replayed = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  status = sgemm.launch(rank.operands(), stream);
  cudaError_t error = cudaStreamEndCapture(stream, &graph);
  if (error == cudaSuccess) error = cudaGraphInstantiate(&replayed, graph, 0);
  cudaMemcpyAsync(right.data(), rank.a.data(), right.size(), cudaMemcpyDefault, stream);
  for (int i = 0; i < 3 && error == cudaSuccess; ++i) {
    cudaMemsetAsync(rank.a.data(), i, right.size(), stream);
    if (i == 2) {
      cudaMemcpyAsync(rank.a.data(), right.data(), right.size(), cudaMemcpyDefault, stream);
    }
    error = cudaGraphLaunch(replayed, stream);
  }
  if (status.ok() && error != cudaSuccess) status = Status::device_error(cudaGetErrorString(error));
  if (status.ok()) status = transport.synchronize(stream);
  if (status.ok()) status = rank.c.copy_to(whole.c);
  if (replayed != nullptr) cudaGraphExecDestroy(replayed);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  return status;
}

class DistributedGraphs : public OverRanks {};

TEST_F(DistributedGraphs, ReplayTheSameBits) {
  constexpr int kRanks = 2;
  for (const Form form : kForms) {
    for (const Schedule schedule : kSchedules) {
      for (const bool same_bits : {false, true}) {
        Problem problem = Problem::dense({700, 300, 260});
        problem.math = same_bits ? Math::fp32_split : Math::fp32;
        Whole whole = random_whole(problem, verifier::Inputs::kUniform, 0);
        const Layout layout{
            .form = form, .ranks = kRanks, .schedule = schedule, .same_bits = same_bits};
        Whole launched = whole;
        const Status status = multiply(layout, launched);
        ASSERT_TRUE(status.ok()) << status.message();
        const DistributedProblem shared = distributed(layout, problem);
        Group group(kRanks, kPatience);
        for_each_rank(kRanks, [&](int rank) {
          const Status replayed = replay_on(*group.join(rank), shared, whole);
          EXPECT_TRUE(replayed.ok()) << name_of(layout) << ": " << replayed.message();
        });
        EXPECT_EQ(whole.c, launched.c) << name_of(layout);
      }
    }
  }
}

}  // namespace
}  // namespace tilegate::distributed
