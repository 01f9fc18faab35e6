// NcclTransport: a stream for the exchanges, and one event per exchange.
//
// If every rank can write to the memory of every other one, copy engines exchange the messages, so
// that exchanges take no multiprocessors from the multiplications. Two flags per exchange and pair
// of ranks order the copies; streams write them and wait for them:
//
//   receiver   ready ← 1                                  wait for arrived; arrived ← 0
//   sender     wait for ready; ready ← 0; copy; arrived ← 1
//
// Otherwise NCCL exchanges the messages.
#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <tilegate/distributed/nccl.hpp>

#include "device/cuda/driver_function.hpp"
#include "peer_memory.hpp"

static_assert(NCCL_VERSION_CODE >= NCCL_VERSION(2, 14, 0), "communicators that do not block");

namespace tilegate::distributed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kPollInterval{50};
// For a captured exchange, which does not tell whether it is complete.
constexpr std::chrono::milliseconds kReleaseOfGraphs{200};
constexpr char kNotArrived = '\xFF';  // no card begins with this byte

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

Status to_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  return Status::device_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// The driver's functions for flags.
struct Driver {
  PFN_cuStreamWriteValue32_v11070 write = nullptr;
  PFN_cuStreamWaitValue32_v11070 wait = nullptr;

  bool find() {
    return device::find_driver_function("cuStreamWriteValue32", 11070, &write).ok() &&
           device::find_driver_function("cuStreamWaitValue32", 11070, &wait).ok();
  }
};

enum class Flag : std::uint8_t { kReady, kArrived };

class NcclTransport : public Transport {
 public:
  NcclTransport(ncclComm_t comm, std::chrono::milliseconds timeout)
      : comm_(comm), timeout_(timeout) {}

  ~NcclTransport() override {
    if (comm_ != nullptr && settle(ncclCommFinalize(comm_), "ncclCommFinalize").ok()) {
      ncclCommDestroy(comm_);
    }
    for (const cudaEvent_t event : complete_) cudaEventDestroy(event);
    for (const cudaEvent_t event : {forked_, branched_, joined_}) {
      if (event != nullptr) cudaEventDestroy(event);
    }
    for (const cudaStream_t stream : {stream_, side_, first_, release_}) {
      if (stream != nullptr) cudaStreamDestroy(stream);
    }
  }

  Status prepare() {
    int device = 0;
    if (Status s = settle(ncclInProgress, "communicator"); !s.ok()) return s;
    for (const auto& [result, what] :
         {std::pair{ncclCommUserRank(comm_, &rank_), "ncclCommUserRank"},
          std::pair{ncclCommCount(comm_, &size_), "ncclCommCount"},
          std::pair{ncclCommCuDevice(comm_, &device), "ncclCommCuDevice"}}) {
      if (Status s = settle(result, what); !s.ok()) return s;
    }
    if (device != device::current().ordinal) {
      return Status::invalid_argument(
          "comm", "the communicator is of device " + std::to_string(device) + ", and device " +
                      std::to_string(device::current().ordinal) + " is current");
    }
    int least = 0, greatest = 0;
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    for (cudaStream_t* stream : {&stream_, &side_, &first_, &release_}) {
      if (error != cudaSuccess) break;
      error = cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking,
                                           stream == &side_ ? least : greatest);
    }
    for (cudaEvent_t* event : {&forked_, &branched_, &joined_}) {
      if (error == cudaSuccess) error = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    }
    for (int i = 0; i <= size_ + 1 && error == cudaSuccess; ++i) {
      cudaEvent_t event = nullptr;
      error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
      if (error == cudaSuccess) complete_.push_back(event);
    }
    peers_.resize(complete_.size());
    cards_ = device::Buffer(static_cast<std::size_t>(size_ + 1) * sizeof(Card));
    if (error != cudaSuccess) return to_status(error, "streams and events of the transport");
    return share((num_flags() + 1) * sizeof(std::uint32_t), size_ > 1 && driver_.find(), &flags_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  // One message to and from each other rank, so that a missing message names its rank.
  Status agree(const Card& mine, std::vector<Card>& all) override {
    if (Status s = poll(); !s.ok()) return s;
    Card missing_card;
    missing_card.text[0] = kNotArrived;
    all.assign(static_cast<std::size_t>(size_), missing_card);
    const std::size_t bytes = all.size() * sizeof(Card);
    std::byte* const sent = cards_.data() + bytes;
    cudaError_t error =
        cudaMemcpyAsync(cards_.data(), all.data(), bytes, cudaMemcpyHostToDevice, stream_);
    if (error == cudaSuccess) {
      error = cudaMemcpyAsync(sent, &mine, sizeof(Card), cudaMemcpyHostToDevice, stream_);
    }
    if (error != cudaSuccess) return fail_with(error, "card of the rank");
    ncclGroupStart();
    for (int i = 0; i < size_; ++i) {
      if (i == rank_) continue;
      ncclSend(sent, sizeof(Card), ncclUint8, i, comm_, stream_);
      ncclRecv(cards_.data() + static_cast<std::size_t>(i) * sizeof(Card), sizeof(Card), ncclUint8,
               i, comm_, stream_);
    }
    if (Status s = settle(ncclGroupEnd(), "exchange of plans"); !s.ok()) return s;
    const std::string trouble = wait_for(stream_);
    // Before an abort, at which NCCL's kernels may store anything in the cards; and on a stream
    // that waits for no other rank.
    error = cudaMemcpyAsync(all.data(), cards_.data(), bytes, cudaMemcpyDeviceToHost, release_);
    all[static_cast<std::size_t>(rank_)] = mine;
    if (trouble.empty() && error == cudaSuccess) return {};
    if (trouble.empty()) return fail_with(error, "cards of the ranks");
    std::string missing;
    for (int i = 0; error == cudaSuccess && i < size_; ++i) {
      if (all[static_cast<std::size_t>(i)].text[0] != kNotArrived) continue;
      missing += (missing.empty() ? "" : ", ") + name_of(i);
    }
    return fail((missing.empty() ? "a rank" : missing) + " has not joined: " + trouble);
  }

  Status allocate(std::size_t bytes, std::unique_ptr<Memory>* memory) override {
    if (Status s = free_retired(); !s.ok()) return s;
    std::unique_ptr<PeerMemory> shared;
    if (Status s = share(bytes, has_flags(), &shared); !s.ok()) return s;
    *memory = std::make_unique<LentMemory>(std::move(shared), retired_);
    return {};
  }

  Status fork(Stream stream) override { return order(forked_, stream, stream_, "fork"); }

  Status exchange(int number, const Memory& memory, std::span<const Outgoing> out,
                  std::span<const Incoming> in) override {
    if (comm_ == nullptr) return failed();
    const auto index = static_cast<std::size_t>(number);
    std::vector<int>& peers = peers_[index];
    peers.clear();
    for (const Incoming& message : in) peers.push_back(message.rank);
    for (const Outgoing& message : out) {
      if (std::ranges::count(peers, message.rank) == 0) peers.push_back(message.rank);
    }
    Status status;
    if (!peers.empty()) {
      const PeerMemory& own = static_cast<const LentMemory&>(memory).memory();
      status = own.is_reached() ? copy(number, own, out, in) : send_and_receive(own, out, in);
    }
    if (comm_ == nullptr) return status;
    // After an error, too: what was enqueued before it waits, and is to be released.
    begun_ = number;
    const cudaError_t error = cudaEventRecord(complete_[index], stream_);
    return status.ok() ? to_status(error, "exchange") : status;
  }

  Status wait(int number, Stream stream) override {
    if (comm_ == nullptr) return failed();
    return to_status(cudaStreamWaitEvent(stream, complete_[static_cast<std::size_t>(number)], 0),
                     "wait");
  }

  Status branch(Stream stream, bool goes_first, Stream* side) override {
    *side = goes_first ? first_ : side_;
    return order(branched_, stream, *side, "branch");
  }

  Status join(Stream side, Stream stream) override { return order(joined_, side, stream, "join"); }

  Status poll() override {
    if (comm_ == nullptr) return failed();
    const std::string error = asynchronous_error();
    return error.empty() ? Status() : fail(error);
  }

  Status synchronize(Stream stream) override {
    if (comm_ == nullptr) return failed();
    const std::string trouble = wait_for(stream);
    if (trouble.empty()) {
      std::uint32_t number = 0;
      if (Status s = failed_rank(&number); !s.ok()) return fail(s.message());
      if (number == 0) return {};
      return fail(name_of(static_cast<int>(number) - 1) + " has failed");
    }
    const std::string reason = first_incomplete() + trouble;
    release([stream] { return cudaStreamQuery(stream) == cudaErrorNotReady; });
    return fail(reason);
  }

  void abort(std::string_view reason) override { static_cast<void>(fail(std::string(reason))); }

 private:
  // The memory of a plan, which survives the plan: see free_retired.
  class LentMemory : public Memory {
   public:
    using Retired = std::vector<std::unique_ptr<PeerMemory>>;
    LentMemory(std::unique_ptr<PeerMemory> memory, Retired& retired)
        : memory_(std::move(memory)), retired_(retired) {}
    ~LentMemory() override { retired_.push_back(std::move(memory_)); }
    LentMemory(const LentMemory&) = delete;
    LentMemory& operator=(const LentMemory&) = delete;

    std::byte* data() const override { return memory_->data(); }
    const PeerMemory& memory() const { return *memory_; }

   private:
    std::unique_ptr<PeerMemory> memory_;
    Retired& retired_;
  };

  // Collective: frees the memory of destroyed plans. cudaFree may wait for the devices of all ranks
  // of the process, and so for exchanges: here every rank has enqueued its part of them. Memory
  // that another process has opened is closed there first.
  Status free_retired() {
    std::vector<Card> cards;
    const auto vote = [&] { return agree(Card::of(retired_.empty() ? "" : "retired"), cards); };
    if (Status s = vote(); !s.ok()) return s;
    const auto has_some = [](const Card& card) { return card.text[0] != '\0'; };
    if (std::ranges::none_of(cards, has_some)) return {};
    for (const std::unique_ptr<PeerMemory>& memory : retired_) memory->close_others();
    Status status = vote();
    retired_.clear();
    return status;
  }

  // Whether the ranks have flags in each other's memory.
  bool has_flags() const { return flags_ != nullptr && flags_->is_reached(); }

  Status failed() const { return Status::device_error(failure_); }

  // Later failures do not replace the first one.
  Status fail(const std::string& reason) {
    if (failure_.empty()) {
      failure_ = reason;
      tell_others();
    }
    end();
    return failed();
  }

  Status fail_with(cudaError_t error, const char* what) {
    return fail(to_status(error, what).message());
  }

  // Before the exchanges of this rank are released, which then send anything: the number of this
  // rank, behind the flags of the others.
  void tell_others() {
    if (!has_flags()) return;
    for (int i = 0; i < size_; ++i) {
      if (i == rank_) continue;
      driver_.write(release_, address_of(flags_->of(i), num_flags()),
                    static_cast<std::uint32_t>(rank_ + 1), CU_STREAM_WRITE_VALUE_DEFAULT);
    }
  }

  // The rank that has told of its failure; 0: none, else its number plus 1.
  Status failed_rank(std::uint32_t* number) const {
    *number = 0;
    if (!has_flags()) return {};
    const std::byte* const at = flags_->data() + num_flags() * sizeof(*number);
    return to_status(cudaMemcpyAsync(number, at, sizeof(*number), cudaMemcpyDeviceToHost, release_),
                     "failures of other ranks");
  }

  void end() {
    // First, because ncclCommAbort may wait for the device.
    const Clock::time_point last = Clock::now() + kReleaseOfGraphs;
    release([this, last] {
      const cudaError_t state = cudaEventQuery(complete_[static_cast<std::size_t>(begun_)]);
      return state == cudaErrorNotReady || (state == cudaErrorCapturedEvent && Clock::now() < last);
    });
    if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
  }

  // Sets the flags for which exchanges wait, because ranks that are gone will not, until
  // `is_waiting` is false. Not by a copy: it could be queued behind one that waits.
  template <typename IsWaiting>
  void release(IsWaiting is_waiting) {
    if (!has_flags()) return;
    const Clock::time_point last = Clock::now() + timeout_;
    while (is_waiting() && Clock::now() < last) {
      for (std::size_t i = 0; i < num_flags(); ++i) {
        driver_.write(release_, address_of(flags_->data(), i), 1, CU_STREAM_WRITE_VALUE_DEFAULT);
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  }

  static CUdeviceptr address_of(std::byte* flags, std::size_t index) {
    return reinterpret_cast<CUdeviceptr>(flags) + index * sizeof(std::uint32_t);
  }

  // Later work of `second` starts after the work that `first` has now.
  Status order(cudaEvent_t event, Stream first, Stream second, const char* what) {
    if (comm_ == nullptr) return failed();
    cudaError_t error = cudaEventRecord(event, first);
    if (error == cudaSuccess) error = cudaStreamWaitEvent(second, event, 0);
    return to_status(error, what);
  }

  Status share(std::size_t bytes, bool can_copy, std::unique_ptr<PeerMemory>* memory) {
    const auto agree_on = [this](const Card& mine, std::vector<Card>& all) {
      return agree(mine, all);
    };
    return PeerMemory::share(bytes, rank_, agree_on, can_copy, memory);
  }

  Status send_and_receive(const PeerMemory& memory, std::span<const Outgoing> out,
                          std::span<const Incoming> in) {
    ncclGroupStart();
    for (const Incoming& message : in) {
      ncclRecv(memory.data() + message.at, message.bytes, ncclUint8, message.rank, comm_, stream_);
    }
    for (const Outgoing& message : out) {
      ncclSend(message.data, message.bytes, ncclUint8, message.rank, comm_, stream_);
    }
    return settle(ncclGroupEnd(), "exchange");
  }

  Status copy(int number, const PeerMemory& memory, std::span<const Outgoing> out,
              std::span<const Incoming> in) {
    // Flags in the memory of rank `at`, of its exchange with rank `with`.
    const auto flag = [&](int at, Flag kind, int with) {
      std::byte* const flags = at == rank_ ? flags_->data() : flags_->of(at);
      const int index = (static_cast<int>(kind) * (size_ + 2) + number) * size_ + with;
      return address_of(flags, static_cast<std::size_t>(index));
    };
    bool works = true;
    const auto set = [&](CUdeviceptr at, std::uint32_t value) {
      works = works && driver_.write(stream_, at, value, CU_STREAM_WRITE_VALUE_DEFAULT) == 0;
    };
    const auto take = [&](CUdeviceptr at) {  // waits for it, and resets it
      works = works && driver_.wait(stream_, at, 1, CU_STREAM_WAIT_VALUE_EQ) == 0;
      set(at, 0);
    };
    for (const Incoming& message : in) set(flag(message.rank, Flag::kReady, rank_), 1);
    for (const Outgoing& message : out) {
      take(flag(rank_, Flag::kReady, message.rank));
      const cudaError_t error = cudaMemcpyAsync(memory.of(message.rank) + message.at, message.data,
                                                message.bytes, cudaMemcpyDeviceToDevice, stream_);
      if (error != cudaSuccess) return to_status(error, "copy to another rank");
      set(flag(message.rank, Flag::kArrived, rank_), 1);
    }
    for (const Incoming& message : in) take(flag(rank_, Flag::kArrived, message.rank));
    return works ? Status() : Status::device_error("flags of an exchange: refused by the driver");
  }

  std::size_t num_flags() const {
    const auto size = static_cast<std::size_t>(size_);
    return 2 * (size + 2) * size;
  }

  // Waits until NCCL has processed a call of a non-blocking communicator.
  Status settle(ncclResult_t result, const char* what) {
    const Clock::time_point end = Clock::now() + timeout_;
    while (result == ncclInProgress && Clock::now() < end) {
      std::this_thread::sleep_for(kPollInterval);
      const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
      if (asked != ncclSuccess) result = asked;
    }
    if (result == ncclSuccess) return {};
    return fail(std::string(what) + ": " +
                (result == ncclInProgress ? no_answer() : text_of(result)));
  }

  std::string no_answer() const {
    return "no answer for " + std::to_string(timeout_.count()) + " ms";
  }

  std::string text_of(ncclResult_t result) const {
    const char* last = ncclGetLastError(comm_);
    return std::string("NCCL: ") + ncclGetErrorString(result) +
           (last == nullptr || *last == '\0' ? "" : std::string(": ") + last);
  }

  std::string asynchronous_error() const {
    ncclResult_t error = ncclSuccess;
    const ncclResult_t result = ncclCommGetAsyncError(comm_, &error);
    if (result != ncclSuccess) return text_of(result);
    return error == ncclSuccess || error == ncclInProgress ? std::string() : text_of(error);
  }

  // Waits until the stream is idle; returns why it is not, or an empty string.
  std::string wait_for(Stream stream) const {
    const Clock::time_point end = Clock::now() + timeout_;
    while (true) {
      const cudaError_t done = cudaStreamQuery(stream);
      if (done == cudaSuccess) return {};
      if (done != cudaErrorNotReady) return cudaGetErrorString(done);
      if (std::string error = asynchronous_error(); !error.empty()) return error;
      if (Clock::now() > end) return no_answer();
      std::this_thread::sleep_for(kPollInterval);
    }
  }

  // Names the ranks of the first incomplete exchange; empty: there is none. Events that were
  // captured in a graph cannot be queried.
  std::string first_incomplete() const {
    for (int number = 1; number <= begun_; ++number) {
      const auto index = static_cast<std::size_t>(number);
      const cudaError_t state = cudaEventQuery(complete_[index]);
      if (state == cudaSuccess || state == cudaErrorCapturedEvent) continue;
      std::string names;
      for (const int peer : peers_[index]) names += (names.empty() ? "" : " or ") + name_of(peer);
      return names + ", in exchange " + std::to_string(number) + " of " + name_of(rank_) + ": ";
    }
    return {};
  }

  ncclComm_t comm_;  // nullptr: ended
  std::chrono::milliseconds timeout_;
  int rank_ = 0, size_ = 0, begun_ = 0;
  cudaStream_t stream_ = nullptr;                  // of exchanges
  cudaStream_t side_ = nullptr, first_ = nullptr;  // see branch
  cudaStream_t release_ = nullptr;                 // waits for no other rank
  cudaEvent_t forked_ = nullptr, branched_ = nullptr, joined_ = nullptr;
  Driver driver_;
  std::unique_ptr<PeerMemory> flags_;    // of both kinds, per exchange and other rank
  std::vector<cudaEvent_t> complete_;    // per exchange
  std::vector<std::vector<int>> peers_;  // per exchange: the other ranks
  LentMemory::Retired retired_;          // memory of destroyed plans
  device::Buffer cards_;                 // the cards of all ranks, then this rank's
  std::string failure_;
};

}  // namespace

Status connect(ncclComm* comm, std::chrono::milliseconds timeout,
               std::unique_ptr<Transport>* transport) {
  auto made = std::make_unique<NcclTransport>(comm, timeout);
  Status status = made->prepare();
  if (status.ok()) *transport = std::move(made);
  return status;
}

}  // namespace tilegate::distributed
