// The board of remaining capacity: an updated board equals a newly built one.
#include "core/engine/search/device_board.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::TestCluster;

RequestMix RandomMix(Dice& dice) {
  std::vector<RequestType> types;
  for (int i = dice.Between(0, 5); i > 0; --i) {
    RequestType& type = types.emplace_back();
    if (dice.Chance(50)) {
      type.request.share = 50 * dice.Between(1, 19);
    } else {
      type.request.devices = dice.Between(0, 3);
    }
    type.request.cpu_millis = 1000 * dice.Between(0, 8);
    type.request.models = static_cast<uint64_t>(dice.Below(4));
    type.weight = dice.Between(1, 20);
  }
  RequestMix mix = MixOf({"H100", "A100"}, std::move(types));
  mix.priced = dice.Chance(50);
  for (RequestType& type : mix.types) {
    if (mix.priced) type.value = dice.Below(static_cast<int>(type.request.amount()) + 1);
  }
  if (dice.Chance(30)) mix.mib_per_core = 1 << dice.Between(0, 16);
  mix.score = static_cast<MixScore>(dice.Below(static_cast<int>(kMixScores)));
  return mix;
}

TaskShape RandomShape(Dice& dice) {
  testing::GroupShape group{.cpu = dice.Between(0, 6), .gpus = dice.Between(0, 2)};
  if (dice.Chance(60)) group.share = 50 * dice.Between(1, 19);
  if (group.gpus + group.share > 0 && dice.Chance(30)) group.models = {"H100"};
  return testing::MakeGroup(group).shape;
}

std::string Text(const std::optional<DeviceBoard::Place>& place) {
  return place.has_value() ? absl::StrCat(place->node.value, " ", place->left) : "none";
}

TEST_CASE("an updated board gives the same answers as a new one") {
  for (uint32_t seed = 1; seed <= 25; ++seed) {
    Dice dice(seed);
    PolicyConfig config;
    config.sharing.policy = static_cast<SharingPolicy>(dice.Below(5));
    TestCluster cluster(*Policies::Create(config));
    for (int i = dice.Between(2, 6); i > 0; --i) {
      cluster.AddNode(absl::StrCat("n", i), {.cpu = dice.Between(4, 20),
                                             .gpus = dice.Between(0, 4),
                                             .tasks_per_gpu = dice.Between(1, 6),
                                             .model = dice.Chance(50) ? "H100" : "A100"});
    }
    DeviceBoard followed;
    StateEditor editor(cluster.state());
    std::vector<JobId> jobs;
    for (int step = 0; step < 40; ++step) {
      INFO("seed " << seed << " step " << step);
      if (dice.Chance(10)) cluster.Must(RequestMixChanged{RandomMix(dice)});
      testing::GroupShape group{.cpu = dice.Between(0, 4), .gpus = dice.Below(3)};
      if (dice.Chance(60)) group.share = 50 * dice.Between(1, 19);
      jobs.push_back(cluster.Submit(absl::StrCat("j", step), {.groups = {group}}));
      cluster.Settle();
      if (dice.Chance(40)) {
        const JobId ends = jobs[static_cast<size_t>(dice.Below(step + 1))];
        if (cluster.Try(JobCancelled{.id = ends}).ok()) {
          cluster.Settle();
          cluster.GoneAll(ends);
          cluster.Settle();
        }
      }
      REQUIRE(CheckConsistency(cluster.state()).ok());
      followed.Follow(&editor, cluster.state(), config.sharing.policy);
      DeviceBoard fresh;
      fresh.Follow(nullptr, cluster.state(), config.sharing.policy);
      for (int i = 0; i < 5; ++i) {
        const TaskShape shape = RandomShape(dice);
        const auto may = [&](NodeId id) { return cluster.state().free().Has(id); };
        REQUIRE(Text(followed.Best(shape, may)) == Text(fresh.Best(shape, may)));
      }
    }
  }
}

}  // namespace
}  // namespace berth
