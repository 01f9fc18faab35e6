// One process per GPU. One of them is killed, exits, hangs or calls with something else: the other
// ends in time with an error that names it.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "distributed/ranks.hpp"

namespace tilegate::distributed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRanks = 2;
constexpr std::chrono::seconds kInTime{60};  // with the start of CUDA and NCCL

struct Planted {
  const char* fault;
  const char* moment;
};

struct Process {
  pid_t id = -1;
  int output = -1;
};

Process start(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.data()));
  argv.push_back(nullptr);
  const pid_t id = fork();
  if (id == 0) {  // no more than exec: other threads of the parent may hold locks
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  return {id, ends[0]};
}

// Exit code, or -1: the process was killed.
int end_of(const Process& process, Clock::time_point last) {
  int state = 0;
  while (waitpid(process.id, &state, WNOHANG) == 0) {
    if (Clock::now() > last) kill(process.id, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

// Rank 1 is at fault. Returns what rank 0 says, and its exit code.
std::pair<std::string, int> run(const Planted& planted) {
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) return {"ncclGetUniqueId failed", -1};
  std::string hex;
  for (const char byte : id.internal) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(byte)));
    hex += digits.data();
  }
  std::vector<Process> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(start({TILEGATE_DISTRIBUTED_RANK, std::to_string(rank), std::to_string(kRanks),
                           hex, rank == 1 ? planted.fault : "none", planted.moment}));
  }
  const int code = end_of(ranks[0], Clock::now() + kInTime);
  kill(ranks[1].id, SIGKILL);  // a rank that hangs
  end_of(ranks[1], Clock::now());
  std::string said(4096, '\0');
  const ssize_t bytes = read(ranks[0].output, said.data(), said.size());
  said.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  for (const Process& rank : ranks) close(rank.output);
  return {said, code};
}

class DistributedProcesses : public OverRanks {};

TEST_F(DistributedProcesses, ARankAtFaultIsNamedInTime) {
  const std::vector<Planted> all = {
      {"killed", "before-plan"},      {"killed", "before-launch"},  {"killed", "in-launch"},
      {"killed", "between-launches"}, {"exits", "before-plan"},     {"exits", "before-launch"},
      {"exits", "between-launches"},  {"hangs", "before-plan"},     {"hangs", "before-launch"},
      {"hangs", "between-launches"},  {"other-problem", "in-plan"}, {"null-operand", "in-launch"}};
  std::vector<std::future<std::pair<std::string, int>>> running;
  for (const Planted& planted : all)
    running.push_back(std::async(std::launch::async, run, planted));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [said, code] = running[i].get();
    EXPECT_EQ(code, 3) << all[i].fault << " " << all[i].moment << ": " << said;
    EXPECT_NE(said.find("rank 1"), std::string::npos)
        << all[i].fault << " " << all[i].moment << ": " << said;
  }
  const auto [said, code] = run({"none", "never"});
  EXPECT_EQ(code, 0) << said;
}

}  // namespace
}  // namespace tilegate::distributed
