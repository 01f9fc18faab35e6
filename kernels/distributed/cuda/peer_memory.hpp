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
  // The memory of another rank; only if every rank reaches every other one.
  std::byte* of(int rank) const { return others_[static_cast<std::size_t>(rank)].get(); }

  // Transport::agree.
  using Agree = std::function<Status(const Card& mine, std::vector<Card>& all)>;

  // Collective; `bytes` may differ between ranks. The memory has zeros. Destroy it when no rank
  // sends to it any more. `*reaches` is this rank's vote on whether it can write to other ranks'
  // memory, and then the result: all ranks can. A rank without room fails on all.
  static Status share(std::size_t bytes, int rank, const Agree& agree, bool* reaches,
                      std::unique_ptr<PeerMemory>* memory);

 private:
  std::shared_ptr<device::Buffer> own_;
  std::vector<std::shared_ptr<std::byte>> others_;
};

}  // namespace tilegate::distributed
