// The present state of jobs in scenarios: TasksNow, DeviceBook, and SubmitJobs, which combines
// them.
#include <algorithm>
#include <utility>

#include "offline/sim/job_history.h"
#include "offline/sim/names.h"
#include "offline/sim/scenario_load.h"
#include "offline/sim/specs.h"
#include "offline/sim/task_names.h"
#include "support/name_pattern.h"
#include "support/proto_time.h"

namespace berth {
namespace {

std::vector<std::string> Strings(const RepeatedPtrField<std::string>& values) {
  return {values.begin(), values.end()};
}

absl::StatusOr<TaskState> ToTaskState(v1::TaskState state, bool with_node) {
  switch (state) {
    case v1::TASK_STATE_UNSPECIFIED:
      return with_node ? TaskState::kRunning : TaskState::kPending;
    case v1::TASK_PENDING:
      return TaskState::kPending;
    case v1::TASK_NOMINATED:
      return TaskState::kNominated;
    case v1::TASK_BOUND:
    case v1::TASK_PREPARING:
      return TaskState::kBound;
    case v1::TASK_PREPARED:
      return TaskState::kPrepared;
    case v1::TASK_STARTING:
      return TaskState::kStarting;
    case v1::TASK_RUNNING:
      return TaskState::kRunning;
    case v1::TASK_RELEASING:
      return TaskState::kReleasing;
    case v1::TASK_LOST:
      return TaskState::kLost;
    case v1::TASK_SUCCEEDED:
      return TaskState::kSucceeded;
    case v1::TASK_FAILED:
      return TaskState::kFailed;
    default:
      return absl::InvalidArgumentError("unknown state");
  }
}

absl::StatusOr<TaskNow> ReadTask(const sim::v1::TaskNow& from, const JobNow& job, Time start,
                                 const std::string& path) {
  TaskNow task;
  const auto state = ToTaskState(from.state(), !from.node().empty());
  if (!state.ok()) return Under(path, state.status());
  task.state = *state;
  task.node = from.node();
  task.devices = Strings(from.devices());
  task.since = from.has_age() ? start - DurationFrom(from.age()) : job.submit;
  task.ends = from.ends();
  task.moves_to = from.moves_to();
  task.moves_to_devices = Strings(from.moves_to_devices());
  task.exit_code = from.exit_code() == 0 ? 1 : from.exit_code();
  const bool placed = task.state != TaskState::kPending;
  if (placed == task.node.empty()) {
    return Wrong(path, placed ? "needs a node" : "a pending task has no node");
  }
  if (task.since < job.submit) return Wrong(path + ".age", "older than the job");
  const bool releasing = task.state == TaskState::kReleasing;
  if (!releasing && (task.ends || !task.moves_to.empty())) {
    return Wrong(path, "only a task that is being released ends or moves");
  }
  return task;
}

struct Prepared {
  JobNow now;
  JobSpec spec;
  std::vector<TaskNow> tasks;
  JobId id;
};

// Concrete jobs, oldest first, then by name.
absl::StatusOr<std::vector<JobNow>> JobsInOrder(const RepeatedPtrField<sim::v1::Job>& jobs,
                                                const std::string& path, Time start) {
  std::vector<JobNow> result;
  for (int i = 0; i < jobs.size(); ++i) {
    const sim::v1::Job& job = jobs[i];
    const std::string here = absl::StrCat(path, "[", i, "]");
    const auto names = ExpandNamePattern(job.name());
    if (!names.ok()) return Under(here + ".name", names.status());
    const auto on = ExpandPlaces(Strings(job.on()));
    if (!on.ok()) return Under(here + ".on", on.status());
    size_t tasks = job.groups_size() == 0 ? static_cast<size_t>(std::max(job.replicas(), 1)) : 0;
    for (const auto& group : job.groups()) {
      tasks += static_cast<size_t>(std::max(group.replicas(), 1));
    }
    if (on->size() > tasks * names->size()) {
      return Wrong(here + ".on", on->size(), " nodes for ", tasks * names->size(), " tasks");
    }
    for (size_t n = 0; n < names->size(); ++n) {
      JobNow now{.name = (*names)[n], .path = here, .job = &job, .submit = {}, .on = {}};
      now.submit = start - DurationFrom(job.age());
      const size_t from = std::min(on->size(), n * tasks);
      const size_t to = std::min(on->size(), from + tasks);
      now.on.assign(on->begin() + static_cast<int64_t>(from),
                    on->begin() + static_cast<int64_t>(to));
      result.push_back(std::move(now));
    }
  }
  std::sort(result.begin(), result.end(), [](const JobNow& a, const JobNow& b) {
    return a.submit != b.submit ? a.submit < b.submit : NaturalLess(a.name, b.name);
  });
  return result;
}

absl::StatusOr<Prepared> Submit(const JobNow& now, SimCluster* cluster) {
  Prepared prepared;
  prepared.now = now;
  absl::StatusOr<JobSpec> spec =
      ToJobSpec(*now.job, now.name, cluster->state(), ScenarioStart(), now.path);
  if (!spec.ok()) return spec.status();
  prepared.spec = *std::move(spec);
  const bool untouched = now.on.empty() && now.job->tasks().empty();
  const bool hold_later = prepared.spec.suspended && !untouched;
  if (hold_later) prepared.spec.suspended = false;
  prepared.id = cluster->state().next_job_id();
  auto status = cluster->ApplyAt(now.submit, JobSubmitted{prepared.id, prepared.spec});
  prepared.spec.suspended = hold_later;
  if (!status.ok()) return Under(now.path, status);
  auto tasks = TasksNow(now, prepared.spec, cluster->now());
  if (!tasks.ok()) return tasks.status();
  prepared.tasks = *std::move(tasks);
  if (now.job->has_run_time()) {
    cluster->SetRunTime(prepared.id, DurationFrom(now.job->run_time()));
  }
  return prepared;
}

}  // namespace

void DeviceBook::Keep(const std::string& node, const std::vector<std::string>& devices) {
  std::vector<std::string>& kept = kept_[node];
  kept.insert(kept.end(), devices.begin(), devices.end());
}

absl::StatusOr<DeviceSet> DeviceBook::Choose(const Node& node, const TaskShape& shape,
                                             const std::vector<std::string>& names,
                                             const DeviceUse& taken, bool to_wait) const {
  const std::vector<Device>& devices = node.spec.devices;
  DeviceSet chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(devices.begin(), devices.end(),
                                    [&](const Device& device) { return device.uuid == name; });
    if (found == devices.end()) {
      return absl::InvalidArgumentError(absl::StrCat(node.spec.name, " has no device ", name));
    }
    chosen.Add(static_cast<size_t>(found - devices.begin()));
  }
  if (!names.empty()) return chosen;
  const auto kept = kept_.find(node.spec.name);
  const DeviceRequest* now = nullptr;
  const auto asked = [&](size_t i) -> int64_t {
    return now->share > 0 ? ShareOn(devices[i], *now) : kWhole;
  };
  const auto unclaimed = [&](size_t i) {
    return !chosen.Has(i) && (taken + node.devices_reserved).FreeOf(i) >= asked(i);
  };
  const auto free = [&](size_t i) {
    if (chosen.Has(i) || (taken + TakenDevices(node)).FreeOf(i) < asked(i)) return false;
    return kept == kept_.end() || std::find(kept->second.begin(), kept->second.end(),
                                            devices[i].uuid) == kept->second.end();
  };
  const auto waits = [&](size_t i) { return to_wait && unclaimed(i); };
  for (const DeviceRequest& request : shape.devices) {
    int32_t missing = request.count;
    now = &request;
    for (const bool in_use : {false, true}) {
      for (size_t i = 0; i < devices.size() && missing > 0; ++i) {
        if (devices[i].kind != request.kind || !(in_use ? waits(i) : free(i))) continue;
        chosen.Add(i);
        --missing;
      }
    }
    if (missing == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(node.spec.name, " has ", missing, " ", request.kind, " too few left for it"));
  }
  return chosen;
}

absl::StatusOr<std::vector<TaskNow>> TasksNow(const JobNow& now, const JobSpec& spec, Time start) {
  size_t count = 0;
  for (const GroupSpec& group : spec.groups) count += static_cast<size_t>(group.replicas);
  std::vector<TaskNow> tasks(count);
  for (size_t i = 0; i < now.on.size(); ++i) {
    tasks[i].state = TaskState::kRunning;
    tasks[i].node = now.on[i];
    tasks[i].since = now.submit;
  }
  for (int i = 0; i < now.job->tasks_size(); ++i) {
    const std::string path = absl::StrCat(now.path, ".tasks[", i, "]");
    auto task = ReadTask(now.job->tasks(i), now, start, path);
    if (!task.ok()) return task.status();
    const auto names = ExpandNamePattern(now.job->tasks(i).name());
    if (!names.ok()) return Under(path, names.status());
    for (const std::string& name : *names) {
      const auto index = FindTask(spec.groups, name);
      if (!index.has_value()) return Wrong(path + ".name", now.name, " has no task ", name);
      if (!tasks[*index].node.empty()) return Wrong(path + ".name", name, " is there twice");
      tasks[*index] = *task;
    }
  }
  return tasks;
}

absl::Status SubmitJobs(const RepeatedPtrField<sim::v1::Job>& jobs, const std::string& path,
                        SimCluster* cluster) {
  const auto order = JobsInOrder(jobs, path, cluster->now());
  if (!order.ok()) return order.status();
  std::vector<Prepared> all;
  DeviceBook book;
  int64_t tasks = cluster->tasks();
  for (const JobNow& now : *order) {
    absl::StatusOr<Prepared> prepared = Submit(now, cluster);
    if (!prepared.ok()) return prepared.status();
    for (const TaskNow& task : prepared->tasks) {
      if (!task.devices.empty()) book.Keep(task.node, task.devices);
    }
    tasks += static_cast<int64_t>(prepared->tasks.size());
    if (tasks > kMaxScenarioTasks)
      return Wrong(now.path, "more than ", kMaxScenarioTasks, " tasks");
    all.push_back(*std::move(prepared));
  }
  for (const auto& live : {&ReplayUntilHolding, &ReplayUntilWaiting}) {
    for (const Prepared& one : all) {
      auto status = live(one.now, one.tasks, one.id, book, cluster);
      if (!status.ok()) return status;
    }
  }
  for (const Prepared& one : all) {
    if (!one.spec.suspended) continue;
    if (auto status = cluster->Happen(JobSuspended{one.id, true}); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace berth
