// ThreadGroup: mailboxes under one mutex.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include <tilegate/distributed/threads.hpp>

namespace tilegate::distributed {
namespace {

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto* first = static_cast<const std::byte*>(a);
  const auto* second = static_cast<const std::byte*>(b);
  return a_bytes > 0 && b_bytes > 0 && first < second + b_bytes && second < first + a_bytes;
}

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

// Others keep the buffer while a message for it is under way.
class ThreadMemory : public Memory {
 public:
  explicit ThreadMemory(std::size_t bytes) : buffer(std::make_shared<device::Buffer>(bytes)) {
    if (bytes > 0) std::memset(buffer->data(), 0xA5, bytes);  // as good as any contents
  }
  std::byte* data() const override { return buffer->data(); }

  std::shared_ptr<device::Buffer> buffer;
};

// An exchange that its rank has not yet waited for.
struct Exchange {
  int number;
  std::uint64_t call;  // number of the rank's call
  std::shared_ptr<device::Buffer> memory;
  std::vector<Outgoing> out;
  std::vector<Incoming> in;

  std::byte* data(const Incoming& message) const { return memory->data() + message.at; }
};

struct Step {
  std::string name;
  std::vector<Access> accesses;
};

}  // namespace

struct ThreadGroup::State {
  // A message in flight, sent in the rank's call of that number.
  struct Post {
    std::uint64_t call;
    int number;
    Outgoing out;
  };
  struct Rank {
    bool ended = false;
    bool waits = false;       // for another rank
    std::uint64_t calls = 0;  // exchanges and agreements begun
    std::vector<Card> cards;  // its cards, one per agreement
    std::deque<Post> posts;   // its undelivered messages
  };

  State(int size, std::chrono::milliseconds limit)
      : timeout(limit), ranks(static_cast<std::size_t>(size)) {}

  int size() const { return static_cast<int>(ranks.size()); }
  Rank& rank(int number) { return ranks[static_cast<std::size_t>(number)]; }

  Status status() const { return failure.empty() ? Status() : Status::device_error(failure); }
  // All ranks report the first failure.
  Status fail(const std::string& reason) {
    if (failure.empty()) failure = reason;
    changed.notify_all();
    return status();
  }

  // Rank `me` waits for `what` of rank `other` until `done`.
  template <typename Done>
  Status wait(std::unique_lock<std::mutex>& lock, int me, int other, const std::string& what,
              Done done) {
    rank(me).waits = true;
    const bool in_time = changed.wait_for(
        lock, timeout, [&] { return !failure.empty() || done() || rank(other).ended; });
    rank(me).waits = false;
    if (!failure.empty()) return status();
    if (done()) return {};
    const std::string waited = "; " + name_of(me) + " waited for " + what + " of " + name_of(other);
    if (in_time) return fail(name_of(other) + " has ended" + waited);
    return fail(name_of(late_rank(me, other)) + " has not answered for " +
                std::to_string(timeout.count()) + " ms" + waited);
  }

  // The rank that all others wait for, directly or not: of the ranks that do not wait, the one with
  // the fewest calls.
  int late_rank(int me, int other) {
    int late = other;
    for (int i = 0; i < size(); ++i) {
      if (i == me || rank(i).waits) continue;
      if (rank(late).waits || rank(i).calls < rank(late).calls) late = i;
    }
    return late;
  }

  const std::chrono::milliseconds timeout;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Rank> ranks;
  std::string failure;  // empty: none
};

namespace {

class ThreadTransport : public Transport {
 public:
  using State = ThreadGroup::State;

  ThreadTransport(State& state, int rank) : state_(state), rank_(rank) {}

  ~ThreadTransport() override {
    const std::lock_guard lock(state_.mutex);
    for (const Exchange& exchange : exchanges_) {
      for (const Incoming& in : exchange.in) set_arrived(exchange, in, true);
    }
    me().ended = true;
    me().posts.clear();
    state_.changed.notify_all();
  }

  int rank() const override { return rank_; }
  int size() const override { return state_.size(); }

  Status agree(const Card& mine, std::vector<Card>& all) override {
    std::unique_lock lock(state_.mutex);
    if (Status s = state_.status(); !s.ok()) return s;
    const std::size_t index = me().cards.size();
    me().cards.push_back(mine);
    ++me().calls;
    state_.changed.notify_all();
    all.clear();
    for (int i = 0; i < size(); ++i) {
      const std::vector<Card>& cards = state_.rank(i).cards;
      const auto done = [&] { return cards.size() > index; };
      if (Status s = state_.wait(lock, rank_, i, "the plan", done); !s.ok()) return s;
      all.push_back(cards[index]);
    }
    return {};
  }

  Status allocate(std::size_t bytes, std::unique_ptr<Memory>* memory) override {
    try {
      *memory = std::make_unique<ThreadMemory>(bytes);
    } catch (const std::bad_alloc&) {
      abort(name_of(rank_) + " fails: no room for " + std::to_string(bytes) + " bytes");
    }
    return poll();
  }

  Status fork(Stream /*stream*/) override {
    const std::lock_guard lock(state_.mutex);
    steps_.clear();
    return state_.status();
  }

  Status exchange(int number, const Memory& memory, std::span<const Outgoing> out,
                  std::span<const Incoming> in) override {
    const std::lock_guard lock(state_.mutex);
    if (Status s = state_.status(); !s.ok()) return s;
    const Exchange exchange{number,
                            ++me().calls,
                            static_cast<const ThreadMemory&>(memory).buffer,
                            {out.begin(), out.end()},
                            {in.begin(), in.end()}};
    for (const Step& step : steps_) {
      if (Status s = check_order(exchange, step, "fork()"); !s.ok()) return s;
    }
    for (const Outgoing& message : out) me().posts.push_back({exchange.call, number, message});
    for (const Incoming& message : in) set_arrived(exchange, message, false);
    exchanges_.push_back(exchange);
    state_.changed.notify_all();
    return {};
  }

  // Exchanges complete in order, as on a stream.
  Status wait(int number, Stream /*stream*/) override {
    std::unique_lock lock(state_.mutex);
    if (Status s = state_.status(); !s.ok()) return s;
    while (!exchanges_.empty() && exchanges_.front().number <= number) {
      if (Status s = complete(lock, exchanges_.front()); !s.ok()) return s;
      exchanges_.erase(exchanges_.begin());
    }
    return {};
  }

  Status begin_step(std::string_view name, std::span<const Access> accesses) override {
    const std::lock_guard lock(state_.mutex);
    if (Status s = state_.status(); !s.ok()) return s;
    const Step step{std::string(name), {accesses.begin(), accesses.end()}};
    for (const Exchange& exchange : exchanges_) {
      if (Status s = check_order(exchange, step, "wait()"); !s.ok()) return s;
    }
    steps_.push_back(step);
    return {};
  }

  Status poll() override {
    const std::lock_guard lock(state_.mutex);
    return state_.status();
  }

  Status synchronize(Stream /*stream*/) override { return poll(); }

  void abort(std::string_view reason) override {
    const std::lock_guard lock(state_.mutex);
    static_cast<void>(state_.fail(std::string(reason)));
  }

 private:
  State::Rank& me() { return state_.rank(rank_); }

  static void set_arrived(const Exchange& exchange, const Incoming& in, bool arrived) {
    std::byte* const data = exchange.data(in);
    if (!arrived) std::memset(data, 0xFF, in.bytes);  // NaN
    device::set_accessible(data, in.bytes, arrived);
  }

  // Reports a race if a step and an unordered exchange access the same memory and one writes it.
  Status check_order(const Exchange& exchange, const Step& step, const char* missing) {
    for (const Access& access : step.accesses) {
      std::string race;
      for (const Incoming& in : exchange.in) {
        if (overlap(access.data, access.bytes, exchange.data(in), in.bytes)) {
          race = "receives from " + name_of(in.rank);
        }
      }
      for (const Outgoing& out : exchange.out) {
        if (access.writes && overlap(access.data, access.bytes, out.data, out.bytes)) {
          race = "sends to " + name_of(out.rank);
        }
      }
      if (race.empty()) continue;
      return state_.fail(name_of(rank_) + ": race: step '" + step.name + "' " +
                         (access.writes ? "writes" : "reads") + " what exchange " +
                         std::to_string(exchange.number) + " " + race + ", with no " + missing +
                         " between them");
    }
    return {};
  }

  Status complete(std::unique_lock<std::mutex>& lock, const Exchange& exchange) {
    const std::string name = "exchange " + std::to_string(exchange.number);
    for (const Incoming& in : exchange.in) {
      if (Status s = receive(lock, exchange, in, name); !s.ok()) return s;
    }
    for (const Outgoing& out : exchange.out) {
      const auto delivered = [&] {
        return std::ranges::none_of(me().posts, [&](const State::Post& post) {
          return post.call == exchange.call && post.out.rank == out.rank;
        });
      };
      Status s = state_.wait(lock, rank_, out.rank, "the receipt of " + name, delivered);
      if (!s.ok()) return s;
    }
    return {};
  }

  Status receive(std::unique_lock<std::mutex>& lock, const Exchange& exchange, const Incoming& in,
                 const std::string& name) {
    std::deque<State::Post>& posts = state_.rank(in.rank).posts;
    const auto find = [&] {
      return std::ranges::find(posts, rank_, [](const State::Post& post) { return post.out.rank; });
    };
    const auto is_sent = [&] { return find() != posts.end(); };
    if (Status s = state_.wait(lock, rank_, in.rank, name, is_sent); !s.ok()) return s;
    const auto post = find();
    if (post->out.bytes != in.bytes) {
      return state_.fail(name_of(in.rank) + " sends " + std::to_string(post->out.bytes) +
                         " bytes in " + name + "; " + name_of(rank_) + " expects " +
                         std::to_string(in.bytes));
    }
    if (post->number != exchange.number) {
      return state_.fail(name_of(in.rank) + " sends in exchange " + std::to_string(post->number) +
                         "; " + name_of(rank_) + " expects it in " + name);
    }
    if (post->out.at != in.at) {
      return state_.fail(name_of(in.rank) + " sends to offset " + std::to_string(post->out.at) +
                         " in " + name + "; " + name_of(rank_) + " expects " +
                         std::to_string(in.at));
    }
    set_arrived(exchange, in, true);
    std::memcpy(exchange.data(in), post->out.data, in.bytes);
    posts.erase(post);
    state_.changed.notify_all();
    return {};
  }

  State& state_;
  int rank_;
  std::vector<Exchange> exchanges_;  // not yet waited for
  std::vector<Step> steps_;          // since the last fork
};

}  // namespace

ThreadGroup::ThreadGroup(int size, std::chrono::milliseconds timeout)
    : state_(std::make_unique<State>(size, timeout)) {}

ThreadGroup::~ThreadGroup() = default;

std::unique_ptr<Transport> ThreadGroup::join(int rank) {
  return std::make_unique<ThreadTransport>(*state_, rank);
}

}  // namespace tilegate::distributed
