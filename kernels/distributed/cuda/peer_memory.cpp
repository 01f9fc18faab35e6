// PeerMemory: a rank finds another one's memory in its own process, or opens it by CUDA IPC.
#include "peer_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <string>

#include <cuda_runtime_api.h>

namespace tilegate::distributed {
namespace {

// Allocations of this size have a block of their own, which is what IPC shares.
constexpr std::size_t kBlock = std::size_t{2} << 20;

// The memory of this process's ranks.
class Registry {
 public:
  void add(std::uint64_t key, const std::shared_ptr<device::Buffer>& buffer) {
    const std::lock_guard lock(mutex_);
    std::erase_if(buffers_, [](const auto& entry) { return entry.second.expired(); });
    buffers_[key] = buffer;
  }
  std::shared_ptr<device::Buffer> find(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    const auto found = buffers_.find(key);
    return found == buffers_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<device::Buffer>> buffers_;
};

Registry& registry() {
  static Registry all;
  return all;
}

// What a rank tells the others of its memory.
struct Offer {
  char kind = 'm';
  bool reaches = false;  // so far
  bool has_ipc = false;
  std::uint64_t host = 0;
  std::uint64_t key = 0;  // in the registry; random
  int device = 0;
  cudaIpcMemHandle_t ipc = {};
};
static_assert(sizeof(Offer) <= sizeof(Card::text));

template <typename Message>
Card card_of(const Message& message) {
  Card card;
  std::memcpy(card.text.data(), &message, sizeof(message));
  return card;
}

template <typename Message>
Message from_card(const Card& card) {
  Message message;
  std::memcpy(&message, card.text.data(), sizeof(message));
  return message;
}

// The same for all processes of a host.
std::uint64_t host_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return Card::of(id).hash;
}

std::uint64_t random_key() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

bool enable_access_to(int device) {
  if (device == device::current().ordinal) return true;
  const cudaError_t error = cudaDeviceEnablePeerAccess(device, 0);
  if (error == cudaSuccess) return true;
  static_cast<void>(cudaGetLastError());  // not to be found by a later call
  return error == cudaErrorPeerAccessAlreadyEnabled;
}

// The offered memory as this rank's device sees it; nullptr: it cannot write to it.
std::shared_ptr<std::byte> reach(const Offer& offer) {
  if (const std::shared_ptr<device::Buffer> buffer = registry().find(offer.key)) {
    if (!enable_access_to(offer.device)) return nullptr;
    return {buffer, buffer->data()};
  }
  void* opened = nullptr;
  if (!offer.has_ipc || offer.host != host_id() ||
      cudaIpcOpenMemHandle(&opened, offer.ipc, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  return {static_cast<std::byte*>(opened), [](std::byte* data) { cudaIpcCloseMemHandle(data); }};
}

}  // namespace

Status PeerMemory::share(std::size_t bytes, int rank, const Agree& agree, bool can_copy,
                         std::unique_ptr<PeerMemory>* memory) {
  auto made = std::make_unique<PeerMemory>();
  Offer mine{.reaches = can_copy,
             .host = host_id(),
             .key = random_key(),
             .device = device::current().ordinal};
  Card card;
  try {
    made->own_ = std::make_shared<device::Buffer>(
        std::max<std::size_t>(1, (bytes + kBlock - 1) / kBlock) * kBlock);
    registry().add(mine.key, made->own_);
    const bool is_written =
        cudaMemset(made->data(), 0, bytes) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
    mine.has_ipc = cudaIpcGetMemHandle(&mine.ipc, made->data()) == cudaSuccess;
    if (!mine.has_ipc) static_cast<void>(cudaGetLastError());
    card = is_written ? card_of(mine) : Card::of("fails: cannot write to its memory");
  } catch (const std::bad_alloc&) {
    card = Card::of("fails: no room for " + std::to_string(bytes) + " bytes");
  }
  std::vector<Card> cards;
  if (Status s = agree(card, cards); !s.ok()) return s;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (cards[i].text[0] != Offer().kind) {
      return Status::device_error("rank " + std::to_string(i) + " " + cards[i].text.data());
    }
  }
  made->others_.resize(cards.size());
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const Offer offer = from_card<Offer>(cards[i]);
    if (!offer.reaches) mine.reaches = false;
    if (static_cast<int>(i) == rank || !mine.reaches) continue;
    made->others_[i] = reach(offer);
    if (made->others_[i] == nullptr) mine.reaches = false;
  }
  if (Status s = agree(card_of(mine), cards); !s.ok()) return s;
  made->is_reached_ =
      std::ranges::all_of(cards, [](const Card& vote) { return from_card<Offer>(vote).reaches; });
  *memory = std::move(made);
  return {};
}

}  // namespace tilegate::distributed
