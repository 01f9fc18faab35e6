// All GPUs of the machine at once, two threads each: plans and launches share nothing but the plan.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <tilegate/device.hpp>
#include <tilegate/sgemm.hpp>

namespace tilegate {
namespace {

constexpr int kThreadsPerDevice = 2, kLaunches = 20;

// Of tiles and splits of several rungs.
const std::vector<Shape> kShapes = {
    {64, 64, 64}, {300, 300, 300}, {33, 4096, 1024}, {7, 2050, 999}};

// Multiplies ones: every element of C is K. Empty, or what went wrong.
template <typename Launch>
std::string multiply_ones(const Plan& plan, Launch launch) {
  const auto [m, n, k] = plan.problem().shape;
  const std::vector<float> ones(static_cast<std::size_t>(std::max(m, n) * k), 1.0F);
  const device::Buffer a(static_cast<std::size_t>(m * k) * sizeof(float));
  const device::Buffer b(static_cast<std::size_t>(k * n) * sizeof(float));
  const device::Buffer c(static_cast<std::size_t>(m * n) * sizeof(float));
  const device::Buffer workspace(plan.workspace_bytes());
  Status status = device::copy_to_device(a.data(), ones.data(), a.size());
  if (status.ok()) status = device::copy_to_device(b.data(), ones.data(), b.size());
  const Operands operands{.a = reinterpret_cast<const float*>(a.data()),
                          .b = reinterpret_cast<const float*>(b.data()),
                          .c = reinterpret_cast<float*>(c.data()),
                          .workspace = workspace.data(),
                          .workspace_bytes = workspace.size()};
  for (int i = 0; i < kLaunches && status.ok(); ++i) status = launch(operands);
  if (status.ok()) status = device::synchronize();
  std::vector<float> result(static_cast<std::size_t>(m * n));
  if (status.ok()) status = device::copy_to_host(result.data(), c.data(), c.size());
  if (!status.ok()) return status.message();
  const auto right = std::ranges::count(result, static_cast<float>(k));
  return right == m * n ? "" : std::to_string(m * n - right) + " elements are wrong";
}

std::string use_device(int ordinal) {
  if (cudaSetDevice(ordinal) != cudaSuccess) return "cannot be set";
  if (Status s = sgemm::stage.prepare(); !s.ok()) return s.message();
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return "no stream";
  std::string wrong;
  for (const Shape& shape : kShapes) {
    const Plan plan = sgemm::stage.plan(Problem::dense(shape));
    wrong += plan.ok()
                 ? multiply_ones(plan, [&](const Operands& o) { return plan.launch(o, stream); })
                 : plan.status().message();
  }
  cudaStreamDestroy(stream);
  return wrong;
}

TEST(Devices, RunConcurrentlyFromSeveralThreads) {
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  std::vector<std::string> wrong(static_cast<std::size_t>(devices * kThreadsPerDevice));
  std::vector<std::thread> threads;
  for (int i = 0; i < devices * kThreadsPerDevice; ++i) {
    threads.emplace_back(
        [&wrong, i] { wrong[static_cast<std::size_t>(i)] = use_device(i / kThreadsPerDevice); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_EQ(wrong[i], "") << "device " << i / kThreadsPerDevice;
  }
  RecordProperty("devices", devices);
}

// A graph of a plan that splits operands gives the bits of the plan itself; of panels, too.
void expect_graph_computes(std::size_t workspace_limit) {
  Problem problem = Problem::dense({1024, 1024, 1024});
  problem.math = Math::fp32_split;
  ASSERT_TRUE(sgemm::stage.prepare().ok());
  const Plan plan = sgemm::stage.plan(problem, device::current(), {}, workspace_limit);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const auto replayed = [&](const Operands& operands) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    const Status status = plan.launch(operands, stream);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(ready, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    return status;
  };
  EXPECT_EQ(multiply_ones(plan, replayed), "") << plan.configuration();
  cudaStreamDestroy(stream);
}

TEST(Devices, SplitPlanIsCapturedInAGraph) {
  expect_graph_computes(kNoWorkspaceLimit);
  expect_graph_computes(4 << 20);
}

// How many calls of a graph may start before the one before them has ended.
std::size_t early_starts(const std::vector<Shape>& calls) {
  std::vector<device::Buffer> operands;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  const auto allocate = [&](std::int64_t count) {
    operands.emplace_back(static_cast<std::size_t>(count) * sizeof(float));
    return reinterpret_cast<float*>(operands.back().data());
  };
  for (const auto& [m, n, k] : calls) {
    const Plan plan = sgemm::stage.plan(Problem::dense({m, n, k}));
    const float *a = allocate(m * k), *b = allocate(k * n);
    const Status status = plan.launch({.a = a, .b = b, .c = allocate(m * n)}, stream);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  std::vector<cudaGraphNode_t> from(calls.size()), to(calls.size());
  std::vector<cudaGraphEdgeData> edges(calls.size());
  std::size_t count = edges.size();
#if CUDART_VERSION >= 13000
  const cudaError_t error = cudaGraphGetEdges(graph, from.data(), to.data(), edges.data(), &count);
#else
  const cudaError_t error =
      cudaGraphGetEdges_v2(graph, from.data(), to.data(), edges.data(), &count);
#endif
  EXPECT_EQ(error, cudaSuccess);
  EXPECT_EQ(count, calls.size() - 1);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  return static_cast<std::size_t>(
      std::count_if(edges.begin(), edges.begin() + static_cast<std::ptrdiff_t>(count),
                    [](const cudaGraphEdgeData& edge) {
                      return edge.type == cudaGraphDependencyTypeProgrammatic;
                    }));
}

// Plans of one kernel, whose blocks would crowd behind another plan's.
TEST(Devices, PlansStartEarlyOnlyBehindThemselves) {
  if (device::current().compute_capability < 90) GTEST_SKIP() << "needs compute capability 9.0";
  ASSERT_TRUE(sgemm::stage.prepare().ok());
  const Shape one{1024, 1024, 1024}, other{700, 700, 700};
  EXPECT_EQ(early_starts({one, one, one}), 2U);
  EXPECT_EQ(early_starts({one, other, one, other}), 0U);
  EXPECT_EQ(early_starts({one, other, other}), 1U);
}

TEST(Devices, PlanRunsOnItsOwnDevice) {
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  if (devices < 2) GTEST_SKIP() << "needs two GPUs";
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const Plan plan = sgemm::stage.plan(Problem::dense({8, 8, 8}));
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_NE(multiply_ones(plan, [&](const Operands& o) { return plan.launch(o); }), "");
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

}  // namespace
}  // namespace tilegate
