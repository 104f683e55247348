// Affinity between jobs against the plain rule, evaluated from scratch: for random labels, terms,
// racks and queues no job runs where a term forbids it, and at rest no job is pending that could be
// placed.
#include <set>

#include "core/engine/search/verdict.h"
#include "core/model/state_editor.h"
#include "core/model/transitions.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/fabric.h"

namespace berth {
namespace {

using testing::Fabric;
using testing::MakeJob;

constexpr int kRacks = 3, kNodes = 2;

class RandomNeighbours {
 public:
  explicit RandomNeighbours(uint32_t seed)
      : dice_(seed), cluster_(testing::PoliciesWith({"allocate", "backfill"})) {
    cluster_.AddRacks(kRacks, kNodes, {.cpu = 3});
    for (const char* name : {"a", "b"}) cluster_.AddQueue(name);
  }

  void Step() {
    switch (dice_.Below(4)) {
      case 0:
        return End();
      case 1:
        return Relabel();
      default:
        return Submit();
    }
  }

  // Placed tasks and their jobs. Jobs placed before a change of labels are exempt.
  void CheckApart() const {
    ForEachPlaced([&](const Job& job, NodeId node) {
      ForEachPlaced([&](const Job& other, NodeId theirs) {
        if (other.id == job.id || relabelled_.contains(job.id) || relabelled_.contains(other.id)) {
          return;
        }
        for (const AffinityTerm& term : job.affinity) {
          if (!term.apart || !Means(term, job, other)) continue;
          INFO(job.name << " and " << other.name);
          REQUIRE_FALSE(SamePlace(node, theirs, term.tier));
        }
      });
    });
  }

  // Pending tasks: no node is allowed.
  void CheckNobodyWaitsInVain() const {
    cluster_.state().jobs().ForEach([&](JobId, const Job& job) {
      if (TallyOf(job).In(TaskState::kPending) == 0 || Ended(job.status.state)) return;
      cluster_.state().nodes().ForEach([&](NodeId id, const Node& node) {
        if (node.allocated[kCpu] + 1000 > node.capacity[kCpu]) return;
        INFO(job.name << " on " << node.spec.name);
        REQUIRE_FALSE(MayBe(job, id));
      });
    });
  }
  void CheckSums() const {
    const absl::Status status = CheckConsistency(cluster_.state());
    INFO(status.ToString());
    REQUIRE(status.ok());
  }
  void Settle() { cluster_.Settle(); }
  int bars() const {
    int bars = 0;
    cluster_.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (job.status.state != JobState::kPending) return;
      bars += cluster_.Why(id)[0].code == WaitCode::kJobAffinity ? 1 : 0;
    });
    return bars;
  }

 private:
  void Submit() {
    const std::string queue = dice_.Chance(70) ? "a" : "b";
    const int replicas = dice_.Chance(30) ? 2 : 1;  // the second task is growth
    JobSpec spec =
        MakeJob(absl::StrCat("j", ++jobs_), cluster_.queue_id(queue),
                {.queue = queue, .groups = {{.replicas = replicas, .min_available = 1}}});
    spec.strategy = Strategy::kBinpack;  // without the topology of the cluster's default
    spec.labels = RandomLabels();
    for (int i = dice_.Below(3); i > 0; --i) {
      spec.affinity.push_back({.apart = dice_.Chance(60),
                               .labels = {{dice_.Chance(50) ? "x" : "y", Value()}},
                               .tier = dice_.Below(2),
                               .all_queues = dice_.Chance(40)});
    }
    cluster_.SubmitSpec(std::move(spec));
  }
  void End() {
    std::vector<JobId> running;
    cluster_.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (job.occupying > 0) running.push_back(id);
    });
    if (running.empty()) return;
    const JobId id = running[static_cast<size_t>(dice_.Below(static_cast<int>(running.size())))];
    cluster_.RunAll(id);
    for (uint32_t task = 0; task < cluster_.job(id).tasks.size(); ++task) {
      if (cluster_.job(id).tasks[task].state == TaskState::kRunning) cluster_.Exit(id, task);
    }
  }
  void Relabel() {
    std::vector<JobId> all;
    cluster_.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (!Ended(job.status.state)) all.push_back(id);
    });
    if (all.empty()) return;
    const JobId id = all[static_cast<size_t>(dice_.Below(static_cast<int>(all.size())))];
    if (cluster_.job(id).occupying > 0) relabelled_.insert(id);
    cluster_.Must(JobUpdated{.id = id, .labels = RandomLabels()});
  }
  std::map<std::string, std::string> RandomLabels() {
    std::map<std::string, std::string> labels;
    if (dice_.Chance(60)) labels["x"] = Value();
    if (dice_.Chance(30)) labels["y"] = Value();
    return labels;
  }
  std::string Value() { return absl::StrCat(dice_.Below(2)); }

  template <class Visit>
  void ForEachPlaced(const Visit& visit) const {
    cluster_.state().jobs().ForEach([&](JobId, const Job& job) {
      for (const Task& task : job.tasks) {
        if (Occupies(task.state) && !Releasing(task)) visit(job, task.node);
      }
    });
  }
  static bool Means(const AffinityTerm& term, const Job& owner, const Job& other) {
    if (!term.all_queues && owner.queue != other.queue) return false;
    for (const auto& [key, value] : term.labels) {
      const auto label = other.labels.find(key);
      if (label == other.labels.end() || label->second != value) return false;
    }
    return true;
  }
  // Nodes are numbered by rack.
  static bool SamePlace(NodeId a, NodeId b, int32_t tier) {
    return tier == 0 ? a == b : (a.value - 1) / kNodes == (b.value - 1) / kNodes;
  }
  bool MayBe(const Job& job, NodeId node) const {
    bool barred = false;
    for (const AffinityTerm& term : job.affinity) {
      bool any = false, here = false;
      ForEachPlaced([&](const Job& other, NodeId theirs) {
        if (other.id == job.id || !Means(term, job, other)) return;
        any = true;
        here |= SamePlace(node, theirs, term.tier);
      });
      const bool first = !any && Means(term, job, job);
      barred |= term.apart ? here : !here && !first;
    }
    ForEachPlaced([&](const Job& other, NodeId theirs) {
      for (const AffinityTerm& term : other.affinity) {
        const bool means = term.apart && other.id != job.id && Means(term, other, job);
        barred |= means && SamePlace(node, theirs, term.tier);
      }
    });
    return !barred;
  }

  Dice dice_;
  Fabric cluster_;
  int jobs_ = 0;
  std::set<JobId> relabelled_;  // while they were placed
};

TEST_CASE("affinity: no job runs where a term forbids it, and no job waits in vain") {
  int bars = 0;
  for (uint32_t seed = 1; seed <= Seeds(150); ++seed) {
    CAPTURE(seed);
    RandomNeighbours life(seed);
    for (int step = 0; step < 60; ++step) {
      CAPTURE(step);
      life.Step();
      life.Settle();
      life.CheckApart();
      life.CheckNobodyWaitsInVain();
      bars += life.bars();
    }
    life.CheckSums();
  }
  CHECK(bars > 1000);  // otherwise the test proves little
}

}  // namespace
}  // namespace berth
