// How ranks exchange data: one object per rank, used by one thread at a time. Two implementations:
// NcclTransport (nccl.hpp) between GPUs, ThreadGroup (threads.hpp) between threads of a process
// over the SIMT executor.
//
// Exchanges run in order, concurrently with the caller's stream. The caller's streams must order
// the launches of all plans of a transport. fork and wait order exchanges and kernels:
//
//   fork(stream)                    later exchanges start after the work that `stream` has now
//   exchange(i, memory, out, in)    sends and receives, all at once; i: 1 to size() + 1, in order
//   wait(i, stream)                 later work of `stream` starts after exchange i
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/status.hpp>

namespace tilegate::distributed {

// Device memory of a rank, into which the other ranks send.
class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  virtual std::byte* data() const = 0;
};

// A message to a rank, and one from a rank. `at`: its offset in the memory of the receiver; both
// ranks give the same. Both leave out empty messages.
struct Outgoing {
  int rank = 0;
  const void* data = nullptr;  // any device memory
  std::size_t bytes = 0;
  std::size_t at = 0;
};
struct Incoming {
  int rank = 0;
  std::size_t bytes = 0;
  std::size_t at = 0;
};

// Memory that a step of the caller's stream accesses.
struct Access {
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
};

// A rank's message to all others: the hash of a text, the text, truncated, and a choice that may
// differ between ranks.
struct Card {
  std::uint64_t hash = 0;
  std::array<char, 247> text{};
  char choice = 0;

  static Card of(std::string_view text);
};

// After an error every call of that rank fails, until new transports are made; the other ranks find
// it in their next synchronize(), with NCCL at the latest after a timeout. The messages name the
// failing rank if it is known.
class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Collective: returns the cards of all ranks, in order. May allocate and synchronise.
  virtual Status agree(const Card& mine, std::vector<Card>& all) = 0;
  // Collective: memory of `bytes` bytes, any number on each rank, 256-byte aligned.
  virtual Status allocate(std::size_t bytes, std::unique_ptr<Memory>* memory) = 0;

  // These calls do not allocate or wait for the device.
  virtual Status fork(Stream stream) = 0;
  virtual Status exchange(int number, const Memory& memory, std::span<const Outgoing> out,
                          std::span<const Incoming> in) = 0;
  virtual Status wait(int number, Stream stream) = 0;
  // A second stream for kernels, so that one may begin before another one ends: branch() starts it
  // after the work that `stream` has now, and later work of `stream` starts after join().
  // `goes_first`: its blocks start before those of `stream`. By default it is `stream`.
  virtual Status branch(Stream stream, bool /*goes_first*/, Stream* side) {
    *side = stream;
    return {};
  }
  virtual Status join(Stream /*side*/, Stream /*stream*/) { return {}; }
  // Declares the accesses of the next step of the caller's stream. ThreadGroup finds races with it.
  virtual Status begin_step(std::string_view /*name*/, std::span<const Access> /*accesses*/) {
    return {};
  }

  // Returns an error that has occurred since; does not wait. It does not find a rank that hangs.
  virtual Status poll() = 0;
  // Waits for all work of `stream`, and polls meanwhile. Aborts if that takes longer than the
  // timeout, or after an error, also one of another rank.
  virtual Status synchronize(Stream stream) = 0;
  // Ends the exchanges of all ranks; `reason` starts with the failing rank.
  virtual void abort(std::string_view reason) = 0;
};

}  // namespace tilegate::distributed
