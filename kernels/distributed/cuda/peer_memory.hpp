// Device memory that the other ranks of a host can write to.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/distributed/transport.hpp>
#include <tilegate/status.hpp>

namespace tilegate::distributed {

class PeerMemory : public Memory {
 public:
  std::byte* data() const override { return own_->data(); }
  // Whether every rank can write to the memory of every other one.
  bool is_reached() const { return is_reached_; }
  // The memory of another rank; only if it is reached.
  std::byte* of(int rank) const { return others_[static_cast<std::size_t>(rank)].get(); }
  void close_others() { others_.clear(); }

  // Transport::agree.
  using Agree = std::function<Status(const Card& mine, std::vector<Card>& all)>;

  // Collective; `bytes` may differ between ranks. The memory has zeros. Destroy it after all other
  // ranks have closed it. `can_copy`: whether this rank can write to memory of others at all. A
  // rank without room fails on all.
  static Status share(std::size_t bytes, int rank, const Agree& agree, bool can_copy,
                      std::unique_ptr<PeerMemory>* memory);

 private:
  bool is_reached_ = false;
  std::shared_ptr<device::Buffer> own_;
  std::vector<std::shared_ptr<std::byte>> others_;
};

}  // namespace tilegate::distributed
