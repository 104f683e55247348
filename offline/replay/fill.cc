#include "offline/replay/fill.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "offline/replay/mix_feed.h"
#include "offline/sim/scenario_load.h"
#include "offline/sim/sim_cluster.h"
#include "offline/sim/specs.h"
#include "support/random.h"

namespace berth::replay {
namespace {

constexpr char kQueue[] = "default";  // created if none is declared
constexpr int kMaxFillCycles = 100;

using Clock = std::chrono::steady_clock;

class Filling {
 public:
  Filling(const Workload& workload, const FillOptions& options, Policies policies)
      : workload_(workload),
        options_(options),
        random_(options.seed),
        policy_(policies.sharing().policy),
        cluster_(std::move(policies), ScenarioStart(), SimOptions{}),
        mix_(policy_, &cluster_) {}

  absl::Status Build(const sim::v1::Scenario& cluster);
  absl::StatusOr<FillRun> Run();

 private:
  std::vector<size_t> Order();
  std::vector<size_t> Shuffled(Random* random) const;
  absl::Status LearnBefore();
  absl::Status Arrive(size_t index);
  absl::Status Settle();
  int64_t InUse() const { return cluster_.state().queues().At(kRootQueue).allocated[gpu_]; }

  const Workload& workload_;
  const FillOptions options_;
  Random random_;
  const SharingPolicy policy_;
  SimCluster cluster_;
  QueueId queue_;
  ResourceKind gpu_;
  int64_t capacity_ = 0;
  MixFeed mix_;
  FillRun run_;
};

absl::Status Filling::Build(const sim::v1::Scenario& cluster) {
  if (cluster.jobs_size() > 0 || cluster.steps_size() > 0 || cluster.queues_size() > 0) {
    return absl::InvalidArgumentError("a cluster to fill has no jobs, steps or queues");
  }
  if (auto status = LoadScenario(cluster, &cluster_); !status.ok()) return status;
  queue_ = cluster_.state().FindQueue(kQueue)->id;
  const auto gpu = cluster_.state().interner().FindKind(kSharedKind);
  if (gpu.has_value()) capacity_ = cluster_.state().capacity()[*gpu];
  if (capacity_ == 0) return absl::InvalidArgumentError("the cluster has no GPUs");
  gpu_ = *gpu;
  return absl::OkStatus();
}

std::vector<size_t> Filling::Shuffled(Random* random) const {
  std::vector<size_t> order(workload_.jobs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random->Below(i)]);
  return order;
}

// Draws the jobs and their order.
std::vector<size_t> Filling::Order() {
  const auto bound = static_cast<int64_t>(static_cast<double>(capacity_) * options_.demand);
  std::vector<size_t> order = Shuffled(&random_);
  int64_t asked = 0;
  for (const size_t i : order) asked += AskedOf(workload_.jobs[i]);
  while (asked > bound) {
    const size_t at = random_.Below(order.size());
    asked -= AskedOf(workload_.jobs[order[at]]);
    order.erase(order.begin() + static_cast<ptrdiff_t>(at));
  }
  while (true) {
    const size_t more = random_.Below(workload_.jobs.size());
    asked += AskedOf(workload_.jobs[more]);
    if (asked > bound) return order;
    order.push_back(more);
  }
}

absl::Status Filling::LearnBefore() {
  if (options_.known == 0) return absl::OkStatus();
  Random random(~options_.seed);  // the order of arrivals is the same with and without
  const std::vector<size_t> order = Shuffled(&random);
  for (int64_t i = 0; i < options_.known; ++i) {
    const TraceJob& job = workload_.jobs[order[static_cast<size_t>(i) % order.size()]];
    mix_.Know(job.shape, job.tasks);
  }
  return mix_.Give();
}

absl::Status Filling::Settle() {
  for (int i = 0; i < kMaxFillCycles; ++i) {
    const auto plan = cluster_.Cycle([](const EventBody&) {});
    if (!plan.ok()) return plan.status();
    if (cluster_.quiet()) return absl::OkStatus();
  }
  return absl::InternalError("the state still changes after very many cycles");
}

absl::Status Filling::Arrive(size_t index) {
  const TraceJob& from = workload_.jobs[index];
  const Clock::time_point begin = Clock::now();
  const JobId id = cluster_.state().next_job_id();
  JobSpec spec{.name = absl::StrCat("job-", id.value), .queue = queue_, .min_available = 1};
  spec.ttl_after_finished = absl::ZeroDuration();
  GroupSpec group{.name = "main", .replicas = 1, .min_available = 1, .shape = from.shape};
  spec.groups.push_back(std::move(group));
  absl::Status status = cluster_.Happen(JobSubmitted{id, std::move(spec)});
  if (!status.ok())
    return absl::Status(status.code(), absl::StrCat(from.name, ": ", status.message()));
  if (status = Settle(); !status.ok()) return status;
  ++run_.arrived;
  run_.arrivals.push_back({.job = index, .place = {}});
  const Job& job = cluster_.state().jobs().At(id);
  if (job.occupying > 0) {
    const Task& task = job.tasks[0];
    run_.arrivals.back().place = {.any = true, .node = task.node, .devices = task.devices};
  } else {
    ++run_.dropped;
    status = cluster_.Happen(JobCancelled{.id = id});
    if (status.ok()) status = Settle();
  }
  run_.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  return status;
}

absl::StatusOr<FillRun> Filling::Run() {
  for (const TraceJob& job : workload_.jobs) {
    if (job.tasks != 1)
      return absl::InvalidArgumentError(absl::StrCat(job.name, ": has several tasks"));
  }
  if (auto status = LearnBefore(); !status.ok()) return status;
  int64_t asked = 0;
  bool passed = false;
  const std::vector<size_t> order = Order();
  for (const size_t index : order) {
    if (options_.watch != nullptr) {
      options_.watch->Progress(run_.arrived, static_cast<int64_t>(order.size()));
      if (run_.interrupted = options_.watch->stopped(); run_.interrupted) break;
    }
    if (auto status = Arrive(index); !status.ok()) return status;
    const TraceJob& job = workload_.jobs[index];
    if (auto status = mix_.Come(job.shape, job.tasks); !status.ok()) return status;
    asked += AskedOf(workload_.jobs[index]);
    if (passed || asked < capacity_) continue;
    passed = true;
    run_.at_capacity = InUnits(InUse(), capacity_);
  }
  run_.at_end = InUnits(InUse(), capacity_);
  run_.mixes = mix_.given();
  run_.seed = options_.seed;
  run_.names = PlaceNames(cluster_.state());
  return run_;
}

}  // namespace

int64_t AskedOf(const TraceJob& job) {
  for (const DeviceRequest& request : job.shape.devices) {
    if (request.kind != kSharedKind) continue;
    return request.share > 0 ? request.share : request.count * kWhole;
  }
  return 0;
}

absl::StatusOr<FillRun> Fill(const Workload& workload, const sim::v1::Scenario& cluster,
                             const FillOptions& options) {
  const auto asks = [](const TraceJob& job) { return AskedOf(job) > 0; };
  if (std::none_of(workload.jobs.begin(), workload.jobs.end(), asks)) {
    return absl::InvalidArgumentError("no job of the workload requests GPUs");
  }
  const auto config = ToPolicyConfig(cluster.config(), "config");
  if (!config.ok()) return config.status();
  Filling filling(workload, options, *Policies::Create(*config));
  if (auto status = filling.Build(cluster); !status.ok()) return status;
  return filling.Run();
}

}  // namespace berth::replay
