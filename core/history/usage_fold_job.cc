// UsageFold: queues and jobs.
#include <algorithm>
#include <utility>

#include "core/history/usage_fold.h"
#include "core/history/usage_fold_internal.h"

namespace berth {

using history_internal::IsHeldBack;
using history_internal::Unfit;

JobSpec ReducedSpec(const JobSpec& spec) {
  JobSpec reduced;
  reduced.name = spec.name;
  reduced.queue = spec.queue;
  reduced.labels = spec.labels;
  reduced.on_node_loss = spec.on_node_loss;
  reduced.user = spec.user;
  reduced.owner = spec.owner;
  reduced.priority_class = spec.priority_class;
  reduced.saved_exit_codes = spec.saved_exit_codes;
  reduced.series = spec.series;
  reduced.member = spec.member;
  for (const GroupSpec& group : spec.groups) {
    GroupSpec& kept = reduced.groups.emplace_back();
    kept.name = group.name;
    kept.replicas = group.replicas;
    kept.min_available = group.min_available;
    kept.membership = MembershipOf(group);
    kept.shape.cpu_millis = group.shape.cpu_millis;
    kept.shape.memory_bytes = group.shape.memory_bytes;
    kept.shape.extended = group.shape.extended;
    for (const DeviceRequest& device : group.shape.devices) {
      DeviceRequest& request = kept.shape.devices.emplace_back();
      request.kind = device.kind;
      request.count = device.count;
      request.share = device.share;
      request.by_memory = device.by_memory;
      request.oversubscribe = device.oversubscribe;
      if (device.share > 0) request.min_memory_bytes = device.min_memory_bytes;
    }
  }
  return reduced;
}

// ---- Queues

std::string UsageFold::PathOf(const QueueSpec& spec) const {
  const QueueUsage* parent = queues_.Find(spec.parent);
  return parent == nullptr || parent->path.empty() ? spec.name
                                                   : absl::StrCat(parent->path, "/", spec.name);
}

absl::Status UsageFold::LoadQueue(QueueId id, const QueueSpec& spec) {
  if (id == kRootQueue) return absl::OkStatus();
  if (queues_.Find(id) != nullptr) return Unfit("two queues ", id.value);
  std::string path = PathOf(spec);
  const KeyId key = keys_.AcquireQueue(path);
  queues_.Insert(id, QueueUsage{.path = std::move(path), .key = key});
  return absl::OkStatus();
}

absl::Status UsageFold::On(const QueueCreated& event) {
  changes_.queues.insert(event.id);
  return LoadQueue(event.id, event.spec);
}

absl::Status UsageFold::On(const QueueDeleted& event) {
  const QueueUsage* queue = queues_.Find(event.id);
  if (queue == nullptr || event.id == kRootQueue) return Unfit("no queue ", event.id.value);
  keys_.Release(queue->key);
  queues_.Erase(event.id);
  changes_.queues.insert(event.id);
  return absl::OkStatus();
}

// ---- Jobs

std::string UsageFold::AccountOf(const std::map<std::string, std::string>& labels) const {
  return options_.account_of ? options_.account_of(labels) : std::string();
}

absl::Status UsageFold::AddJob(JobId id, const JobSpec& spec, Time submit) {
  if (jobs_.Find(id) != nullptr) return Unfit("two jobs ", id.value);
  const QueueUsage* queue = queues_.Find(spec.queue);
  if (queue == nullptr) return Unfit("no queue ", spec.queue.value);
  std::vector<GroupSpec> groups = ReducedSpec(spec).groups;
  std::vector<absl::string_view> kinds;
  for (GroupSpec& group : groups) {
    group.name.clear();
    for (const absl::string_view kind : KindNames(group.shape)) kinds.push_back(kind);
  }
  if (absl::Status room = interner_.CanAddKinds(kinds); !room.ok()) return room;
  JobUsage& job = jobs_.Emplace(id);
  job.queue = spec.queue;
  job.key = keys_.Acquire({.queue = queue->path,
                           .user = spec.user,
                           .account = AccountOf(spec.labels),
                           .priority_class = spec.priority_class});
  job.shared = interner_.AcquireTemplate(groups, {});
  for (const Group& group : job.shared->groups) {
    job.pending.push_back(spec.series ? 0 : group.replicas);
  }
  job.on_node_loss = spec.on_node_loss;
  job.saves_with_zero =
      std::binary_search(spec.saved_exit_codes.begin(), spec.saved_exit_codes.end(), 0);
  job.submit = submit;
  CountWaiting(job, 1);
  return absl::OkStatus();
}

absl::Status UsageFold::On(const JobSubmitted& event) {
  changes_.jobs.insert(event.id);
  return AddJob(event.id, event.spec, now());
}

absl::Status UsageFold::On(const JobUpdated& event) {
  JobUsage* job = jobs_.Find(event.id);
  if (job == nullptr) return absl::OkStatus();  // it has ended
  SetAccount(*job, event.labels);
  changes_.jobs.insert(event.id);
  return absl::OkStatus();
}

absl::Status UsageFold::On(const JobCancelled& event) {
  JobUsage* job = jobs_.Find(event.id);
  if (job == nullptr) return Unfit("no job ", event.id.value);
  if (!event.force) return absl::OkStatus();
  job->forced = true;
  changes_.jobs.insert(event.id);
  return EndLostTasks(event.id, *job);
}

absl::Status UsageFold::On(const JobDeleted& event) {
  if (jobs_.Find(event.id) == nullptr) return absl::OkStatus();  // as usual: it has ended
  return Unfit("job ", event.id.value, " was deleted before it ended");
}

absl::Status UsageFold::On(const JobStatusChanged& event) {
  JobUsage* job = jobs_.Find(event.job);
  if (job == nullptr) return Unfit("no job ", event.job.value);
  if (job->life.first_start == absl::InfinitePast()) job->life.first_start = event.status.start;
  job->life.starts = event.status.starts;
  changes_.jobs.insert(event.job);
  if (!Ended(event.status.state)) {
    SetState(*job, event.status.state);
    return absl::OkStatus();
  }
  if (job->places != nullptr && !job->places->tasks.empty()) {
    return Unfit("job ", event.job.value, " ended with tasks on nodes");
  }
  EndJob(event.job, *job, event.status);
  return absl::OkStatus();
}

void UsageFold::SetState(JobUsage& job, JobState state) {
  const bool waited = !IsHeldBack(job.state), waits = !IsHeldBack(state);
  job.state = state;
  if (waits != waited) CountWaiting(job, waits ? 1 : -1);
}

void UsageFold::EndJob(JobId id, JobUsage& job, const JobStatus& status) {
  EndedJobFacts& ended = changes_.ended.emplace_back();
  ended.id = id;
  ended.submit = job.submit;
  ended.key = keys_.At(job.key);
  ended.life = job.life;
  ended.status = status;
  if (job.places != nullptr) {
    for (ResourceMeter<UsageMeter>& entry : job.places->meters) entry.meter.AddUp(now_ms_);
    ended.meters = Named(job.places->meters);
  }
  ForgetJob(id, job);
}

void UsageFold::ForgetJob(JobId id, JobUsage& job) {
  if (!IsHeldBack(job.state)) CountWaiting(job, -1);
  keys_.Release(job.key);
  interner_.ReleaseTemplate(job.shared);
  jobs_.Erase(id);
}

void UsageFold::SetAccount(JobUsage& job, const std::map<std::string, std::string>& labels) {
  const UsageKey before = keys_.At(job.key);
  std::string account = AccountOf(labels);
  if (account == before.account || before.user == kOthers) return;
  CountJob(job, -1);
  UsageKey key = before;
  key.account = std::move(account);
  const KeyId old = std::exchange(job.key, keys_.Acquire(std::move(key)));
  keys_.Release(old);
  CountJob(job, 1);
}

// All that it holds and waits for, in the rows of its key.
void UsageFold::CountJob(JobUsage& job, int sign) {
  if (!IsHeldBack(job.state)) CountWaiting(job, sign);
  if (job.places == nullptr) return;
  for (const auto& [index, placed] : job.places->tasks) CountTask(job, index, placed.task, sign);
}

void UsageFold::CountWaiting(JobUsage& job, int sign) {
  for (size_t group = 0; group < job.pending.size(); ++group) {
    if (job.pending[group] == 0) continue;
    CountWaitingAmounts(job, interner_.Shape(job.shared->groups[group].shape).resources,
                        int64_t{sign} * job.pending[group]);
  }
}

}  // namespace berth
