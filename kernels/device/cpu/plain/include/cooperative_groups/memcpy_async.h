// Asynchronous copies by a group: thread r copies pieces r, r + size(), …
#pragma once
#include <cuda/pipeline>

#include <cooperative_groups.h>

namespace cooperative_groups {

template <typename Group, typename T, typename U, typename Size>
void memcpy_async(const Group& group, T* to, const U* from, Size size) {
  cuda::copy_pieces(group.thread_rank(), group.size(), to, from, size);
  tilegate::device::copy_async_commit();
}

template <typename Group>
void wait(const Group& group, Site site = Site::current()) {
  tilegate::device::copy_async_wait<0>();
  group.sync(site);
}

template <unsigned kGroups, typename Group>
void wait_prior(const Group& group, Site site = Site::current()) {
  tilegate::device::copy_async_wait<kGroups>();
  group.sync(site);
}

}  // namespace cooperative_groups
