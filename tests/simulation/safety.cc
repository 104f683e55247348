#include "tests/simulation/safety.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/model/node.h"
#include "server/convert/job.h"
#include "tests/simulation/processes.h"

namespace berth::simulation {
namespace {

// How long a resumed machine may take to stop a task that was replaced.
constexpr absl::Duration kNotice = absl::Milliseconds(100);
constexpr int kWholeDevice = 1000;
constexpr int kNoGang = -1;  // see GangsOf: the task's group is not rigid

bool IsRigid(const v1::TaskGroup& group) {
  if (group.membership() != v1::MEMBERSHIP_UNSPECIFIED) return group.membership() == v1::RIGID;
  return group.min_available() <= 0 || group.min_available() == group.replicas();
}

bool RestartsParts(const v1::JobSpec& spec) {
  const auto partial = [](const v1::LifecyclePolicy& policy) {
    return policy.action() == v1::LifecyclePolicy::RESTART_TASK ||
           policy.action() == v1::LifecyclePolicy::RESTART_GROUP;
  };
  const auto any = [&](const auto& policies) {
    return std::any_of(policies.begin(), policies.end(), partial);
  };
  return any(spec.policies()) ||
         std::any_of(spec.groups().begin(), spec.groups().end(), [&](const v1::TaskGroup& group) {
           return any(group.policies()) || group.membership() != v1::MEMBERSHIP_UNSPECIFIED;
         });
}

// For each task, a number that the tasks of one gang share. Rigid groups that wait for no other
// start together and are one gang; one that waits starts later and is a gang of its own.
std::vector<int> GangsOf(const v1::JobSpec& spec) {
  std::vector<int> gangs;
  for (int g = 0; g < spec.groups_size(); ++g) {
    const v1::TaskGroup& group = spec.groups(g);
    const int gang = group.depends_on().empty() ? 0 : g + 1;
    gangs.insert(gangs.end(), static_cast<size_t>(group.replicas()),
                 IsRigid(group) ? gang : kNoGang);
  }
  return gangs;
}

}  // namespace

Safety::Safety(Scheduler* scheduler, Trace* trace, std::vector<NodeRoom> nodes, absl::Duration ttl,
               std::function<absl::Time()> wall, std::function<void(const std::string&)> fail)
    : scheduler_(scheduler),
      trace_(trace),
      nodes_(std::move(nodes)),
      ttl_(ttl),
      wall_(std::move(wall)),
      fail_(std::move(fail)),
      on_node_(nodes_.size()),
      frozen_(nodes_.size()) {}

void Safety::Fail(absl::string_view rule, const std::string& what) {
  fail_(absl::StrCat(rule, ": ", what));
}

Safety::Job* Safety::Find(const TaskId& id) {
  if (id.incarnation != incarnation_) return nullptr;
  const auto name = names_.find(id.job_uid);
  return name == names_.end() ? nullptr : &jobs_.at(name->second);
}

// ---- Answers to clients

void Safety::OnSubmitting(const v1::Job& given) {
  Job& job = jobs_[given.name()];
  job.name = given.name();
  job.tasks = 0;
  int least = 0;
  for (const v1::TaskGroup& group : given.spec().groups()) {
    job.tasks += group.replicas();
    least += group.min_available() > 0 ? group.min_available() : group.replicas();
  }
  const v1::JobSpec& spec = given.spec();
  const bool in_turn = spec.groups_size() > 1 && !spec.groups(1).depends_on().empty();
  job.rigid = least == job.tasks && !in_turn && !RestartsParts(spec);
  job.asks_all = least == job.tasks;
  job.gangs = GangsOf(spec);
  job.near = spec.has_topology();
  if (!spec.dependencies().empty()) {
    job.after = spec.dependencies(0).job();
    job.after_ok = spec.dependencies(0).condition() == v1::JobDependency::AFTER_OK;
  }
  if (in_turn) {
    job.first_group = spec.groups(0).replicas();
    job.after_group_completed =
        spec.groups(1).depends_on(0).condition() == v1::GroupDependency::COMPLETED;
  }
  job.alone = given.spec().on_node_loss() != v1::REPLACE_NOW;
  job.keeps = given.spec().on_node_loss() == v1::KEEP;
}

void Safety::OnSubmitted(const std::string& name, uint64_t uid, uint64_t incarnation) {
  Job& job = jobs_.at(name);
  if (incarnation != incarnation_) {  // the store was restored while the answer was in flight
    job.lost = !backup_.contains(name) || backup_.at(name).uid != uid;
    return;
  }
  if (job.uid != 0 && job.uid != uid) {
    Fail("kept", absl::StrCat("job ", name, " has uid ", uid, ", but had ", job.uid));
  }
  job.uid = uid;
  job.acked = true;
  names_[uid] = name;
  // Its tasks may have been dispatched before the answer arrived.
  const auto first = prepared_.lower_bound(IdOf(uid, 0));
  if (first != prepared_.end() && Find(first->first) == &job) MayEnd(job);
}

void Safety::OnCancelling(const std::string& name, bool force) {
  Job& job = jobs_.at(name);
  job.cancelling = true;
  job.forced = force;
  MayEnd(job);
}

void Safety::OnCancelled(const std::string& name, uint64_t incarnation) {
  if (incarnation == incarnation_) jobs_.at(name).cancelled = true;
}

void Safety::OnBackup() {
  backup_ = jobs_;
  backup_names_ = names_;
}

// Calls without an answer are repeated, to the server as it is now.
void Safety::OnRestored(uint64_t incarnation, bool fresh) {
  incarnation_ = incarnation;
  if (fresh) {
    backup_.clear();
    backup_names_.clear();
  }
  for (auto& [name, job] : jobs_) {
    const Job now = job;
    const auto kept = backup_.find(name);
    if (kept != backup_.end()) job = kept->second;
    job.starts = now.starts;
    job.cancelling = now.cancelling;
    job.forced = now.forced;
    job.may_end_since = now.may_end_since;
    if (kept != backup_.end() && (kept->second.acked || !now.acked)) continue;
    job.lost = now.acked || now.lost;
    job.acked = job.cancelled = job.ended = false;
    if (kept != backup_.end()) continue;  // it may be in the backup, unacknowledged
    job.uid = 0;
    job.started.clear();
    job.succeeded.clear();
  }
  names_ = backup_names_;
}

// A forced end, or a job that does not require all its tasks, needs fewer.
void Safety::CheckOwn(const Job& job) {
  if (!job.asks_all || static_cast<int>(job.succeeded.size()) == job.tasks) return;
  Fail("own", absl::StrCat("job ", job.name, " has succeeded, and ", job.succeeded.size(), " of ",
                           job.tasks, " tasks have"));
}

void Safety::NoteTime() {
  const absl::Time now = wall_();
  latest_ = std::max(latest_, now);
  for (auto& [name, job] : jobs_) {
    if (job.may_end_since) job.may_end_since = std::min(*job.may_end_since, now);
  }
}

void Safety::OnRead(const std::string& name, const Read& read) {
  if (read.incarnation != incarnation_) return;
  const auto [number, at, found, ended, succeeded] = read;
  latest_ = std::max(latest_, wall_());
  Job& job = jobs_.at(name);
  if (job.ended && at <= job.ended_at) return;  // superseded by the read that reported its end
  if (succeeded) CheckOwn(job);
  if (!found && job.lost) return;
  if (!found) {
    if (job.acked && !MayBeForgotten(job)) {
      Fail("kept", absl::StrCat("job ", name, " was acknowledged and does not exist"));
    }
    job.ended = true;
    job.ended_at = at;
    return;
  }
  if (job.ended && !ended) Fail("over", absl::StrCat("job ", name, " is active again"));
  job.ended = ended;
  job.ended_at = at;
}

// Also jobs that depend on it, which may fail with it.
void Safety::MayEnd(Job& job) {
  if (job.may_end_since) return;
  job.may_end_since = wall_();
  for (auto& [name, other] : jobs_) {
    if (other.after == job.name) MayEnd(other);
  }
}

// If none of its tasks has ended and it was not cancelled, it cannot have ended either.
bool Safety::MayBeForgotten(const Job& job) const {
  return job.may_end_since && std::max(latest_, wall_()) >= *job.may_end_since + ttl_;
}

// ---- Processes

void Safety::OnPrepared(size_t node, const TaskId& id) {
  trace_->Say(scheduler_->now(), "prepared", absl::StrCat(ToString(id), " on n", node));
  prepared_.emplace(id, scheduler_->now());
  // It may fail before it runs, which this model does not see.
  Job* job = Find(id);
  if (job != nullptr) MayEnd(*job);
}

void Safety::OnStarted(size_t node, const TaskId& id, const v1::TaskLaunch& launch,
                       const v1::Start& start) {
  trace_->Say(scheduler_->now(), "started",
              absl::StrCat(ToString(id), " ", launch.job(), " on n", node));
  ++starts_;
  const auto known = jobs_.find(launch.job());
  if (known == jobs_.end()) {
    return Fail("kept", absl::StrCat("task ", ToString(id), " is of job ", launch.job(),
                                     ", which was never submitted"));
  }
  Job& job = known->second;
  v1::TaskLaunch kept = launch;
  kept.clear_env();
  running_[id] = {node, std::move(kept), TermsOf(launch, start)};
  on_node_[node].insert(id);
  if (!job.starts.insert(id).second) {
    Fail("once", absl::StrCat(ToString(id), " starts a second time, on n", node));
  }
  CheckRoom(node);
  if (absl::EndsWith(launch.group(), kSparesSuffix)) {
    Fail("spare", absl::StrCat(ToString(id), " of job ", job.name, " is a spare, and starts"));
  }
  if (id.incarnation != incarnation_) return;  // dispatched before the restore
  if (job.uid == 0) {
    job.uid = id.job_uid;
    names_[id.job_uid] = job.name;
  }
  if (job.uid != id.job_uid) {
    Fail("kept", absl::StrCat("job ", job.name, " runs as uid ", id.job_uid, " and as ", job.uid));
  }
  job.started.emplace(id.task, id.attempt);
  // A forced end and REPLACE_NOW do not wait for silent nodes: a start may still be in flight to
  // them.
  if (job.ended && job.alone && !job.forced) {
    Fail("over", absl::StrCat(ToString(id), " starts, but its job has ended"));
  }
  CheckAlone(id);
  CheckNoneOfBefore(job, id);
  CheckWhole(job, id);
  CheckOrder(job, id);
  CheckNear(job, id);
  CheckWorld(id);
}

void Safety::OnEnded(size_t node, const TaskId& id, bool succeeded) {
  trace_->Say(scheduler_->now(), "ended", absl::StrCat(ToString(id), " on n", node));
  running_.erase(id);
  on_node_[node].erase(id);
  ended_.emplace(id, scheduler_->now());
  Job* job = Find(id);
  if (job == nullptr) return;
  if (succeeded) job->succeeded.insert(id.task);
  MayEnd(*job);
}

// A task that goes on needs its CPU and devices; one that is thawed to be stopped does not count.
void Safety::OnTaskFrozen(size_t node, const TaskId& id, bool frozen, bool lends) {
  trace_->Say(scheduler_->now(),
              lends    ? "freezes and lends"
              : frozen ? "freezes"
                       : "thaws",
              absl::StrCat(ToString(id), " on n", node));
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  found->second.frozen = frozen;
  found->second.lends = lends;
  CheckRoom(node);
}

// A frozen machine runs nothing; after it resumes it must stop tasks that were replaced.
void Safety::OnFrozen(size_t node, bool frozen) {
  frozen_[node] = frozen;
  if (frozen) return;
  scheduler_->After(kNotice, self_, [this, node] {
    const std::set<TaskId> still = on_node_[node];
    for (const TaskId& id : still) {
      CheckAlone(id);
      CheckWorld(id);
    }
  });
}

std::map<TaskId, size_t> Safety::running() const {
  std::map<TaskId, size_t> nodes;
  for (const auto& [id, process] : running_) nodes[id] = process.node;
  return nodes;
}

void Safety::CheckAlone(const TaskId& id) {
  const Job* known = Find(id);
  if (known == nullptr) return;
  const Job& job = *known;
  if (!job.alone || frozen_[running_.at(id).node]) return;
  for (auto it = running_.lower_bound(IdOf(id.job_uid, id.task));
       it != running_.end() && it->first < IdOf(id.job_uid, id.task + 1); ++it) {
    if (it->first == id || frozen_[it->second.node]) continue;
    Fail("alone", absl::StrCat(ToString(id), " of ", job.name, " runs on n", running_.at(id).node,
                               " while ", ToString(it->first), " runs on n", it->second.node));
  }
}

// If the backup does not have the job, another job may have its uid here.
void Safety::CheckNoneOfBefore(const Job& job, const TaskId& id) {
  if (!job.alone || job.keeps || !backup_.contains(job.name)) return;
  for (const auto& [other, process] : running_) {
    const bool same =
        other.job_uid == id.job_uid && other.task == id.task && process.launch.job() == job.name;
    if (!same || other.incarnation == incarnation_ || frozen_[process.node]) continue;
    Fail("alone", absl::StrCat(ToString(id), " of ", job.name, " starts on n", running_.at(id).node,
                               " while ", ToString(other), ", from before a restore, runs on n",
                               process.node));
  }
}

// A gang that needs all members binds them together, so their attempts rise together until one has
// succeeded. Then the others may be evicted and bound without it. After that the last attempt of
// each must have existed at some time since this one was prepared.
void Safety::CheckWhole(const Job& job, const TaskId& id) {
  if (!job.rigid || job.tasks == 1) return;
  const auto mine = prepared_.find(id);
  const bool apart = !job.succeeded.empty() && mine != prepared_.end();
  for (uint32_t task = 0; task < static_cast<uint32_t>(job.tasks); ++task) {
    if (job.succeeded.contains(task)) continue;
    const bool there = apart ? WasThereSince(IdOf(job.uid, task), mine->second)
                             : prepared_.contains(IdOf(job.uid, task, id.attempt));
    if (there) continue;
    Fail("whole", absl::StrCat(ToString(id), " of ", job.name, " starts, but task ", task,
                               " was not prepared"));
  }
}

bool Safety::WasThereSince(const TaskId& task, absl::Duration time) const {
  const auto after = prepared_.lower_bound(IdOf(task.job_uid, task.task + 1));
  if (after == prepared_.begin()) return false;
  const TaskId& last = std::prev(after)->first;
  if (last < IdOf(task.job_uid, task.task)) return false;
  const auto ended = ended_.find(last);
  return ended == ended_.end() || ended->second >= time;
}

// Dependencies: once a job has started, the job before it starts nothing any more, and none of its
// tasks runs, unless copies may continue elsewhere. A KEEP job ends without its tasks on lost nodes
// if it is cancelled, fails, or reaches its walltime. A job that is cancelled by force ends without
// its tasks on silent nodes.
void Safety::CheckOrder(const Job& job, const TaskId& id) {
  if (!job.after.empty()) {
    const Job& before = jobs_.at(job.after);
    if (job.after_ok && before.succeeded.empty()) {
      Fail("order", absl::StrCat(ToString(id), " of ", job.name, " starts, but no task of ",
                                 job.after, " has succeeded"));
    }
    for (const auto& [other, process] : running_) {
      const bool may_live_on = !before.alone || before.keeps || before.forced;
      if (Find(other) != &before || may_live_on || frozen_[process.node]) continue;
      Fail("order", absl::StrCat(ToString(id), " of ", job.name, " starts, and ", ToString(other),
                                 " of ", job.after, " runs"));
    }
  }
  for (const auto& [name, other] : jobs_) {
    if (other.after == job.name && !other.started.empty()) {
      Fail("order", absl::StrCat(ToString(id), " starts after ", name, ", which waited for it"));
    }
  }
  if (id.task < static_cast<uint32_t>(job.first_group) || job.first_group == 0) return;
  for (uint32_t task = 0; task < static_cast<uint32_t>(job.first_group); ++task) {
    const bool done = job.succeeded.contains(task);
    const auto first = job.started.lower_bound({task, 0});
    const bool began = first != job.started.end() && first->first == task;
    if (job.after_group_completed ? done : began) return;  // the job may not need the whole group
  }
  Fail("order", absl::StrCat(ToString(id), " of ", job.name, " starts before its first group"));
}

// Members of a gang are bound together: those of one attempt run in one rack.
void Safety::CheckNear(const Job& job, const TaskId& id) {
  if (!job.near || !job.rigid) return;
  for (auto it = running_.lower_bound(IdOf(id.job_uid, 0));
       it != running_.end() && it->first < IdOf(id.job_uid + 1, 0); ++it) {
    const bool same = it->first.attempt == id.attempt && job.succeeded.empty();
    if (!same || nodes_[it->second.node].rack == nodes_[running_.at(id).node].rack) continue;
    Fail("near", absl::StrCat(ToString(id), " and ", ToString(it->first), " of ", job.name,
                              " run in two racks"));
  }
}

Safety::Terms Safety::TermsOf(const v1::TaskLaunch& launch, const v1::Start& start) {
  return {
      {"world size", absl::StrCat(launch.world_size())},
      {"rendezvous endpoint", absl::StrCat(start.master_address(), ":", start.master_port())},
      {"epoch", absl::StrCat(start.epoch())},
  };
}

// A copy that was replaced, and that its job allows to live on where the server cannot end it.
bool Safety::MayBeOutlived(const Job& job, const TaskId& id) const {
  const auto next = prepared_.upper_bound(id);
  return !job.alone && next != prepared_.end() && next->first < IdOf(id.job_uid, id.task + 1);
}

// Members that were launched on other terms never meet: each part of the gang waits for the rest,
// or goes on without it.
void Safety::CheckWorld(const TaskId& id) {
  const Job* known = Find(id);
  if (known == nullptr || frozen_[running_.at(id).node] || MayBeOutlived(*known, id)) return;
  const Job& job = *known;
  const int gang = job.gangs.at(id.task);
  if (gang == kNoGang) return;
  const Terms& mine = running_.at(id).terms;
  for (auto it = running_.lower_bound(IdOf(id.job_uid, 0));
       it != running_.end() && it->first < IdOf(id.job_uid + 1, 0); ++it) {
    const auto& [other, process] = *it;
    const bool peer = other.task != id.task && job.gangs.at(other.task) == gang;
    if (!peer || frozen_[process.node] || MayBeOutlived(job, other)) continue;
    const auto [one, theirs] = std::mismatch(mine.begin(), mine.end(), process.terms.begin());
    if (one == mine.end()) continue;
    Fail("world",
         absl::StrCat(ToString(id), " of ", job.name, " runs with ", one->first, " ", one->second,
                      " while ", ToString(other), " runs with ", theirs->second));
  }
}

void Safety::CheckRoom(size_t node) {
  int64_t cpu = 0, memory = 0;
  std::map<std::string, int> devices, users;
  for (const TaskId& id : on_node_[node]) {
    const v1::TaskLaunch& launch = running_.at(id).launch;
    if (!running_.at(id).frozen) cpu += launch.cpu_millis();
    memory += launch.memory_bytes();
    const int held = running_.at(id).lends ? 0 : launch.device_uuids_size();
    for (int i = 0; i < held; ++i) {
      const bool shared =
          i < launch.device_memory_shares_size() && launch.device_memory_shares(i) < kWholeDevice;
      int& used = devices[launch.device_uuids(i)];
      used += shared ? launch.device_memory_shares(i) : kWholeDevice;
      const int sharing = ++users[launch.device_uuids(i)];
      if (used <= kWholeDevice && sharing <= nodes_[node].max_tasks) continue;
      Fail("room", absl::StrCat("device ", launch.device_uuids(i), " is allocated twice, also to ",
                                ToString(id)));
    }
  }
  if (cpu > nodes_[node].cpu_millis || memory > nodes_[node].memory_bytes) {
    Fail("room",
         absl::StrCat("n", node, " runs ", cpu, " of ", nodes_[node].cpu_millis, " milli-CPUs and ",
                      memory, " of ", nodes_[node].memory_bytes, " bytes"));
  }
}

// ---- Loaded state

void Safety::CheckBlame(const ClusterState& state) {
  state.nodes().ForEach([&](NodeId, const Node& node) {
    const bool blamed = absl::StrContains(node.status.refusal, kMissingDirectory) ||
                        absl::StrContains(node.status.reason, kMissingDirectory);
    if (blamed) Fail("blame", absl::StrCat("node ", node.spec.name, ": ", node.status.refusal));
  });
}

void Safety::CheckLoaded(const ClusterState& state) {
  CheckBlame(state);
  for (const auto& [name, job] : jobs_) {
    if (job.lost || (!job.acked && job.started.empty())) continue;
    const berth::Job* known = state.FindJob(name);
    if (known == nullptr) {
      if (!MayBeForgotten(job)) {
        Fail("kept", absl::StrCat("job ", name, " was acknowledged and does not exist"));
      }
      continue;
    }
    if (known->id.value != job.uid) {
      Fail("kept", absl::StrCat("job ", name, " has uid ", known->id.value, ", but had ", job.uid));
    }
    if (job.cancelled && !known->status.cancelled && !Ended(known->status.state)) {
      Fail("kept", absl::StrCat("job ", name, " was cancelled and is active"));
    }
    for (const auto& [task, attempt] : job.started) {
      if (task < known->tasks.size() && known->tasks[task].attempt >= attempt) continue;
      Fail("kept", absl::StrCat("attempt ", attempt, " of task ", task, " of ", name,
                                " was started, but its start is not in the state"));
    }
  }
}

}  // namespace berth::simulation
