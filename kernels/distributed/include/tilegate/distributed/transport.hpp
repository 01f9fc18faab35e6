// How ranks exchange data: one object per rank, used by one thread at a time. Two implementations:
// NcclTransport (nccl.hpp) between GPUs, ThreadGroup (threads.hpp) between threads of a process
// over the SIMT executor.
//
// Exchanges run in their order, beside the caller's stream. Two calls order them with it:
//
//   fork(stream)            exchanges that follow start after the work that `stream` has now
//   exchange(i, out, in)    sends and receives, all at once; i: 1 to size() + 1, in order
//   wait(i, stream)         later work of `stream` starts after exchange i
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/status.hpp>

namespace tilegate::distributed {

// Device memory that goes to a rank, or comes from one. Both ranks leave out what is empty.
struct Outgoing {
  int rank = 0;
  const void* data = nullptr;
  std::size_t bytes = 0;
};
struct Incoming {
  int rank = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
};

// Memory that a step of the caller's stream accesses.
struct Access {
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
};

// What a rank says of itself to the others: a text, cut off where it is longer, and its hash.
struct Card {
  std::uint64_t hash = 0;
  std::array<char, 248> text{};

  static Card of(std::string_view text);
};

// After an error every call fails, on every rank, until new transports are made; the messages name
// the rank at fault where it is known.
class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Collective: the cards of all ranks, in their order. May allocate and synchronise.
  virtual Status agree(const Card& mine, std::vector<Card>& all) = 0;

  // None of these allocates or waits for the device.
  virtual Status fork(Stream stream) = 0;
  virtual Status exchange(int number, std::span<const Outgoing> out,
                          std::span<const Incoming> in) = 0;
  virtual Status wait(int number, Stream stream) = 0;
  // Says what the next step of the caller's stream accesses. ThreadGroup finds races by it.
  virtual Status begin_step(std::string_view /*name*/, std::span<const Access> /*accesses*/) {
    return {};
  }

  // What has gone wrong since; returns at once.
  virtual Status poll() = 0;
  // Waits for all work of `stream`, and polls meanwhile. After the timeout, or an error, it aborts.
  virtual Status synchronize(Stream stream) = 0;
  // Ends the exchanges of all ranks; `reason` starts with the rank at fault.
  virtual void abort(std::string_view reason) = 0;
};

}  // namespace tilegate::distributed
