// Oracles for shares and service order, on random queue trees with random changes. Incrementally
// maintained results must equal those of the rules applied literally; and where the work budget
// ends must not change the service order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/engine/engine_cache.h"
#include "core/engine/order/service_order.h"
#include "core/engine/place/placer.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/property/naive_shares.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::Describe;
using testing::GroupShape;
using testing::JobShape;
using testing::QueueShape;
using testing::TestCluster;

// ---- Random trees and changes

QueueShape RandomQueue(Dice& dice) {
  QueueShape shape;
  const auto amounts = [&](int most) -> std::vector<NamedAmount> {
    std::vector<NamedAmount> some;
    if (dice.Chance(60)) some.push_back({"cpu", dice.Below(most) * 1000 + dice.Below(3)});
    if (dice.Chance(60)) some.push_back({"gpu", dice.Below(most)});
    return some;
  };
  if (dice.Chance(50)) shape.deserved = amounts(12);
  if (dice.Chance(15)) shape.deserved = {{"cpu", kMaxAmount}};
  if (dice.Chance(30)) shape.guarantee = amounts(5);
  if (dice.Chance(30)) shape.limit = amounts(20);
  shape.weight = dice.Chance(20) ? 0 : dice.Between(1, 5);
  shape.priority = dice.Chance(70) ? 0 : dice.Below(3);
  if (dice.Chance(30)) shape.user_fairness = UserFairness::kDrf;
  if (dice.Chance(20)) shape.order = QueueOrder::kFifoStrict;
  return shape;
}

class RandomTree {
 public:
  RandomTree(TestCluster& cluster, Dice& dice) : cluster_(cluster), dice_(dice) {
    for (int i = dice.Between(1, 4); i > 0; --i) AddNode();
    for (int i = dice.Between(1, 12); i > 0; --i) AddQueue();
  }

  void Change() {
    switch (dice_.Below(12)) {
      case 9:
        return Hold();
      case 10:
        return Open();
      case 0:
        return AddQueue();
      case 1:
        return AddNode();
      case 2:
        return Update();
      case 3:
        return Steer();
      case 4:
        return Forget();
      case 5:
        return End();
      case 6:
        Cycle(dice_.Chance(50) ? 1 : TestCluster::kNoBudget);
        return;
      case 7:
        return Cycle(TestCluster::kNoBudget);
      default:
        return Submit();
    }
  }

  void Submit() {
    const Queue& queue = Any();
    if (!queue.children.empty() || queue.id == kRootQueue) return;
    GroupShape group{.replicas = dice_.Between(1, 6), .cpu = dice_.Below(4)};
    group.min_available = dice_.Chance(40) ? 1 : group.replicas;
    group.gpus = dice_.Chance(20) ? 99 : dice_.Below(3);  // more than any node has
    if (dice_.Chance(25)) group.share = dice_.Between(1, 999);
    JobShape shape{.queue = queue.spec.name, .priority = dice_.Below(2), .groups = {group}};
    shape.preemptible = dice_.Chance(60);
    shape.user = dice_.Chance(50) ? "ann" : "bob";
    shape.suspended = dice_.Chance(5);
    if (cluster_.state().Open(queue.id)) cluster_.Submit(absl::StrCat("j", ++jobs_), shape);
  }

  // The last cycle completed.
  bool whole() const { return whole_; }

 private:
  void Cycle(uint64_t budget) { whole_ = !cluster_.Cycle(budget).exhausted; }
  void AddNode() {
    cluster_.AddNode(absl::StrCat("n", ++nodes_),
                     {.cpu = dice_.Between(1, 30), .gpus = dice_.Below(9), .tasks_per_gpu = 9});
  }
  const Queue& Any() {
    const IdMap<QueueId, Queue>& queues = cluster_.state().queues();
    const QueueId from{static_cast<uint32_t>(
        dice_.Below(static_cast<int>(cluster_.state().next_queue_id().value)))};
    return queues.At(queues.NextFrom(from).value_or(kRootQueue));
  }
  void AddQueue() {
    const Queue& parent = Any();
    if (parent.children.empty() && parent.jobs > 0) return;
    QueueShape shape = RandomQueue(dice_);
    if (parent.id != kRootQueue) shape.parent = parent.spec.name;
    cluster_.AddQueue(absl::StrCat("q", ++queues_), shape);
  }
  void Update() {
    const Queue& queue = Any();
    if (queue.id == kRootQueue) return;
    const QueueShape shape = RandomQueue(dice_);
    QueueSpec spec = queue.spec;
    spec.deserved = shape.deserved;
    spec.guarantee = shape.guarantee;
    spec.limit = shape.limit;
    spec.weight = shape.weight;
    spec.priority = shape.priority;
    cluster_.Must(QueueUpdated{.id = queue.id, .spec = spec});
  }
  void Steer() {
    const NodeId id{static_cast<uint32_t>(dice_.Between(1, nodes_))};
    const Node* node = cluster_.state().nodes().Find(id);
    if (node == nullptr) return;
    if (dice_.Chance(50)) {
      (void)cluster_.Try(NodeSilenced{.id = id});
    } else {
      (void)cluster_.Try(NodeRegistered{
          .id = id, .spec = node->spec, .epoch = node->status.epoch + 1, .agent_id = "a"});
    }
  }
  void Forget() {
    const Queue& queue = Any();
    if (queue.id == kRootQueue) return;
    if (dice_.Chance(50)) {
      (void)cluster_.Try(QueueDeleted{.id = queue.id});
    } else {
      StateEditor(cluster_.state())
          .SetQueueUsage(queue.id,
                         {{"cpu", dice_.Below(9) * 1'000'000}, {"gpu", dice_.Below(9999)}});
    }
  }
  void Hold() {
    const JobId id{static_cast<uint64_t>(dice_.Between(1, jobs_ + 1))};
    if (cluster_.state().jobs().Find(id) == nullptr) return;
    (void)cluster_.Try(JobSuspended{.id = id, .suspended = dice_.Chance(60)});
  }
  void Open() {
    const Queue& queue = Any();
    if (queue.id == kRootQueue) return;
    (void)cluster_.Try(QueueOpened{.id = queue.id, .open = !queue.open || dice_.Chance(50)});
  }
  void End() {
    const JobId id{static_cast<uint64_t>(dice_.Between(1, jobs_ + 1))};
    if (cluster_.state().jobs().Find(id) == nullptr) return;
    (void)cluster_.Try(JobCancelled{.id = id});
    Cycle(TestCluster::kNoBudget);
    (void)cluster_.Try(JobDeleted{.id = id});
  }

  TestCluster& cluster_;
  Dice& dice_;
  int nodes_ = 0, queues_ = 0, jobs_ = 0;
  bool whole_ = true;
};

void CheckSane(const ClusterState& state, const FairShares& shares) {
  state.queues().ForEach([&](QueueId id, const Queue& queue) {
    Resources given, promised;
    for (QueueId child : queue.children) {
      given += shares.At(child).fair_share;
      promised += shares.At(child).deserved;
    }
    REQUIRE(given.FitsIn(shares.At(id).fair_share));
    REQUIRE(promised.FitsIn(shares.At(id).divisible));
  });
}

// Whether part of `pending` does not count as demand.
bool AnyUnwanted(const ClusterState& state, const FairShares& shares) {
  const Queue& root = state.queues().At(kRootQueue);
  return !(shares.At(kRootQueue).demand == root.allocated + root.pending);
}

// After a complete cycle, demand takes every verdict into account.
size_t CheckNever(const ClusterState& state) {
  size_t never = 0;
  state.pending().classes().ForEach([&](ClassId, const PendingClass& c) {
    never += c.never ? 1 : 0;
    if (c.blocked != nullptr) REQUIRE(c.never == (c.blocked->wake == WakeOn::kChange));
  });
  return never;
}

TEST_CASE("incrementally maintained shares equal those of the literal rules") {
  uint64_t divided = 0, scaled = 0, steps = 0, queues = 0, unwanted = 0, never = 0;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    Dice dice(seed);
    PolicyConfig config;
    if (dice.Chance(40)) config.fair_share.half_life = absl::Hours(1);
    config.fair_share.usage_weight = dice.Below(4);
    const FairShareParameters& parameters = config.fair_share;
    TestCluster cluster(*Policies::Create(config));
    RandomTree tree(cluster, dice);
    for (int step = 0; step < 40; ++step) {
      INFO("seed " << seed << " step " << step);
      tree.Change();
      if (dice.Chance(30)) continue;
      StateEditor editor(cluster.state(), EditMode::kTentative);
      const uint64_t before = CacheOf(editor).shares.divisions();
      const FairShares& cached = FreshShares(editor, cluster.state(), parameters);
      divided += cached.divisions() - before;
      ++steps;
      testing::NaiveShares naive(cluster.state(), parameters);
      const FairShares fresh = FairSharesOf(cluster.state(), parameters);
      cluster.state().queues().ForEach([&](QueueId id, const Queue& queue) {
        INFO("queue " << queue.spec.name);
        REQUIRE(cached.At(id) == fresh.At(id));
        REQUIRE(cached.At(id) == naive.At(id));
        if (cached.At(id).deserved_scaled) ++scaled;
        if (!queue.children.empty()) ++queues;
      });
      CheckSane(cluster.state(), cached);
      unwanted += AnyUnwanted(cluster.state(), cached) ? 1 : 0;
      if (tree.whole()) never += CheckNever(cluster.state());
    }
  }
  CHECK(divided * 3 < queues * 2);  // most divisions were not repeated
  CHECK(scaled > 1000);
  CHECK(unwanted > 500);
  CHECK(never > 50);
  CHECK(steps > 3000);
}

// ---- The service order, by exhaustive search

// A pending class, with the values that the rules compare.
struct Waiting {
  const PendingClass* of;
  ClassId id;
  const Job* job;
};

class FullDescent {
 public:
  FullDescent(const ClusterState& state, const FairShares& shares)
      : state_(state), shares_(shares) {}

  std::optional<Waiting> Next(QueueId parent = kRootQueue) const {
    const Queue& queue = state_.queues().At(parent);
    if (queue.children.empty()) return Leaf(queue);
    std::optional<Waiting> best;
    QueueId best_child;
    for (QueueId child : queue.children) {
      const std::optional<Waiting> head = Next(child);
      if (!head.has_value()) continue;
      if (best.has_value() && !Before(child, *head, best_child, *best)) continue;
      best = head;
      best_child = child;
    }
    return best;
  }

 private:
  std::optional<Waiting> Leaf(const Queue& queue) const {
    std::vector<Waiting> all;
    state_.pending().classes().ForEach([&](ClassId id, const PendingClass& c) {
      if (c.demand.queue != queue.id || c.jobs.empty()) return;
      all.push_back({&c, id, &state_.jobs().At(c.jobs.begin()->job)});
    });
    const auto before = [&](const Waiting& a, const Waiting& b) {
      if (a.job->priority != b.job->priority) return a.job->priority > b.job->priority;
      if (queue.spec.user_fairness == UserFairness::kDrf) {
        const int order = Compare(UserShare(queue, a.job->user), UserShare(queue, b.job->user));
        if (order != 0) return order < 0;
      }
      if (a.of->demand.gang != b.of->demand.gang) return a.of->demand.gang;
      if (!a.of->demand.gang && Grown(*a.job) != Grown(*b.job)) {
        return Grown(*a.job) < Grown(*b.job);
      }
      return a.job->id < b.job->id;
    };
    std::sort(all.begin(), all.end(), before);
    for (const Waiting& one : all) {
      if (one.of->blocked == nullptr) return one;
      const bool never = one.of->blocked->wake == WakeOn::kChange;  // blocks no job
      const bool strict = queue.spec.order == QueueOrder::kFifoStrict;
      if (strict && one.of->demand.gang && !never) return std::nullopt;
    }
    return std::nullopt;
  }

  // Tasks beyond the minimum; these jobs have one group.
  static int Grown(const Job& job) {
    int grown = -job.groups[0].min_available;
    for (const Task& task : job.tasks) grown += task.state != TaskState::kPending ? 1 : 0;
    return std::max(grown, 0);
  }

  Share UserShare(const Queue& queue, const std::string& user) const {
    Resources used;
    state_.jobs().ForEach([&](JobId, const Job& job) {
      if (job.queue != queue.id || job.user != user) return;
      for (uint32_t t = 0; t < job.tasks.size(); ++t) {
        if (!Occupies(job.tasks[t].state)) continue;
        used += state_.interner().Shape(job.groups[GroupOf(job, t)].shape).resources;
      }
    });
    return Dominant(queue, used);
  }

  Share Dominant(const Queue& queue, const Resources& used) const {
    const FairShares::OfQueue& share = shares_.At(queue.id);
    Share most;
    for (size_t k = 0; k < kMaxResourceKinds; ++k) {
      const int64_t whole = std::min(
          queue.limit.amount[k], std::max(share.deserved.amount[k], share.fair_share.amount[k]));
      if (used.amount[k] == 0) continue;
      if (whole == 0) return {.part = 1, .whole = 0};
      const Share one{.part = used.amount[k], .whole = whole};
      if (Compare(one, most) > 0) most = one;
    }
    return most;
  }

  // 0: below the fair share of every requested resource, 1: at it for some, 2: above it for some.
  int Standing(const Queue& queue, const Resources& request) const {
    const Resources& share = shares_.At(queue.id).fair_share;
    int standing = 0;
    for (size_t k = 0; k < kMaxResourceKinds; ++k) {
      if (request.amount[k] == 0) continue;
      const int64_t has = queue.allocated.amount[k];
      standing = std::max(standing, has > share.amount[k] ? 2 : has == share.amount[k] ? 1 : 0);
    }
    return standing;
  }

  // For growth one task. Classes of these jobs have one group.
  Resources RequestOf(const Waiting& head) const {
    const JobNeeds needs = NeedsOf(*head.job);
    const Resources& each =
        state_.interner().Shape(head.job->groups[needs.groups[0].group].shape).resources;
    return needs.gang ? each.Times(needs.groups[0].count) : each;
  }

  // The first ready class of the head's leaf (unless strict) that requests only resources of
  // which the leaf is below its share. It also counts when queues further up are compared.
  std::vector<Resources> OthersOf(const Waiting& head) const {
    const Queue& leaf = state_.queues().At(head.job->queue);
    if (leaf.spec.order == QueueOrder::kFifoStrict) return {};
    if (Standing(leaf, RequestOf(head)) == 0) return {};
    for (const auto& [key, id] : state_.pending().ready().at(leaf.id)) {
      const Resources asked =
          RequestOf({&state_.pending().Class(id), id, &state_.jobs().At(key.job)});
      if (Standing(leaf, asked) == 0) return {asked};
    }
    return {};
  }

  bool Before(QueueId a, const Waiting& for_a, QueueId b, const Waiting& for_b) const {
    const auto facts = [&](QueueId id, const Waiting& head) {
      const Queue& queue = state_.queues().At(id);
      const FairShares::OfQueue& share = shares_.At(id);
      const Resources request = RequestOf(head);
      int beyond = 0;
      int over = Standing(queue, request);
      if (over > 0) {
        for (const Resources& other : OthersOf(head)) over = std::min(over, Standing(queue, other));
      }
      for (size_t k = 0; k < kMaxResourceKinds; ++k) {
        if (request.amount[k] == 0) continue;
        const int64_t has = queue.allocated.amount[k];
        if (has + request.amount[k] > share.deserved.amount[k]) beyond = 1;
      }
      return std::tuple(over, beyond, -queue.spec.priority,
                        Dominant(queue, queue.allocated + request),
                        Dominant(queue, queue.allocated));
    };
    const auto x = facts(a, for_a), y = facts(b, for_b);
    const auto first = [](const auto& f) {
      return std::tuple(std::get<0>(f), std::get<1>(f), std::get<2>(f));
    };
    if (first(x) != first(y)) return first(x) < first(y);
    if (int order = Compare(std::get<3>(x), std::get<3>(y)); order != 0) return order < 0;
    if (int order = Compare(std::get<4>(x), std::get<4>(y)); order != 0) return order < 0;
    return a < b;
  }

  const ClusterState& state_;
  const FairShares& shares_;
};

TEST_CASE("the next class is the one that an exhaustive search gives") {
  size_t served = 0, blocked = 0, growth = 0;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    Dice dice(seed);
    TestCluster cluster;
    RandomTree tree(cluster, dice);
    for (int i = 0; i < 25; ++i) tree.Submit();
    if (dice.Chance(50)) cluster.Cycle(static_cast<uint64_t>(dice.Between(1, 30)));
    for (int i = 0; i < 10; ++i) tree.Submit();
    (void)cluster.Cycle(1);  // runs the lifecycle stage for all jobs
    const ClusterState& state = cluster.state();
    Cycle cycle(cluster.state(), cluster.policies(), cluster.now(), 1);
    ServiceOrder order(cycle, ServiceOrder::Offer::kReady);
    const FullDescent descent(state, cycle.shares());
    Placer placer(cycle);
    for (int step = 0;; ++step) {
      INFO("seed " << seed << " step " << step);
      const auto next = order.Next();
      const auto expected = descent.Next();
      REQUIRE(next.has_value() == expected.has_value());
      if (!next.has_value()) break;
      REQUIRE(next->job == expected->job->id);
      REQUIRE(next->id == expected->id);
      if (!expected->of->demand.gang) ++growth;
      auto verdict = placer.Serve(state.jobs().At(next->job));
      ++(verdict.has_value() ? blocked : served);
      if (verdict.has_value()) cycle.transaction().editor().Block(next->id, *std::move(verdict));
    }
  }
  CHECK(served > 500);
  CHECK(blocked > 500);
  CHECK(growth > 200);
}

// ---- The budget

std::vector<std::string> Binds(TestCluster& cluster, uint64_t budget) {
  std::vector<std::string> lines;
  for (int i = 0; i < 100'000; ++i) {
    const Plan plan = cluster.Cycle(budget);
    for (const EventBody& decision : plan.decisions) {
      if (std::holds_alternative<TasksBound>(decision)) {
        lines.push_back(Describe(cluster.state(), decision));
      }
    }
    if (plan.decisions.empty() && !plan.exhausted) return lines;
  }
  FAIL("cycles do not end");
  return lines;
}

TEST_CASE("where the budget ends does not change the service order") {
  size_t bound = 0, waiting = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    std::vector<std::vector<std::string>> lives;
    for (const uint64_t budget : {TestCluster::kNoBudget, uint64_t{1}, uint64_t{7}}) {
      Dice dice(seed);
      PolicyConfig config;
      config.actions = {"allocate", "backfill"};
      if (dice.Chance(30)) config.fair_share.half_life = absl::Hours(1);
      if (dice.Chance(30)) config.job_orders = {"shortest_first"};
      TestCluster cluster(*Policies::Create(config));
      RandomTree tree(cluster, dice);
      for (int i = 0; i < 30; ++i) tree.Submit();
      std::vector<std::string> life = Binds(cluster, budget);
      for (int i = 0; i < 15; ++i) tree.Submit();
      for (std::string& line : Binds(cluster, budget)) life.push_back(std::move(line));
      bound += life.size();
      waiting += cluster.state().pending().job_count();
      lives.push_back(std::move(life));
    }
    REQUIRE(lives[0] == lives[1]);
    REQUIRE(lives[0] == lives[2]);
  }
  CHECK(bound > 1000);
  CHECK(waiting > 1000);
}

}  // namespace
}  // namespace berth
