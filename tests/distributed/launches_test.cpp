// Several launches of a plan, with nothing between them that waits.
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "distributed/ranks.hpp"
#include "verifier/case.hpp"

namespace tilegate::distributed {
namespace {

class DistributedLaunches : public OverRanks {};

// An exchange that took data of the launch before would show.
TEST_F(DistributedLaunches, InARowHaveTheirOwnOperands) {
  constexpr int kRanks = 2;
  for (const Form form : kForms) {
    for (const Schedule schedule : kSchedules) {
      for (const bool same_bits : {false, true}) {
        const Layout layout{
            .form = form, .ranks = kRanks, .schedule = schedule, .same_bits = same_bits};
        Problem problem = Problem::dense({150, 139, 331});
        problem.math = same_bits ? Math::fp32_split : Math::fp32;
        std::vector<Whole> wholes;
        for (const std::uint64_t seed : {10, 20, 30}) {
          wholes.push_back(random_whole(problem, verifier::Inputs::kIntegers, seed));
        }
        std::vector<Whole> alone = wholes;
        for (Whole& whole : alone) {
          const Status status = multiply(layout, whole);
          ASSERT_TRUE(status.ok()) << status.message();
        }
        const DistributedProblem shared = distributed(layout, problem);
        Group group(kRanks, kPatience);
        for_each_rank(kRanks, [&](int number) {
          std::vector<Rank> ranks;
          Status status;
          for (const Whole& whole : wholes) {
            Rank& rank = ranks.emplace_back(Rank::make(shared, problem, number));
            for (const auto& [shard, from] :
                 {std::pair{&rank.a, &whole.a}, std::pair{&rank.b, &whole.b},
                  std::pair{&rank.c, &whole.c}}) {
              if (status.ok()) status = shard->copy_from(*from);
            }
          }
          const std::unique_ptr<Transport> transport = group.join(number);
          DistributedSgemm sgemm(*transport, ranks.front().problem);
          for (const Rank& rank : ranks) {
            if (status.ok()) status = sgemm.launch(rank.operands());
          }
          if (status.ok()) status = transport->synchronize(nullptr);
          for (std::size_t i = 0; i < wholes.size(); ++i) {
            if (status.ok()) status = ranks[i].c.copy_to(wholes[i].c);
          }
          EXPECT_TRUE(status.ok()) << status.message();
        });
        for (std::size_t i = 0; i < wholes.size(); ++i) {
          EXPECT_EQ(wholes[i].c, alone[i].c) << name_of(layout) << ", launch " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilegate::distributed
