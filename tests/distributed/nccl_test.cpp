// NcclTransport with stand-ins for NCCL and the CUDA runtime: streams and events complete at once,
// those of a hanging rank never; messages go through mailboxes, or are copied.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/mman.h>

#include <tilegate/distributed/nccl.hpp>

#include "distributed/ranks.hpp"

// State that all communicators of a test share.
struct NcclWorld {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> boxes;  // from, to
  int size = 0;
  int aborted = 0, aborted_too_early = 0;
  int copies = 0;
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
  CUdeviceptr awaited = 0;             // the flag that a stream waits for, after a while
  int device = 0;
  cudaStream_t last_stream = nullptr;
};

namespace {

thread_local ncclComm* current = nullptr;  // communicator of this thread's rank
bool driver_has_flags = false;
constexpr std::chrono::milliseconds kMostWait{200};

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
  comm.world->changed.wait_for(lock, kMostWait, [&] {
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

CUresult write_flag(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned /*flags*/) {
  if (at == current->awaited && value == 1 && stream == current->last_stream) current->awaited = 0;
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).store(value);
  return CUDA_SUCCESS;
}

CUresult wait_for_flag(CUstream /*stream*/, CUdeviceptr at, cuuint32_t value, unsigned /*flags*/) {
  const auto end = std::chrono::steady_clock::now() + kMostWait;
  while (std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).load() != value) {
    if (std::chrono::steady_clock::now() > end) current->awaited = at;
    if (current->awaited != 0) break;
    std::this_thread::yield();
  }
  return CUDA_SUCCESS;
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
  *device = comm->device;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t /*comm*/) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t /*comm*/) { return ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(comm->world->mutex);
  ++comm->world->aborted;
  if (comm->awaited != 0) ++comm->world->aborted_too_early;
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
  const cudaError_t made_it = make(stream);
  current->last_stream = *stream;  // the last one is for flags after an error
  return made_it;
}
cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  enqueued.push_back({stream, event, true});
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t /*stream*/) {
  return current->receives.empty() && current->awaited == 0 ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaMemset(void* devPtr, int value, std::size_t count) {
  std::fill_n(static_cast<char*>(devPtr), count, static_cast<char>(value));
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t count, cudaMemcpyKind kind,
                            cudaStream_t /*stream*/) {
  const std::lock_guard lock(current->world->mutex);
  current->world->copies += kind == cudaMemcpyDeviceToDevice ? 1 : 0;
  std::copy_n(static_cast<const char*>(src), count, static_cast<char*>(dst));
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int /*device*/, unsigned /*flags*/) { return cudaSuccess; }
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* /*handle*/, void* /*data*/) {
  return cudaErrorNotSupported;
}
cudaError_t cudaIpcOpenMemHandle(void** /*data*/, cudaIpcMemHandle_t /*handle*/,
                                 unsigned /*flags*/) {
  return cudaErrorNotSupported;
}
cudaError_t cudaIpcCloseMemHandle(void* /*data*/) { return cudaSuccess; }
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** funcPtr,
                                             unsigned /*cudaVersion*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* driverStatus) {
  *funcPtr = std::string_view(symbol) == "cuStreamWriteValue32"
                 ? reinterpret_cast<void*>(write_flag)
                 : reinterpret_cast<void*>(wait_for_flag);
  *driverStatus =
      driver_has_flags ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
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

// Both ways to exchange messages.
class Nccl : public testing::TestWithParam<bool> {
 protected:
  static constexpr std::chrono::milliseconds kTimeout{300};

  void SetUp() override { driver_has_flags = GetParam(); }

  // Runs `body(transport, comm)` on each rank.
  void run(int size, const std::function<void(Transport&, ncclComm&)>& body) {
    world_.size = size;
    for_each_rank(size, [&](int rank) {
      ncclComm comm{&world_, rank};
      std::unique_ptr<Transport> transport;
      const Status status = connect(&comm, kTimeout, &transport);
      ASSERT_TRUE(status.ok()) << status.message();
      body(*transport, comm);
    });
  }

  NcclWorld world_;
};
INSTANTIATE_TEST_SUITE_P(Exchanges, Nccl, testing::Bool(), [](const auto& each) {
  return each.param ? "ByCopies" : "BySendAndReceive";
});

TEST_P(Nccl, MultipliesInBothFormsAndSchedules) {
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
      EXPECT_EQ(std::exchange(world_.copies, 0), GetParam() ? 6 : 0);
    }
  }
  EXPECT_EQ(world_.aborted, 0);
}

// A rank's digits take one exchange more than there are ranks.
TEST_P(Nccl, MultipliesDigits) {
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
TEST_P(Nccl, EventsOrderExchangesWithTheStream) {
  run(2, [&](Transport& transport, ncclComm& /*comm*/) {
    std::unique_ptr<Memory> memory;
    EXPECT_TRUE(transport.allocate(0, &memory).ok());
    auto* const stream = reinterpret_cast<Stream>(std::uintptr_t{1000});
    enqueued.clear();
    EXPECT_TRUE(transport.fork(stream).ok());
    for (const int number : {1, transport.size() + 1}) {
      EXPECT_TRUE(transport.exchange(number, *memory, {}, {}).ok());
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

TEST_P(Nccl, EventsOrderTheSecondStreamWithTheFirst) {
  run(1, [&](Transport& transport, ncclComm& /*comm*/) {
    auto* const stream = reinterpret_cast<Stream>(std::uintptr_t{1000});
    std::vector<Stream> sides;
    for (const bool goes_first : {false, true}) {
      Stream side = nullptr;
      enqueued.clear();
      EXPECT_TRUE(transport.branch(stream, goes_first, &side).ok());
      EXPECT_TRUE(transport.join(side, stream).ok());
      ASSERT_EQ(enqueued.size(), 4U);
      const cudaEvent_t branched = enqueued[0].event, joined = enqueued[2].event;
      EXPECT_NE(branched, joined);
      EXPECT_EQ(enqueued, (std::vector<Enqueued>{{stream, branched, false},
                                                 {side, branched, true},
                                                 {side, joined, false},
                                                 {stream, joined, true}}));
      sides.push_back(side);
    }
    EXPECT_NE(sides[0], stream);
    EXPECT_NE(sides[1], stream);
    EXPECT_NE(sides[0], sides[1]);
  });
}

TEST_P(Nccl, TheFirstFailureStays) {
  run(2, [&](Transport& transport, ncclComm& /*comm*/) {
    transport.abort("rank 7 is out of memory");
    transport.abort("rank 8, too");
    EXPECT_EQ(transport.poll().message(), "rank 7 is out of memory");
  });
}

TEST_P(Nccl, AMissingRankIsNamedAndTheCommunicatorAborted) {
  run(3, [&](Transport& transport, ncclComm& /*comm*/) {
    std::unique_ptr<Memory> memory, none;
    EXPECT_TRUE(transport.allocate(4, &memory).ok());
    if (transport.rank() == 2) return;
    const Status status = transport.allocate(4, &none);
    EXPECT_EQ(status.message(), "rank 2 has not joined: no answer for 300 ms");
    EXPECT_EQ(transport.poll().message(), status.message());
    std::vector<Card> cards;
    Stream side = nullptr;
    for (const Status& later :
         {transport.fork(nullptr), transport.exchange(1, *memory, {}, {}),
          transport.wait(1, nullptr), transport.branch(nullptr, false, &side),
          transport.join(nullptr, nullptr), transport.synchronize(nullptr),
          transport.agree(Card::of("plan"), cards), transport.allocate(4, &none)}) {
      EXPECT_EQ(later.message(), status.message());
    }
  });
  EXPECT_EQ(world_.aborted, 2);
}

TEST_P(Nccl, ARankWithoutRoomFailsOnAll) {
  run(2, [&](Transport& transport, ncclComm& /*comm*/) {
    std::unique_ptr<Memory> memory;
    const Status status =
        transport.allocate(transport.rank() == 1 ? std::size_t{1} << 60 : 4, &memory);
    EXPECT_EQ(status.message(), "rank 1 fails: no room for 1152921504606846976 bytes");
  });
}

// The first rank destroys its memory before the next plan, the second one after it.
TEST_P(Nccl, AllocatesWhereOnlyOneRankHasDestroyedMemory) {
  run(2, [&](Transport& transport, ncclComm& /*comm*/) {
    std::unique_ptr<Memory> old, fresh;
    for (int plan = 0; plan < 3; ++plan) {
      if (transport.rank() == 0) fresh.reset();
      std::swap(old, fresh);
      const Status status = transport.allocate(4, &fresh);
      ASSERT_TRUE(status.ok()) << status.message();
      const int other = 1 - transport.rank();
      const std::vector<char> sent(4, static_cast<char>(10 * plan + transport.rank()));
      const Incoming in[] = {{.rank = other, .bytes = 4}};
      const Outgoing out[] = {{.rank = other, .data = sent.data(), .bytes = 4}};
      ASSERT_TRUE(transport.exchange(1, *fresh, out, in).ok());
      EXPECT_EQ(static_cast<char>(*fresh->data()), static_cast<char>(10 * plan + other));
    }
  });
}

bool is_mapped(std::byte* page) { return msync(page, 1, MS_ASYNC) == 0; }

TEST_P(Nccl, FreesTheMemoryOfDestroyedPlans) {
  run(2, [&](Transport& transport, ncclComm& /*comm*/) {
    std::set<std::byte*> all;
    std::unique_ptr<Memory> memory;
    for (int plan = 0; plan < 6; ++plan) {
      memory.reset();
      ASSERT_TRUE(transport.allocate(std::size_t{4} << 20, &memory).ok());
      all.insert(memory->data());
    }
    // The last of each rank; either may have the address of an earlier one.
    EXPECT_LE(std::ranges::count_if(all, is_mapped), 2);
  });
}

// A rank sends when the receiver is ready, and continues when data have arrived, in each launch.
TEST_P(Nccl, EachLaunchWaitsForItsOwnExchange) {
  if (!GetParam()) return;
  run(2, [&](Transport& transport, ncclComm& /*comm*/) {
    std::unique_ptr<Memory> memory;
    ASSERT_TRUE(transport.allocate(4, &memory).ok());
    const int other = 1 - transport.rank();
    const Incoming in[] = {{.rank = other, .bytes = 4}};
    for (int launch = 0; launch < 6; ++launch) {
      const std::vector<char> sent(4, static_cast<char>(launch + 1));
      const Outgoing out[] = {{.rank = other, .data = sent.data(), .bytes = 4}};
      const auto received = [&] { return static_cast<int>(*memory->data()); };
      if (launch % 2 == transport.rank()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(received(), launch) << "before the exchange of this launch";
      }
      ASSERT_TRUE(transport.exchange(1, *memory, out, in).ok());
      EXPECT_EQ(received(), launch + 1);
    }
  });
}

TEST_P(Nccl, ARankThatDoesNotConnectIsNamed) {
  world_.size = 2;
  ncclComm comm{&world_, 0};
  std::unique_ptr<Transport> transport;
  EXPECT_EQ(connect(&comm, kTimeout, &transport).message(),
            "rank 1 has not joined: no answer for 300 ms");
}

TEST_P(Nccl, AnExchangeThatHangsNamesItsRanks) {
  for (const bool receives : {true, false}) {
    if (!receives && !GetParam()) continue;  // the stand-in's sends do not wait for the receiver
    run(2, [&](Transport& transport, ncclComm& /*comm*/) {
      std::unique_ptr<Memory> memory;
      ASSERT_TRUE(transport.allocate(4, &memory).ok());
      const int other = 1 - transport.rank();
      const Incoming in[] = {{.rank = other, .bytes = 4}};
      const Outgoing out[] = {{.rank = other, .data = memory->data(), .bytes = 4}};
      EXPECT_TRUE(transport.exchange(1, *memory, out, in).ok());  // of an earlier launch
      if (transport.rank() == 1) return;
      const Status status = receives ? transport.exchange(2, *memory, {}, in)
                                     : transport.exchange(2, *memory, out, {});
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(transport.synchronize(nullptr).message(),
                "rank 1, in exchange 1 of rank 0: no answer for 300 ms");
    });
    EXPECT_EQ(std::exchange(world_.aborted, 0), 1);
    EXPECT_EQ(world_.aborted_too_early, 0);
    EXPECT_EQ(std::exchange(world_.copies, 0), !GetParam() ? 0 : receives ? 2 : 3);
  }
}

// A rank that fails releases its exchanges: they send anything, but not unnoticed.
TEST_P(Nccl, AFailureReachesTheOtherRanks) {
  if (!GetParam()) return;  // NCCL's own exchanges end by the timeout
  std::atomic<bool> has_failed = false;
  run(2, [&](Transport& transport, ncclComm& /*comm*/) {
    std::unique_ptr<Memory> memory;
    ASSERT_TRUE(transport.allocate(4, &memory).ok());
    if (transport.rank() == 1) {
      transport.abort("rank 1 is out of memory");
      has_failed = true;
      return;
    }
    while (!has_failed) std::this_thread::yield();
    EXPECT_EQ(transport.synchronize(nullptr).message(), "rank 1 has failed");
    EXPECT_EQ(transport.poll().message(), "rank 1 has failed");
  });
  EXPECT_EQ(world_.aborted, 2);
}

// Poll has no stream to wait for.
TEST_P(Nccl, AnAbortReleasesTheExchangeThatHangs) {
  run(2, [&](Transport& transport, ncclComm& comm) {
    std::unique_ptr<Memory> memory;
    ASSERT_TRUE(transport.allocate(4, &memory).ok());
    if (transport.rank() == 1) return;
    const Incoming in[] = {{.rank = 1, .bytes = 4}};
    EXPECT_TRUE(transport.exchange(1, *memory, {}, in).ok());
    comm.fails = true;
    EXPECT_EQ(transport.poll().message(), "NCCL: remote error: socket closed");
  });
  EXPECT_EQ(world_.aborted, 1);
  EXPECT_EQ(world_.aborted_too_early, 0);
}

TEST_P(Nccl, AsynchronousErrorsAreFoundByLaunchAndSynchronize) {
  run(1, [&](Transport& transport, ncclComm& comm) {
    DistributedSgemm sgemm(transport,
                           DistributedProblem::even(Form::kColumnParallel, {4, 4, 4}, 1, 0));
    EXPECT_TRUE(sgemm.ok()) << sgemm.status().message();
    EXPECT_TRUE(transport.synchronize(nullptr).ok());
    comm.fails = true;
    EXPECT_EQ(sgemm.launch({}).message(), "NCCL: remote error: socket closed");
    EXPECT_EQ(transport.synchronize(nullptr).message(), "NCCL: remote error: socket closed");
  });
  EXPECT_EQ(world_.aborted, 1);
}

TEST_P(Nccl, ACommunicatorOfAnotherDeviceIsRefused) {
  world_.size = 1;
  ncclComm comm{&world_, 0, {}, false, 0, 1};
  std::unique_ptr<Transport> transport;
  const Status status = connect(&comm, kTimeout, &transport);
  EXPECT_EQ(status.argument(), "comm");
  EXPECT_EQ(status.message(), "the communicator is of device 1, and device 0 is current");
}

}  // namespace
}  // namespace tilegate::distributed
