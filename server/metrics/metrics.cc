#include "server/metrics/metrics.h"

#include <prometheus/text_serializer.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "core/model/pauses.h"
#include "server/convert/job.h"
#include "server/convert/node.h"
#include "server/convert/values.h"
#include "server/metrics/families.h"
#include "server/metrics/ha_metrics.h"
#include "server/reads/cluster_totals.h"
#include "server/reads/read_view.h"
#include "server/reads/waiting_jobs.h"
#include "support/clock.h"
#include "support/pki/certificate.h"
#include "support/text_file.h"
#include "support/version.h"

namespace berth {
namespace {

double AsDouble(uint64_t value) { return static_cast<double>(value); }
double AsDouble(int64_t value) { return static_cast<double>(value); }

// In base units: cores, bytes, devices.
double Amount(const Resources& resources, ResourceKind kind) {
  const double amount = AsDouble(resources[kind]);
  return kind == kCpu ? amount / 1000 : InUnits(resources[kind], UnitOf(kind));
}

void AddProcess(const MetricSources& sources, FamilyList& out) {
  out.Gauge("build_info", "Always 1; the label is the version.", 1, {{"version", kBerthVersion}});
  out.Gauge("start_time_seconds", "Start time of this process, since 1970.",
            absl::ToDoubleSeconds(sources.start - absl::UnixEpoch()));
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  statm >> total >> resident;
  out.Gauge("resident_memory_bytes", "Memory of this process.",
            AsDouble(resident * sysconf(_SC_PAGESIZE)));
}

void AddStates(const ClusterState& state, FamilyList& out) {
  for (size_t i = 0; i < kJobStates; ++i) {
    const auto s = static_cast<JobState>(i);
    out.Gauge("jobs", "Jobs by state.", AsDouble(state.jobs_in(s)),
              {{"state", ShortName(v1::JobState_Name(JobStateToApi(s)), "JOB_")}});
  }
  for (size_t i = 0; i < kTaskStates; ++i) {
    const auto s = static_cast<TaskState>(i);
    out.Gauge("tasks", "Tasks by state, without tasks that an ended job never started.",
              AsDouble(state.tasks_in(s)),
              {{"state", ShortName(v1::TaskState_Name(TaskStateToApi(s)), "TASK_")}});
  }
}

// Jobs that are paused: held by their users, and others.
std::array<uint64_t, 2> CountPaused(ReadView& view) {
  std::array<uint64_t, 2> counts{};
  JobId next{0};
  const auto look = [&](const ClusterState& state) {
    auto it = state.paused_jobs().lower_bound(next);
    for (size_t row = 0; row < kMaxRowsPerStep; ++row, ++it) {
      if (it == state.paused_jobs().end()) return false;
      ++counts[Yields(state.jobs().At(*it).status) ? 1 : 0];
      next = JobId{it->value + 1};
    }
    return true;
  };
  while (view.Step(look)) {
  }
  return counts;
}

void AddPaused(ReadView& view, FamilyList& out) {
  const std::array<uint64_t, 2> counts = CountPaused(view);
  const std::string help =
      "Jobs whose tasks are frozen, or about to be: by their users, or for jobs of higher "
      "priority.";
  out.Gauge("jobs_paused", help, AsDouble(counts[0]), {{"by", "user"}});
  out.Gauge("jobs_paused", help, AsDouble(counts[1]), {{"by", "preemption"}});
}

void AddBackoffs(const ClusterState& state, FamilyList& out) {
  out.Gauge("nodes_backing_off",
            "Nodes without new tasks for a while, after refusing a start through their own fault.",
            AsDouble(uint64_t{state.backoffs().size()}));
}

void AddMix(const ClusterState& state, FamilyList& out) {
  const RequestMix& mix = state.request_mix();
  out.Gauge("request_mix_types",
            "Types of requests in the mix for sharing devices (docs/developers/sharing.md).",
            AsDouble(static_cast<uint64_t>(mix.types.size())));
  out.Gauge("request_mix_priced", "1 if their values are known.", mix.priced ? 1 : 0);
}

struct KindAmount {
  std::string name;
  ResourceKind kind;
};

std::vector<KindAmount> Kinds(const Interner& interner) {
  std::vector<KindAmount> kinds;
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    kinds.push_back({interner.KindName(kind), kind});
  }
  return kinds;
}

void AddNodes(const MetricSources& sources, ReadView& view, FamilyList& out) {
  const NodeTotals totals = SumNodes(view, SystemClock().Now());
  for (size_t i = 0; i < totals.by_state.size(); ++i) {
    const auto s = static_cast<NodeState>(i);
    out.Gauge("nodes", "Nodes by state.", AsDouble(totals.by_state[i]),
              {{"state", ShortName(v1::NodeState_Name(NodeStateToApi(s)), "NODE_")}});
  }
  out.Gauge("nodes_cordoned", "Nodes that are cordoned or draining.", AsDouble(totals.cordoned));
  out.Gauge(
      "nodes_failing",
      "Nodes that have failed under tasks again and again, and should be cordoned and repaired "
      "(docs/operators/nodes.md).",
      AsDouble(totals.failing));
  out.Gauge("nodes_silent", "Nodes whose lease has expired and whose tasks may still run.",
            AsDouble(sources.leases->silent()));
  out.Gauge("silent_brake",
            "1 while fencing is suspended: too many nodes are silent at once. Check the network.",
            sources.leases->braking() ? 1 : 0);
  out.Gauge("health_brake_held",
            "Nodes whose agents report problems that would cordon or drain them, which the server "
            "only notes for now: agents have cordoned or drained too many nodes within 5 minutes.",
            AsDouble(sources.gateway->HeldConditions()));
  const auto kinds = view.Step([](const ClusterState& state) { return Kinds(state.interner()); });
  for (const KindAmount& kind : kinds) {
    out.Gauge("capacity", "Of nodes that accept tasks: cores, bytes, devices.",
              Amount(totals.capacity, kind.kind), {{"resource", kind.name}});
  }
  const std::string help =
      "What of that is free: on nodes without tasks (empty), and on the others (shared).";
  for (const KindAmount& kind : kinds) {
    out.Gauge("free", help, Amount(totals.free_on_empty, kind.kind),
              {{"resource", kind.name}, {"nodes", "empty"}});
    out.Gauge("free", help, Amount(totals.free_on_shared, kind.kind),
              {{"resource", kind.name}, {"nodes", "shared"}});
  }
}

struct QueueSample {
  std::string name;
  Queue queue;
};

std::vector<QueueSample> SampleQueues(ReadView& view) {
  std::vector<QueueSample> samples;
  QueueId next{0};
  const auto look = [&](const ClusterState& state) {
    for (size_t row = 0; row < kMaxRowsPerStep; ++row) {
      const std::optional<QueueId> id = state.queues().NextFrom(next);
      if (!id.has_value()) return false;
      next = QueueId{id->value + 1};
      const Queue& queue = state.queues().At(*id);
      samples.push_back({queue.spec.name, queue});
    }
    return true;
  };
  while (view.Step(look)) {
  }
  return samples;
}

void AddQueueAmounts(const std::vector<QueueSample>& samples, const std::vector<KindAmount>& kinds,
                     const std::string& name, const std::string& help, Resources Queue::*field,
                     FamilyList& out) {
  for (const QueueSample& sample : samples) {
    for (const KindAmount& kind : kinds) {
      const int64_t amount = (sample.queue.*field)[kind.kind];
      if (amount == INT64_MAX) continue;  // no limit
      out.Gauge(name, help, Amount(sample.queue.*field, kind.kind),
                {{"queue", sample.name}, {"resource", kind.name}});
    }
  }
}

void AddQueues(ReadView& view, FamilyList& out) {
  const std::vector<QueueSample> samples = SampleQueues(view);
  const auto kinds = view.Step([](const ClusterState& state) { return Kinds(state.interner()); });
  AddQueueAmounts(samples, kinds, "queue_allocated",
                  "Held by the queue's subtree: cores, bytes, devices.", &Queue::allocated, out);
  AddQueueAmounts(samples, kinds, "queue_pending", "Requested by its pending tasks.",
                  &Queue::pending, out);
  AddQueueAmounts(samples, kinds, "queue_wanted",
                  "Part of it: of jobs that may be placed, so neither held nor suspended.",
                  &Queue::wanted, out);
  AddQueueAmounts(samples, kinds, "queue_limit", "Its hard cap, if there is one.", &Queue::limit,
                  out);
  AddQueueAmounts(samples, kinds, "queue_deserved", "What it deserves.", &Queue::deserved, out);
  AddQueueAmounts(samples, kinds, "queue_guarantee", "What is kept for it.", &Queue::guarantee,
                  out);
  for (const QueueSample& sample : samples) {
    const Queue& queue = sample.queue;
    const std::string help =
        "Jobs of the queue's subtree: active (not ended), running, held, ended.";
    out.Gauge("queue_jobs", help, AsDouble(queue.active_jobs),
              {{"queue", sample.name}, {"kind", "active"}});
    out.Gauge("queue_jobs", help, AsDouble(queue.running_jobs),
              {{"queue", sample.name}, {"kind", "running"}});
    out.Gauge("queue_jobs", help, AsDouble(queue.held_jobs),
              {{"queue", sample.name}, {"kind", "held"}});
    out.Gauge("queue_jobs", help, AsDouble(queue.jobs - queue.active_jobs),
              {{"queue", sample.name}, {"kind", "ended"}});
  }
}

struct TierCount {
  int64_t hyper_nodes = 0, degraded = 0;  // degraded: themselves
};

// By kind and tier, because a gauge for each HyperNode would be too many.
void AddHyperNodes(ReadView& view, FamilyList& out) {
  std::map<std::pair<std::string, int32_t>, TierCount> tiers;
  HyperNodeId next{0};
  const auto look = [&](const ClusterState& state) {
    for (size_t row = 0; row < kMaxRowsPerStep; ++row) {
      const std::optional<HyperNodeId> id = state.hyper_nodes().NextFrom(next);
      if (!id.has_value()) return false;
      next = HyperNodeId{id->value + 1};
      const HyperNodeSpec& spec = state.hyper_nodes().At(*id).spec;
      TierCount& tier = tiers[{spec.kind, spec.tier}];
      ++tier.hyper_nodes;
      if (spec.health == DomainHealth::kDegraded) ++tier.degraded;
    }
    return true;
  };
  while (view.Step(look)) {
  }
  for (const auto& [key, tier] : tiers) {
    out.Gauge("hypernodes", "HyperNodes by kind of topology and tier.", AsDouble(tier.hyper_nodes),
              {{"kind", key.first}, {"tier", std::to_string(key.second)}});
  }
  for (const auto& [key, tier] : tiers) {
    out.Gauge("hypernodes_degraded", "HyperNodes with links slower than they should be.",
              AsDouble(tier.degraded), {{"kind", key.first}, {"tier", std::to_string(key.second)}});
  }
}

// Of the jobs that report steps: the oldest ones, so that a scrape stays bounded.
constexpr size_t kMostJobsWithSteps = 1000;

void AddJobSteps(const MetricSources& sources, ReadView& view, FamilyList& out) {
  const std::vector<std::pair<JobId, int64_t>> steps = sources.told->Steps(kMostJobsWithSteps);
  const Time now = SystemClock().Now();
  for (const auto& [id, step] : steps) {
    std::string name;
    Time saved = absl::InfinitePast();
    view.Step([&, id = id](const ClusterState& state) {
      const Job* job = state.jobs().Find(id);
      if (job == nullptr) return false;
      name = job->name;
      saved = job->status.checkpoint.time;
      return false;
    });
    if (name.empty()) continue;
    out.Gauge("job_step", "Step of the task that has come least far, of jobs that report steps.",
              static_cast<double>(step), {{"job", name}});
    if (saved == absl::InfinitePast()) continue;
    out.Gauge("job_checkpoint_age_seconds", "Time since the latest checkpoint, of these jobs.",
              absl::ToDoubleSeconds(now - saved), {{"job", name}});
  }
}

void AddToldProgress(const MetricSources& sources, ReadView& view, FamilyList& out) {
  const ProgressCounters& counters = sources.told->counters();
  out.Counter("progress_messages", "Messages of agents about the progress of tasks.",
              AsDouble(counters.messages.load()));
  out.Counter("progress_tasks", "Progress of tasks in these messages.",
              AsDouble(counters.tasks.load()));
  out.Counter("progress_stale", "Of these, about attempts that did not run any more.",
              AsDouble(counters.stale.load()));
  out.Counter("progress_datagrams_dropped", "What tasks wrote to NOTIFY_SOCKET beyond its limits.",
              AsDouble(counters.dropped_datagrams.load()));
  out.Gauge("slow_nodes", "Nodes on which the steps of some job take much longer.",
            AsDouble(sources.told->SlowNodes()));
  AddJobSteps(sources, view, out);
}

void AddConditions(const MetricSources& sources, ReadView& view, FamilyList& out) {
  auto counts = CountConditions(view, *sources.restarts, SystemClock().Now());
  counts[v1::JobCondition::SLOW_NODE] = sources.told->SlowJobs();
  counts[v1::JobCondition::IDLE_DEVICES] = sources.told->IdleJobs();
  for (int kind = 1; kind < v1::JobCondition::Kind_ARRAYSIZE; ++kind) {
    const std::string& name =
        v1::JobCondition::Kind_Name(static_cast<v1::JobCondition::Kind>(kind));
    out.Gauge("job_conditions", "Jobs with a condition (docs/operators/monitoring.md).",
              AsDouble(counts[static_cast<size_t>(kind)]), {{"condition", name}});
  }
  out.Gauge("queue_conditions", "Queues with a condition (docs/operators/monitoring.md).",
            AsDouble(sources.refused_starts->Queues()), {{"condition", "STARTS_REFUSED"}});
}

// Why jobs wait, and for how long.
void AddWaits(const MetricSources& sources, ReadView& view, FamilyList& out) {
  const auto counts = CountWaitingJobs(view, SystemClock().Now());
  for (int code = 0; code < v1::WaitReason::Code_ARRAYSIZE; ++code) {
    const std::string& name = v1::WaitReason::Code_Name(static_cast<v1::WaitReason::Code>(code));
    out.Gauge("jobs_waiting",
              "Pending jobs by the most important reason that berth job explain names, of the "
              "1,000 oldest ones.",
              AsDouble(counts[static_cast<size_t>(code)]), {{"reason", name}});
  }
  if (sources.submit_seconds != nullptr) {
    out.AddHistogram("submit_seconds",
                     "From a call that submits jobs until they are durable and it is answered.",
                     *sources.submit_seconds);
  }
  if (sources.waits == nullptr) return;
  out.AddHistogram("decision_seconds",
                   "From a job's submission, or its start time if that is later, to its first "
                   "placement; also while it is held.",
                   sources.waits->decisions());
  out.AddHistogram("start_seconds", "From the placement of a job until all its tasks run.",
                   sources.waits->starts());
}

constexpr std::array<const char*, kReleaseReasons> kReleaseReasonNames = {
    "cancelled", "suspended",    "restart",     "gang_broken",  "drain",
    "timeout",   "completed",    "failed",      "not_prepared", "reclaimed",
    "preempted", "consolidated", "gang_expired"};

void AddReleases(const ProgressCounter& progress, FamilyList& out) {
  for (size_t i = 0; i < kReleaseReasons; ++i) {
    out.Counter("tasks_released",
                "Tasks that were told to stop, by reason. Evictions for other jobs are reclaimed, "
                "preempted and consolidated.",
                AsDouble(progress.tasks_released[i].load()), {{"reason", kReleaseReasonNames[i]}});
  }
  out.Counter("nodes_silenced", "Nodes that fell silent.",
              AsDouble(progress.nodes_silenced.load()));
  out.Counter("nodes_fenced", "Silent nodes that became lost: their tasks are certain to be gone.",
              AsDouble(progress.nodes_fenced.load()));
}

void AddProgress(const ProgressCounter& progress, FamilyList& out) {
  out.Counter("jobs_submitted", "Jobs accepted.", AsDouble(progress.jobs_submitted.load()));
  const std::array<std::string, 3> outcomes = {"succeeded", "failed", "cancelled"};
  for (size_t i = 0; i < outcomes.size(); ++i) {
    out.Counter("jobs_ended", "Jobs that ended, by outcome.",
                AsDouble(progress.jobs_ended[i].load()), {{"outcome", outcomes[i]}});
  }
  const std::string pauses =
      "Decisions to freeze tasks of a job: of its user, or for a job of higher priority.";
  out.Counter("job_pauses", pauses, AsDouble(progress.pauses_by_user.load()), {{"by", "user"}});
  out.Counter("job_pauses", pauses, AsDouble(progress.pauses_by_preemption.load()),
              {{"by", "preemption"}});
  out.Counter("tasks_bound", "Placements decided.", AsDouble(progress.tasks_bound.load()));
  out.Counter("tasks_started", "Attempts that agents reported running.",
              AsDouble(progress.tasks_started.load()));
  out.Counter("tasks_exited", "Attempts that agents reported gone.",
              AsDouble(progress.tasks_exited.load()));
  const std::string refused =
      "Starts that agents refused, by fault: the job's, the node's, or nobody's.";
  out.Counter("starts_refused", refused, AsDouble(progress.refused_by_job.load()),
              {{"fault", "job"}});
  out.Counter("starts_refused", refused, AsDouble(progress.refused_by_node.load()),
              {{"fault", "node"}});
  out.Counter("starts_refused", refused, AsDouble(progress.refused_by_nobody.load()),
              {{"fault", "nobody"}});
}

void AddLoop(const Loop& loop, FamilyList& out) {
  const LoopCounters& counters = loop.counters();
  out.AddHistogram("turn_seconds", "One turn of the loop: commands, planning, records.",
                   counters.turn_seconds);
  out.AddHistogram("plan_seconds", "One planning cycle.", counters.cycle_seconds);
  out.Counter("cycles", "Planning cycles.", AsDouble(counters.cycles.load()));
  out.Counter("cycles_cut", "Planning cycles that used up their budget.",
              AsDouble(counters.cycles_exhausted.load()));
  out.Counter("jobs_considered", "Jobs that planning considered.",
              AsDouble(counters.jobs_considered.load()));
  out.Counter("commands", "Commands run.", AsDouble(counters.commands.load()));
  out.Counter("commands_refused", "Commands refused: too many, or the disk is full.",
              AsDouble(counters.commands_refused.load()));
  out.Counter("events", "Events applied.", AsDouble(counters.events.load()));
  out.Gauge("commands_pending", "Queued commands, by weight.",
            AsDouble(uint64_t{counters.pending_commands.load()}));
  out.Gauge("cycle_budget", "Work allowed in one cycle.", AsDouble(counters.cycle_budget.load()));
  out.Gauge("durable_revision", "Last revision on disk.", AsDouble(loop.DurableRevision()));
  out.Gauge("accepting_work", "0 while new work is refused because the disk is full.",
            loop.PausedReason().empty() ? 1 : 0);
}

void AddCommitter(const GroupCommitter& committer, FamilyList& out) {
  const CommitterCounters& counters = committer.counters();
  out.AddHistogram("commit_seconds", "One write with its sync.", counters.write_seconds);
  out.Counter("commit_batches", "Batches written.", AsDouble(counters.batches.load()));
  out.Counter("commit_writes", "Writes; each carries a group of batches.",
              AsDouble(counters.writes.load()));
  out.Counter("commit_bytes", "Bytes written to the store.", AsDouble(counters.bytes.load()));
  out.Counter("commit_full_retries", "Writes that found the disk full and were retried.",
              AsDouble(counters.full_retries.load()));
  out.Gauge("commit_backlog", "Batches that are not durable yet.",
            AsDouble(uint64_t{committer.Backlog()}));
}

void AddStore(const StoreHealth* health, FamilyList& out) {
  if (health == nullptr) return;
  out.Counter("store_read_errors", "Reads that found damage in the store's files.",
              AsDouble(health->read_errors()));
  out.Gauge("store_reserve_bytes",
            "Reserve for a full disk; less than 33554432: part was released, or there was no room.",
            AsDouble(health->reserve().bytes()));
}

void AddDisk(const std::string& directory, FamilyList& out) {
  struct statvfs disk = {};
  if (directory.empty() || statvfs(directory.c_str(), &disk) != 0) return;
  const auto block = AsDouble(uint64_t{disk.f_frsize});
  out.Gauge("disk_size_bytes", "Of the file system of dataDirectory.",
            AsDouble(uint64_t{disk.f_blocks}) * block);
  out.Gauge("disk_free_bytes", "Of these, free for berthd's user.",
            AsDouble(uint64_t{disk.f_bavail}) * block);
}

// Since 1970; nullopt: there is no such certificate.
std::optional<double> ExpiryOf(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const absl::StatusOr<std::string> pem = ReadTextFile(path);
  if (!pem.ok()) return std::nullopt;
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(*pem);
  if (!names.ok()) return std::nullopt;
  return absl::ToDoubleSeconds(names->not_after - absl::UnixEpoch());
}

void AddCertificates(const TlsFiles& tls, FamilyList& out) {
  const std::string help =
      "When a file of berthd's `tls` expires (its first certificate), since 1970.";
  if (const std::optional<double> expiry = ExpiryOf(tls.certificate)) {
    out.Gauge("certificate_expiry_time_seconds", help, *expiry, {{"file", "certificate"}});
  }
  if (const std::optional<double> expiry = ExpiryOf(tls.ca)) {
    out.Gauge("certificate_expiry_time_seconds", help, *expiry, {{"file", "ca"}});
  }
}

void AddAgents(const MetricSources& sources, FamilyList& out) {
  const AgentCounters& counters = sources.gateway->counters();
  out.Gauge("agent_sessions", "Agents connected.", AsDouble(uint64_t{sources.gateway->sessions()}));
  for (const auto& [condition, nodes] : sources.gateway->Conditions()) {
    out.Gauge("node_conditions", "Connected nodes that report a condition, by condition.",
              static_cast<double>(nodes), {{"condition", condition}});
  }
  out.Counter("agent_registrations", "Agents registered.", AsDouble(counters.registrations.load()));
  out.Counter("agent_hellos_refused", "Agents refused: name in use, or invalid Hello.",
              AsDouble(counters.hellos_refused.load()));
  out.Counter("agent_stale_epochs", "Messages of an old registration, refused.",
              AsDouble(counters.stale_epochs.load()));
  out.Counter("agent_heartbeats", "Heartbeats answered.", AsDouble(counters.heartbeats.load()));
  out.Counter("agent_reports", "Reports of tasks.", AsDouble(counters.reports.load()));
  out.Counter("agent_reports_duplicate", "Reports with nothing new.",
              AsDouble(counters.duplicate_reports.load()));
  out.Counter("agent_reports_unknown", "Reports of attempts that the state does not have.",
              AsDouble(counters.unknown_reports.load()));
  out.Counter("agent_reports_foreign", "Reports of another incarnation of the store, ignored.",
              AsDouble(counters.foreign_reports.load()));
  out.Counter("agent_messages_sent", "Messages to agents.",
              AsDouble(counters.messages_sent.load()));
  out.Counter("agent_messages_dropped", "Messages for sessions that were gone.",
              AsDouble(counters.messages_dropped.load()));
  const MigKeeper::Counters& migs = sources.migs->counters();
  const std::string divisions = "Attempts to divide GPUs in MIG mode, by outcome.";
  out.Counter("gpu_divisions", divisions, AsDouble(migs.done.load()), {{"outcome", "done"}});
  out.Counter("gpu_divisions", divisions, AsDouble(migs.failed.load()), {{"outcome", "failed"}});
  const DispatchCounters& dispatch = sources.dispatcher->counters();
  const std::string help = "Orders sent to agents.";
  out.Counter("dispatches", help, AsDouble(dispatch.prepares.load()), {{"order", "prepare"}});
  out.Counter("dispatches", help, AsDouble(dispatch.starts.load()), {{"order", "start"}});
  out.Counter("dispatches", help, AsDouble(dispatch.kills.load()), {{"order", "kill"}});
  out.Counter("dispatches", help, AsDouble(dispatch.checkpoints.load()), {{"order", "checkpoint"}});
  out.Counter("dispatches", help, AsDouble(dispatch.dumps.load()), {{"order", "stacks"}});
  out.Counter("dispatches", help, AsDouble(dispatch.prefetches.load()), {{"order", "prefetch"}});
  out.Counter("dispatches", help, AsDouble(dispatch.freezes.load()), {{"order", "freeze"}});
  out.AddHistogram("dispatch_seconds", "From durable to handed to the agents' streams, per turn.",
                   dispatch.seconds);
}

void AddReaders(const MetricSources& sources, FamilyList& out) {
  out.Gauge("watchers", "Watch streams.", AsDouble(uint64_t{sources.watches->watchers()}));
  out.Counter("watch_store_reads", "Reads of the log for watchers that fell behind.",
              AsDouble(sources.watches->store_reads()));
  out.Gauge("log_readers", "Task logs being read.", AsDouble(uint64_t{sources.logs->open()}));
}

// Adds an event to the totals.
struct Count {
  ProgressCounter& progress;

  void operator()(const JobSubmitted&) { ++progress.jobs_submitted; }
  void operator()(const NodeSilenced&) { ++progress.nodes_silenced; }
  void operator()(const NodeFenced&) { ++progress.nodes_fenced; }
  void operator()(const TasksReleased& event) {
    progress.tasks_released[static_cast<size_t>(event.reason)] += event.tasks.size();
  }
  void operator()(const TasksBound& event) { progress.tasks_bound += event.placements.size(); }
  void operator()(const TaskReported& event) {
    if (event.state == ReportState::kRunning) ++progress.tasks_started;
    if (event.state == ReportState::kExited) ++progress.tasks_exited;
    if (event.state != ReportState::kRefused) return;
    ++(event.own_fault       ? progress.refused_by_job
       : event.nobodys_fault ? progress.refused_by_nobody
                             : progress.refused_by_node);
  }
  void operator()(const TasksPaused& event) {
    ++(event.beneficiary == JobId{} ? progress.pauses_by_user : progress.pauses_by_preemption);
  }
  void operator()(const JobStatusChanged& event) {
    if (!Ended(event.status.state)) return;
    ++progress.jobs_ended[static_cast<size_t>(event.status.state) -
                          static_cast<size_t>(JobState::kSucceeded)];
  }
  template <class Other>
  void operator()(const Other&) {}
};

}  // namespace

void ProgressCounter::OnTurnDurable(uint64_t, std::shared_ptr<const std::vector<Event>> events,
                                    std::shared_ptr<const std::string>) {
  for (const Event& event : *events) std::visit(Count{*this}, event.body);
}

std::vector<prometheus::MetricFamily> Metrics::Collect() const {
  FamilyList out;
  AddProcess(sources_, out);
  ReadView view(*sources_.loop);
  view.Step([&](const ClusterState& state) {
    AddStates(state, out);
    AddBackoffs(state, out);
    AddMix(state, out);
    return 0;
  });
  AddPaused(view, out);
  AddNodes(sources_, view, out);
  AddQueues(view, out);
  AddHyperNodes(view, out);
  AddConditions(sources_, view, out);
  AddToldProgress(sources_, view, out);
  AddProgress(progress_, out);
  AddReleases(progress_, out);
  AddWaits(sources_, view, out);
  AddLoop(*sources_.loop, out);
  AddCommitter(*sources_.committer, out);
  AddStore(sources_.health, out);
  AddDisk(sources_.data_directory, out);
  AddCertificates(sources_.tls, out);
  AddAgents(sources_, out);
  AddReaders(sources_, out);
  if (sources_.ha != nullptr) AddHighAvailability(*sources_.ha, out);
  return out.Take();
}

std::string Metrics::Text() const { return prometheus::TextSerializer().Serialize(Collect()); }

}  // namespace berth
