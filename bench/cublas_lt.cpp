// The algorithms of cublasLt's heuristics for FP32 (no TF32), as configurations of a stage.
//
// cublasLt is column-major: a row-major product is computed as its transpose, B'·A' = (A·B)'.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <cublasLt.h>

#include "errors.hpp"
#include "yardstick.hpp"

namespace tilegate::bench {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // the same as cublasSgemm's

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Failure(std::string("cublasLt: ") + cublasLtGetStatusString(status));
}

// Serves all devices. Never destroyed: at exit the CUDA runtime may be gone before it.
cublasLtHandle_t handle() {
  static const cublasLtHandle_t kHandle = [] {
    cublasLtHandle_t created = nullptr;
    check(cublasLtCreate(&created));
    return created;
  }();
  return kHandle;
}

// cublasLt's descriptors of a product.
class Matmul {
 public:
  explicit Matmul(const Problem& problem) {
    check(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set_transposed(CUBLASLT_MATMUL_DESC_TRANSA, problem.op_b);
    set_transposed(CUBLASLT_MATMUL_DESC_TRANSB, problem.op_a);
    for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
      const auto [rows, cols] = problem.extent(operand);
      const std::int64_t stride = problem.stride(operand);
      const auto batch = static_cast<std::int32_t>(problem.batch);
      cublasLtMatrixLayout_t& layout = layouts_[static_cast<std::size_t>(operand)];
      check(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, static_cast<std::uint64_t>(cols),
                                       static_cast<std::uint64_t>(rows), problem.ld(operand)));
      if (batch == 1) continue;
      check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                             sizeof(batch)));
      check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                             &stride, sizeof(stride)));
    }
  }
  ~Matmul() {
    cublasLtMatmulDescDestroy(operation_);
    for (const cublasLtMatrixLayout_t layout : layouts_) cublasLtMatrixLayoutDestroy(layout);
  }
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  std::vector<cublasLtMatmulHeuristicResult_t> algorithms(const Problem& problem) const {
    cublasLtMatmulPreference_t created = nullptr;
    check(cublasLtMatmulPreferenceCreate(&created));
    const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                          cublasStatus_t (*)(cublasLtMatmulPreference_t)>
        preference(created, cublasLtMatmulPreferenceDestroy);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(created, attribute, &value, sizeof(value)));
    };
    const auto alignment = [&](Operand operand) {
      constexpr std::int64_t kMost = 256;
      const std::int64_t offset = problem.offset_bytes[static_cast<std::size_t>(operand)] | kMost;
      return static_cast<std::uint32_t>(offset & -offset);
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(Operand::kB));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(Operand::kA));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(Operand::kC));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(Operand::kC));
    std::vector<cublasLtMatmulHeuristicResult_t> found(kMostAlgorithms);
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle(), operation_, layouts_[1], layouts_[0], layouts_[2],
                                       layouts_[2], created, kMostAlgorithms, found.data(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
    check(status);
    found.resize(static_cast<std::size_t>(count));
    std::erase_if(found, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    return found;
  }

  void enqueue(const cublasLtMatmulHeuristicResult_t& algorithm, const KernelArgs& args,
               Stream stream) const {
    check(cublasLtMatmul(handle(), operation_, &args.alpha, args.b, layouts_[1], args.a,
                         layouts_[0], &args.beta, args.c, layouts_[2], args.c, layouts_[2],
                         &algorithm.algo, args.workspace, algorithm.workspaceSize, stream));
  }

 private:
  void set_transposed(cublasLtMatmulDescAttributes_t attribute, Op op) {
    const cublasOperation_t value = op == Op::kT ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof(value)));
  }

  cublasLtMatmulDesc_t operation_ = nullptr;
  std::array<cublasLtMatrixLayout_t, 3> layouts_{};  // of A, B and C
};

// The algorithm's bits, which identify it to the same version of cublasLt.
std::string name_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string name;
  for (const std::uint64_t word : algorithm.data) {
    char text[20];
    std::snprintf(text, sizeof text, "%s%llx", name.empty() ? "" : "_",
                  static_cast<unsigned long long>(word));
    name += text;
  }
  return name;
}

std::vector<Candidate> candidates(const Problem& problem, const Device& /*device*/) {
  const auto matmul = std::make_shared<const Matmul>(problem);
  std::vector<Candidate> all;
  for (const cublasLtMatmulHeuristicResult_t& algorithm : matmul->algorithms(problem)) {
    all.push_back({{.configuration = name_of(algorithm.algo),
                    .rounding_chain = problem.shape.k + 2,
                    .workspace_bytes = algorithm.workspaceSize,
                    .enqueue =
                        [=](const KernelArgs& args, Stream stream) {
                          matmul->enqueue(algorithm, args, stream);
                          return Status();
                        }},
                   static_cast<double>(all.size())});  // unknown: the order of the heuristics
  }
  if (all.empty()) {
    all.push_back({{.status = Status::unsupported("cublasLt offers no algorithm")}});
  }
  return all;
}

constexpr Stage kCublasLt{.name = "CublasLt",
                          .idea = "each algorithm of cublasLt's heuristics, in FP32",
                          .takes_transposed = true,
                          .takes_batches = true,
                          .candidates = candidates};

}  // namespace

const Stage* cublas_lt() { return &kCublasLt; }

}  // namespace tilegate::bench
