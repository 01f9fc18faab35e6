// Launches: their checks, and the order in which clusters run.
#include <algorithm>
#include <numeric>
#include <random>

#include "executor_impl.hpp"
#include "observer.hpp"

namespace tilegate::simt {
namespace {

constexpr unsigned kMaxCluster = 8;             // blocks: CUDA's portable cluster size
constexpr unsigned kMaxThreads = 1024;          // per block, as in CUDA
constexpr unsigned kMaxThreadsZ = 64;           // along z, as in CUDA
constexpr unsigned kMaxBlocksYz = 65535;        // along y or z, as in CUDA
constexpr std::size_t kMaxShared = 227 * 1024;  // bytes per block, as on compute capability 9.0

}  // namespace

void Executor::begin_call(Stream stream) {
  in_call_ = true;
  call_stream_ = stream;
}

Status Executor::run(const device::LaunchConfig& config, Stream stream,
                     const std::function<void()>& thread_body) {
  const unsigned threads = config.block_threads();
  const bool is_grid = config.blocks >= 1 && config.blocks_y >= 1 && config.blocks_z >= 1 &&
                       config.blocks_y <= kMaxBlocksYz && config.blocks_z <= kMaxBlocksYz;
  const std::int64_t blocks = is_grid ? config.all_blocks() : 0;
  const unsigned cluster = config.cluster;
  const std::string kernel = config.kernel;
  if (is_running()) return Status::device_error(kernel + ": launched from inside a kernel");
  if (blocks < 1 || blocks >= std::int64_t{1} << 31 || threads < 1 || threads > kMaxThreads ||
      config.threads_z > kMaxThreadsZ || config.shared_bytes > kMaxShared) {
    std::string grid = std::to_string(config.blocks);
    if (config.blocks_y != 1 || config.blocks_z != 1) {
      grid += "x" + std::to_string(config.blocks_y) + "x" + std::to_string(config.blocks_z);
    }
    const std::string along_z = config.threads_z > kMaxThreadsZ
                                    ? " (" + std::to_string(config.threads_z) + " along z)"
                                    : "";
    return Status::device_error(kernel + ": invalid launch of " + grid + " blocks of " +
                                std::to_string(threads) + " threads" + along_z + " with " +
                                std::to_string(config.shared_bytes) + " bytes of shared memory");
  }
  if (cluster < 1 || cluster > kMaxCluster || blocks % cluster != 0 ||
      (cluster > 1 && threads % kWarpSize != 0)) {
    return Status::device_error(kernel + ": invalid clusters of " + std::to_string(cluster) +
                                " blocks: they are 1 to 8, of whole warps, and divide the " +
                                std::to_string(blocks) + " of the launch");
  }
  if (in_call_ && stream != call_stream_) {
    return Status::device_error(kernel + ": launched on another stream than its call: nothing " +
                                "orders it with the call's other kernels");
  }
  coverage_ = {blocks, 0};
  if (blocks < schedule_.least_) {
    return Status::device_error(kernel + ": " + std::to_string(blocks) +
                                " blocks are too few to run a sample of them");
  }

  config_ = config;
  body_ = &thread_body;
  block_threads_ = threads;
  num_threads_ = threads * cluster;
  fault_.reset();
  make_fibers(num_threads_);
  for (auto& thread : all_threads()) {
    const unsigned number = thread->number % threads;
    const unsigned row = number / config.threads_x;
    thread->index = {number % config.threads_x, row % config.threads_y, row / config.threads_y};
  }
  shared_stride_ =
      (config.shared_bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  shared_variables_.clear();
  shared_.reset(static_cast<std::byte*>(::operator new(std::max<std::size_t>(cluster_bytes(), 1),
                                                       std::align_val_t{kSharedAlignment})));
  executor::shared_of_block = shared_.get();
  device::set_accessible(shared_.get() + config.shared_bytes, shared_bytes() - config.shared_bytes,
                         false);
  order_.resize(num_threads_);
  std::iota(order_.begin(), order_.end(), 0U);
  if (schedule_.kind_ == Schedule::Kind::kReverse) std::reverse(order_.begin(), order_.end());
  random_.seed(schedule_.seed_);
  blockDim = {config.threads_x, config.threads_y, config.threads_z};
  gridDim = {static_cast<unsigned>(config.blocks), config.blocks_y, config.blocks_z};

  observer::begin_launch(config_, shared_.get(), cluster_bytes());
  const FaultSources sources;
  const std::int64_t clusters = blocks / cluster;
  for (std::int64_t i = 0; i < clusters && !fault_; i = schedule_.next(i, clusters)) {
    coverage_.run += cluster;
    std::int64_t number = i;
    if (schedule_.kind_ == Schedule::Kind::kReverse) number = clusters - 1 - i;
    if (schedule_.kind_ == Schedule::Kind::kShuffled) {
      number = (i + static_cast<std::int64_t>(schedule_.seed_ % (1U << 31))) % clusters;
      std::shuffle(order_.begin(), order_.end(), random_);
    }
    run_cluster((executor::in_order ? i : number) * cluster);
  }
  observer::end_launch();
  if (!fault_) return {};
  unwind_fibers();  // some fibers still wait inside the kernel
  return Status::device_error(*fault_);
}

}  // namespace tilegate::simt
