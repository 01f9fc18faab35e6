// The ranks of tests and benchmarks: threads over the executor, or GPUs with NCCL.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include <tilegate/distributed/transport.hpp>

#if TILEGATE_ON_SIMT
#include <tilegate/distributed/threads.hpp>
#else
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <tilegate/distributed/nccl.hpp>
#endif

namespace tilegate::distributed {

// Forwards every call to a transport of another owner; tests override calls to plant faults.
class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(Transport& transport) : transport_(transport) {}

  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }
  Status agree(const Card& mine, std::vector<Card>& all) override {
    return transport_.agree(mine, all);
  }
  Status allocate(std::size_t bytes, std::unique_ptr<Memory>* memory) override {
    return transport_.allocate(bytes, memory);
  }
  Status fork(Stream stream) override { return transport_.fork(stream); }
  Status exchange(int number, const Memory& memory, std::span<const Outgoing> out,
                  std::span<const Incoming> in) override {
    return transport_.exchange(number, memory, out, in);
  }
  Status wait(int number, Stream stream) override { return transport_.wait(number, stream); }
  Status branch(Stream stream, bool goes_first, Stream* side) override {
    return transport_.branch(stream, goes_first, side);
  }
  Status join(Stream side, Stream stream) override { return transport_.join(side, stream); }
  Status begin_step(std::string_view name, std::span<const Access> accesses) override {
    return transport_.begin_step(name, accesses);
  }
  Status poll() override { return transport_.poll(); }
  Status synchronize(Stream stream) override { return transport_.synchronize(stream); }
  void abort(std::string_view reason) override { transport_.abort(reason); }

 private:
  Transport& transport_;
};

#if TILEGATE_ON_SIMT

using Group = ThreadGroup;
inline int most_ranks() { return 8; }
inline void use_device_of(int /*rank*/) {}

#else

// Connecting GPUs takes a second: groups of the same size share their connections, until one fails.
class Group {
 public:
  Group(int size, std::chrono::milliseconds timeout)
      : timeout_(timeout), connections_(of_size(static_cast<std::size_t>(size))) {
    for (const std::unique_ptr<Transport>& transport : connections_.transports) {
      if (transport == nullptr || transport->poll().ok()) continue;
      connections_ = Connections(static_cast<std::size_t>(size));
      break;
    }
  }
  std::unique_ptr<Transport> join(int rank) {
    const auto index = static_cast<std::size_t>(rank);
    std::unique_ptr<Transport>& transport = connections_.transports[index];
    if (transport == nullptr) {
      const Status status = connect(connections_.comms[index], timeout_, &transport);
      if (!status.ok()) throw std::runtime_error(status.message());
    }
    return std::make_unique<ForwardingTransport>(*transport);
  }

 private:
  struct Connections {
    explicit Connections(std::size_t size) : comms(size), transports(size) {
      if (ncclCommInitAll(comms.data(), static_cast<int>(size), nullptr) != ncclSuccess) {
        throw std::runtime_error("ncclCommInitAll failed");
      }
    }
    std::vector<ncclComm_t> comms;
    std::vector<std::unique_ptr<Transport> > transports;
  };

  // Never destroyed: CUDA may end before static objects do.
  static Connections& of_size(std::size_t size) {
    static auto& all = *new std::map<std::size_t, Connections>;
    return all.try_emplace(size, size).first->second;
  }

  std::chrono::milliseconds timeout_;
  Connections& connections_;
};

inline int most_ranks() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? std::min(devices, 8) : 0;
}
inline void use_device_of(int rank) {
  if (cudaSetDevice(rank) != cudaSuccess) throw std::runtime_error("cudaSetDevice failed");
}

#endif

// Threads that are kept for all calls, because an executor starts slowly.
class RankThreads {
 public:
  ~RankThreads() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
  }

  void run(int ranks, const std::function<void(int)>& body) {
    std::unique_lock lock(mutex_);
    while (static_cast<int>(threads_.size()) < ranks) {
      const int rank = static_cast<int>(threads_.size());
      threads_.emplace_back([this, rank] { work(rank); });
      turns_.push_back(turn_);
    }
    body_ = &body;
    ranks_ = left_ = ranks;
    ++turn_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return left_ == 0; });
  }

 private:
  void work(int rank) {
    use_device_of(rank);
    std::unique_lock lock(mutex_);
    std::uint64_t& done = turns_[static_cast<std::size_t>(rank)];
    while (true) {
      changed_.wait(lock, [&] { return ends_ || (done != turn_ && rank < ranks_); });
      if (ends_) return;
      done = turn_;
      lock.unlock();
      (*body_)(rank);
      lock.lock();
      --left_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::uint64_t> turns_;  // per thread: number of the last call that it has run
  const std::function<void(int)>* body_ = nullptr;
  std::uint64_t turn_ = 0;
  int ranks_ = 0, left_ = 0;
  bool ends_ = false;
  std::vector<std::jthread> threads_;
};

// Runs `body(rank)` for all ranks concurrently, each on its device.
inline void for_each_rank(int ranks, const std::function<void(int)>& body) {
  static RankThreads threads;
  threads.run(ranks, body);
}

}  // namespace tilegate::distributed
