// Gangs with a hard topology constraint in a cluster of 16,384 nodes: 1,024 racks, 64 pods, 8
// spines, 2 halls.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/bench/core_cluster.h"
#include "tests/bench/core_figures.h"

namespace berth::bench {
namespace {

// The expected result for the gang.
enum class Outcome : uint8_t {
  kStarts,
  kWaits,     // with `allocate` only: nothing is reserved
  kReserves,  // in a whole cycle: its queue may not reclaim
  kInVain,    // likewise: it may, but no queue exceeds its share
  kReclaims,  // in a whole cycle: its queue may reclaim everything that others borrowed
};
struct Case {
  const char* name;
  int32_t tasks;
  const char* tier;
  int64_t percent;  // of the GPUs, in use
  Outcome outcome = Outcome::kStarts;
  bool fits() const { return outcome == Outcome::kStarts; }
  bool entitled() const { return fits() || outcome == Outcome::kReclaims; }
};
constexpr Case kCases[] = {
    {"gang_256_pod", 256, "pod", 30},
    {"gang_512", 512, "spine", 30},
    {"gang_1000", 1'000, "spine", 30},
    {"gang_2048", 2'048, "hall", 30},
    {"gang_4096", 4'096, "hall", 30},
    {"no_domain", 1'000, "spine", 95, Outcome::kWaits},
    {"no_domain_whole_cycle", 1'000, "spine", 95, Outcome::kReserves},
    {"reclaim_in_vain", 1'000, "spine", 95, Outcome::kInVain},
    {"reclaim", 1'000, "spine", 95, Outcome::kReclaims},
};

Policies PoliciesFor(const Case& of) {
  if (of.outcome != Outcome::kWaits) return Policies::Default();
  PolicyConfig config;
  config.actions = {"allocate"};
  return *Policies::Create(config);
}

// Any model is accepted, so that only the topology decides.
JobSpec GangOf(const std::string& name, QueueId queue, const Case& of, int32_t tasks) {
  JobSpec spec = WholeNodeGang(name, queue, tasks);
  spec.groups[0].shape.devices[0].models.clear();
  spec.topology = {.mode = TopologyMode::kHard, .highest_tier_name = of.tier};
  return spec;
}

// Whether the plan has a decision of this type about the job for which `is` is true.
template <class Decision, class Is>
bool Decides(const Plan& plan, JobId id, Is&& is) {
  return std::any_of(plan.decisions.begin(), plan.decisions.end(), [&](const EventBody& body) {
    const auto* decision = std::get_if<Decision>(&body);
    return decision != nullptr && decision->job == id && is(*decision);
  });
}

void CheckOutcome(const Plan& plan, JobId id, int32_t tasks, Outcome outcome) {
  const auto places = [&](const auto& decision) {
    return decision.placements.size() == static_cast<size_t>(tasks);
  };
  const auto kept = [](const JobReserved& d) { return !d.reservation.places.empty(); };
  const bool starts = Decides<TasksBound>(plan, id, places);
  const bool reserves = Decides<JobReserved>(plan, id, kept);
  const bool reclaims = Decides<TasksNominated>(plan, id, places);
  const bool waits_for_ends = outcome == Outcome::kReserves || outcome == Outcome::kInVain;
  if (starts != (outcome == Outcome::kStarts) || reclaims != (outcome == Outcome::kReclaims) ||
      (waits_for_ends && !reserves)) {
    Fail("the plan for the gang is not the expected one");
  }
}

void CheckTier(const CoreCluster& cluster, JobId id, const char* tier) {
  const ClusterState& state = cluster.state();
  HyperNodeId common;
  for (const Task& task : state.jobs().At(id).tasks) {
    const HyperNode* at = state.DomainOf(state.nodes().At(task.node), kNetworkKind);
    while (at != nullptr && at->spec.tier_name != tier) at = state.hyper_nodes().Find(at->parent);
    if (at == nullptr || (common != HyperNodeId{} && at->id != common)) Fail("not in one domain");
    common = at->id;
  }
}

Figures Measure(int64_t nodes, const Case& of) {
  CoreCluster cluster(PoliciesFor(of));
  const int64_t gpus = nodes * kGpusPerNode;
  const std::vector<QueueId> teams = AddTeams(cluster, gpus / 32);
  QueueSpec own{.name = "trainers"};
  if (of.entitled()) own.deserved = {{"gpu", gpus * kWhole}};
  if (of.outcome == Outcome::kReserves) own.weight = 0;
  const QueueId trainers = cluster.AddQueue(std::move(own));
  cluster.AddNodes(nodes);
  cluster.AddTree();
  Workload(teams, /*seed=*/17).SubmitGpus(cluster, gpus * of.percent / 100);
  cluster.RunAll();
  constexpr int kGangs = 21;
  std::vector<double> us;
  for (int gang = 0; gang < kGangs; ++gang) {
    cluster.Advance(absl::Minutes(1));
    cluster.Settle();
    const int32_t tasks = of.tasks + (of.fits() ? 0 : gang);  // a size not yet known to wait
    const JobId id = cluster.Submit(GangOf(absl::StrCat("gang-", gang), trainers, of, tasks));
    const TimedPlan timed = cluster.PlanTimed();
    us.push_back(timed.seconds * 1e6);
    CheckOutcome(timed.plan, id, tasks, of.outcome);
    cluster.ApplyTimed(timed.plan);
    if (gang == 0) cluster.Check();
    if (gang == 0 && of.fits()) CheckTier(cluster, id, of.tier);
    if (!of.fits()) cluster.Apply(JobCancelled{.id = id});
    cluster.RunAll();
    if (of.fits()) cluster.Finish(id);
  }
  return {{"us", Median(us)},
          {"first_us", us.front()},
          {"slowest_us", *std::max_element(us.begin(), us.end())},
          {"us_per_task", Median(us) / of.tasks},
          {"nodes", static_cast<double>(nodes)},
          {"state", cluster.StateDigest()},
          {"tasks", static_cast<double>(of.tasks)},
          {"percent_used",
           static_cast<double>(cluster.GpusHeld()) * 100 / static_cast<double>(cluster.Gpus())}};
}

}  // namespace

std::vector<Row> CoreTopology(const Options& options) {
  std::vector<Row> rows;
  for (const Case& of : kCases) {
    if (!options.Wants(of.name)) continue;
    Case scaled = of;
    scaled.tasks = static_cast<int32_t>(Scaled(options, of.tasks, of.tasks / 16));
    const int64_t nodes = Scaled(options, 16'384, 1'024);
    Row row = FiguresRow("core.topology", "us", "us",
                         Runs(options, 3, [=] { return Measure(nodes, scaled); }));
    row.texts["case"] = of.name;
    row.texts["tier"] = of.tier;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace berth::bench
