// NcclTransport with stand-ins for NCCL and the CUDA runtime: streams and events complete at once,
// those of a hanging rank never; messages go through mailboxes.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <tilegate/distributed/nccl.hpp>

#include "distributed/ranks.hpp"

// State that all communicators of a test share.
struct NcclWorld {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> boxes;  // from, to
  int size = 0;
  int aborted = 0;
};

struct ncclComm {
  NcclWorld* world;
  int rank;
  struct Receive {
    int from;
    void* data;
    std::size_t bytes;
  };
  std::vector<Receive> receives = {};  // of the open group, and without a message so far
  bool fails = false;                  // has an asynchronous error
};

namespace {

thread_local ncclComm* current = nullptr;  // communicator of this thread's rank

// What this thread has enqueued: an event that a stream records, or waits for.
struct Enqueued {
  cudaStream_t stream;
  cudaEvent_t event;
  bool waits;
  friend bool operator==(const Enqueued&, const Enqueued&) = default;
};
thread_local std::vector<Enqueued> enqueued;
thread_local std::uintptr_t made = 0;  // streams and events

template <typename Handle>
cudaError_t make(Handle* handle) {
  *handle = reinterpret_cast<Handle>(++made);
  return cudaSuccess;
}

// Receives messages that have been sent; waits a short time for the others.
bool deliver(ncclComm& comm) {
  std::unique_lock lock(comm.world->mutex);
  comm.world->changed.wait_for(lock, std::chrono::milliseconds(200), [&] {
    std::erase_if(comm.receives, [&](const ncclComm::Receive& receive) {
      auto& box = comm.world->boxes[{receive.from, comm.rank}];
      if (box.empty()) return false;
      EXPECT_EQ(box.front().size(), receive.bytes);
      std::ranges::copy(box.front(), static_cast<char*>(receive.data));
      box.pop_front();
      return true;
    });
    return comm.receives.empty();
  });
  return comm.receives.empty();
}

}  // namespace

extern "C" {

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  current = comm;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  *count = comm->world->size;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  *device = comm->world->size == 1 ? 1 : 0;  // a lone rank is on another device
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t /*comm*/) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t /*comm*/) { return ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(comm->world->mutex);
  ++comm->world->aborted;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = comm->fails ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t /*result*/) { return "remote error"; }
const char* ncclGetLastError(ncclComm_t /*comm*/) { return "socket closed"; }
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  deliver(*current);
  return ncclInProgress;  // as a non-blocking communicator does
}
ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t /*type*/, int peer,
                      ncclComm_t comm, cudaStream_t /*stream*/) {
  const std::lock_guard lock(comm->world->mutex);
  comm->world->boxes[{comm->rank, peer}].emplace_back(static_cast<const char*>(data),
                                                      static_cast<const char*>(data) + count);
  comm->world->changed.notify_all();
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t /*type*/, int peer,
                      ncclComm_t comm, cudaStream_t /*stream*/) {
  comm->receives.push_back({peer, data, count});
  return ncclSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/,
                                         int /*priority*/) {
  return make(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  enqueued.push_back({stream, event, true});
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t /*stream*/) {
  return current->receives.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) { return make(event); }
cudaError_t cudaEventDestroy(cudaEvent_t /*event*/) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  enqueued.push_back({stream, event, false});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t /*event*/) { return cudaStreamQuery(nullptr); }
const char* cudaGetErrorString(cudaError_t /*error*/) { return "CUDA error"; }

}  // extern "C"

namespace tilegate::distributed {
namespace {

class Nccl : public testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kTimeout{300};

  // Runs `body(transport, comm)` on each rank that is not in `missing`.
  void run(int size, const std::function<void(Transport&, ncclComm&)>& body,
           const std::vector<int>& missing = {}) {
    world_.size = size;
    for_each_rank(size, [&](int rank) {
      if (std::ranges::count(missing, rank) > 0) return;
      ncclComm comm{&world_, rank};
      std::unique_ptr<Transport> transport;
      const Status status = connect(&comm, kTimeout, &transport);
      ASSERT_TRUE(status.ok()) << status.message();
      body(*transport, comm);
    });
  }

  NcclWorld world_;
};

TEST_F(Nccl, MultipliesInBothFormsAndSchedules) {
  for (const Form form : kForms) {
    for (const Schedule schedule : kSchedules) {
      Whole whole{.problem = Problem::dense({7, 6, 5})};
      whole.a.resize(35, 1.0F);
      whole.b.resize(30, 2.0F);
      whole.c.resize(42);
      const Layout layout{.form = form, .ranks = 3, .schedule = schedule};
      const DistributedProblem shared = distributed(layout, whole.problem);
      run(3, [&](Transport& transport, ncclComm& /*comm*/) {
        const Status status = multiply_on(transport, shared, whole);
        EXPECT_TRUE(status.ok()) << status.message();
      });
      EXPECT_EQ(whole.c, std::vector<float>(42, 10.0F));
    }
  }
  EXPECT_EQ(world_.aborted, 0);
}

// A rank's digits take one exchange more than there are ranks.
TEST_F(Nccl, MultipliesDigits) {
  for (const Form form : kForms) {
    Whole whole{.problem = Problem::dense({7, 6, 5})};
    whole.problem.math = Math::fp32_split;
    whole.a.resize(35, 1.0F);
    whole.b.resize(30, 2.0F);
    whole.c.resize(42);
    const Layout layout{
        .form = form, .ranks = 3, .schedule = Schedule::kOverlapped, .same_bits = true};
    const DistributedProblem shared = distributed(layout, whole.problem);
    run(3, [&](Transport& transport, ncclComm& /*comm*/) {
      const Status status = multiply_on(transport, shared, whole);
      EXPECT_TRUE(status.ok()) << status.message();
    });
    EXPECT_EQ(whole.c, std::vector<float>(42, 10.0F));
  }
}

// Exchanges run in a stream of their own: after what the caller's stream had at fork, before what
// it has after wait.
TEST_F(Nccl, EventsOrderExchangesWithTheStream) {
  run(2, [&](Transport& transport, ncclComm& /*comm*/) {
    auto* const stream = reinterpret_cast<Stream>(std::uintptr_t{1000});
    enqueued.clear();
    EXPECT_TRUE(transport.fork(stream).ok());
    for (const int number : {1, transport.size() + 1}) {
      EXPECT_TRUE(transport.exchange(number, {}, {}).ok());
    }
    for (const int number : {1, transport.size() + 1}) {
      EXPECT_TRUE(transport.wait(number, stream).ok());
    }
    ASSERT_EQ(enqueued.size(), 6U);
    const auto [own, forked, waits] = enqueued[1];
    EXPECT_NE(own, stream);
    const cudaEvent_t first = enqueued[2].event, last = enqueued[3].event;
    EXPECT_NE(first, last);
    EXPECT_EQ(enqueued, (std::vector<Enqueued>{{stream, forked, false},
                                               {own, forked, true},
                                               {own, first, false},
                                               {own, last, false},
                                               {stream, first, true},
                                               {stream, last, true}}));
  });
}

TEST_F(Nccl, TheFirstFailureStays) {
  run(2, [&](Transport& transport, ncclComm& /*comm*/) {
    transport.abort("rank 7 is out of memory");
    transport.abort("rank 8, too");
    EXPECT_EQ(transport.poll().message(), "rank 7 is out of memory");
  });
}

TEST_F(Nccl, AMissingRankIsNamedAndTheCommunicatorAborted) {
  run(3,
      [&](Transport& transport, ncclComm& /*comm*/) {
        std::vector<Card> cards;
        const Status status = transport.agree(Card::of("plan"), cards);
        EXPECT_EQ(status.message(), "rank 2 has sent no plan: no answer for 300 ms");
        EXPECT_EQ(transport.poll().message(), status.message());
        for (const Status& later :
             {transport.fork(nullptr), transport.exchange(1, {}, {}), transport.wait(1, nullptr),
              transport.synchronize(nullptr), transport.agree(Card::of("plan"), cards)}) {
          EXPECT_EQ(later.message(), status.message());
        }
      },
      {2});
  EXPECT_EQ(world_.aborted, 2);
}

TEST_F(Nccl, AnExchangeThatHangsNamesItsRanks) {
  run(2,
      [&](Transport& transport, ncclComm& /*comm*/) {
        float number = 0.0F;
        const Incoming in[] = {{1, &number, sizeof(number)}};
        const Outgoing own[] = {{0, &number, sizeof(number)}};  // of an earlier launch
        EXPECT_TRUE(transport.exchange(1, own, {}).ok());
        EXPECT_TRUE(transport.exchange(1, {}, in).ok());
        EXPECT_EQ(transport.synchronize(nullptr).message(),
                  "rank 1, in exchange 1 of rank 0: no answer for 300 ms");
      },
      {1});
  EXPECT_EQ(world_.aborted, 1);
}

TEST_F(Nccl, AsynchronousErrorsAreFoundByLaunchAndSynchronize) {
  run(2, [&](Transport& transport, ncclComm& comm) {
    DistributedSgemm sgemm(
        transport, DistributedProblem::even(Form::kColumnParallel, {4, 4, 4}, 2, transport.rank()));
    EXPECT_TRUE(sgemm.ok()) << sgemm.status().message();
    EXPECT_TRUE(transport.synchronize(nullptr).ok());
    comm.fails = true;
    EXPECT_EQ(sgemm.launch({}).message(), "NCCL: remote error: socket closed");
    EXPECT_EQ(transport.synchronize(nullptr).message(), "NCCL: remote error: socket closed");
  });
  EXPECT_EQ(world_.aborted, 2);
}

TEST_F(Nccl, ACommunicatorOfAnotherDeviceIsRefused) {
  world_.size = 1;
  ncclComm comm{&world_, 0};
  std::unique_ptr<Transport> transport;
  const Status status = connect(&comm, kTimeout, &transport);
  EXPECT_EQ(status.argument(), "comm");
  EXPECT_EQ(status.message(), "the communicator is of device 1, and device 0 is current");
}

}  // namespace
}  // namespace tilegate::distributed
