// A state changed by events only, for tests of the model: no planner. Builders give small valid
// values to modify.
#ifndef BERTH_TESTS_UNIT_CORE_MODEL_WORLD_H_
#define BERTH_TESTS_UNIT_CORE_MODEL_WORLD_H_

#include <string>
#include <utility>
#include <vector>

#include "core/model/apply.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"
#include "core/model/state_editor.h"

namespace berth {

inline Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

inline DeviceSet Devices(std::initializer_list<size_t> indexes) {
  DeviceSet set;
  for (size_t index : indexes) set.Add(index);
  return set;
}

// 64 cores, 512 GiB, and `gpus` of kind gpu with uuids NAME-0, NAME-1, ...
inline NodeSpec NodeWith(const std::string& name, int gpus) {
  NodeSpec spec;
  spec.name = name;
  spec.cpu_millis = 64'000;
  spec.memory_bytes = int64_t{512} << 30;
  for (int i = 0; i < gpus; ++i) {
    Device device;
    device.kind = "gpu";
    device.uuid = name + "-" + std::to_string(i);
    device.model = "H100";
    spec.devices.push_back(device);
  }
  return spec;
}

inline GroupSpec GroupOfGpus(const std::string& name, int replicas, int gpus) {
  GroupSpec group;
  group.name = name;
  group.replicas = replicas;
  group.min_available = replicas;
  group.shape.cpu_millis = 1000;
  group.shape.memory_bytes = 1 << 20;
  if (gpus > 0) {
    DeviceRequest& request = group.shape.devices.emplace_back();
    request.kind = "gpu";
    request.count = gpus;
  }
  return group;
}

inline JobSpec JobOf(const std::string& name, QueueId queue, std::vector<GroupSpec> groups) {
  JobSpec spec;
  spec.name = name;
  spec.queue = queue;
  spec.groups = std::move(groups);
  for (const GroupSpec& group : spec.groups) spec.min_available += group.min_available;
  return spec;
}

struct World {
  ClusterState state;
  Time now = At(1'000'000);

  absl::Status Try(EventBody body) { return Apply(state, Event{now, std::move(body)}); }

  QueueId AddQueue(const std::string& name, QueueId parent = kRootQueue,
                   std::vector<NamedAmount> limit = {}) {
    const QueueId id = state.next_queue_id();
    QueueSpec spec;
    spec.name = name;
    spec.parent = parent;
    spec.limit = std::move(limit);
    return Try(QueueCreated{id, spec}).ok() ? id : QueueId{UINT32_MAX};
  }
  NodeId AddNode(const std::string& name, int gpus) { return AddNode(NodeWith(name, gpus)); }
  NodeId AddNode(const NodeSpec& spec) {
    const NodeId id = state.next_node_id();
    return Try(NodeRegistered{id, spec, 1, "agent", "boot", "1.0"}).ok() ? id : NodeId{UINT32_MAX};
  }
  JobId Submit(const JobSpec& spec) {
    const JobId id = state.next_job_id();
    return Try(JobSubmitted{id, spec}).ok() ? id : JobId{UINT64_MAX};
  }
  absl::Status Bind(JobId job, std::vector<Placement> placements, bool gang = true) {
    return Try(TasksBound{job, gang, std::move(placements)});
  }
  absl::Status Report(JobId job, uint32_t task, ReportState what, int32_t exit_code = 0,
                      ExitCause cause = ExitCause::kItself) {
    TaskReported report;
    report.task = {job, task};
    report.attempt = this->task(job, task).attempt;
    report.state = what;
    report.exit_code = exit_code;
    report.cause = cause;
    return Try(report);
  }
  absl::Status SetState(JobId job, JobState value) {
    JobStatus status = state.jobs().At(job).status;
    status.state = value;
    return Try(JobStatusChanged{job, status});
  }

  const Job& job(JobId id) const { return state.jobs().At(id); }
  const Task& task(JobId id, uint32_t index) const { return job(id).tasks[index]; }
  const Node& node(NodeId id) const { return state.nodes().At(id); }
  const Queue& queue(QueueId id) const { return state.queues().At(id); }
};

// The state that results from loading this one's facts, as storage returns them.
inline ClusterState Reload(const ClusterState& state) {
  ClusterState loaded;
  StateEditor editor(loaded);
  absl::Status status;
  state.queues().ForEach([&](QueueId id, const Queue& queue) {
    status.Update(editor.LoadQueue(id, queue.spec, queue.open, queue.revision));
    status.Update(editor.LoadQueueUsage(id, queue.usage));
    status.Update(editor.LoadQueueLine(id, queue.line, queue.longest_line));
  });
  state.run_history().ForEach(
      [&](RunId id, const FinishedRun& run) { status.Update(editor.LoadRun(id, run)); });
  state.nodes().ForEach([&](NodeId id, const Node& node) {
    status.Update(editor.LoadNode(id, node.spec, node.status, node.revision));
    status.Update(editor.LoadNodeImages(id, node.images));
  });
  state.hyper_nodes().ForEach([&](HyperNodeId id, const HyperNode& domain) {
    status.Update(editor.LoadHyperNode(id, domain.spec, domain.revision));
  });
  state.nodes().ForEach([&](NodeId id, const Node& node) {
    status.Update(editor.LoadNodeDomains(id, node.domains));
  });
  state.jobs().ForEach([&](JobId id, const Job& job) {
    status.Update(
        editor.LoadJob(id, SpecOf(state, job), job.submit, job.revision, job.prediction, job.line));
  });
  state.jobs().ForEach([&](JobId id, const Job& job) {
    if (job.walltime_updated) status.Update(editor.LoadWalltime(id, job.walltime));
    status.Update(editor.LoadJobStatus(id, job.status, job.priority, job.labels, job.revision));
    const auto reserved = state.reservations().find(id);
    if (reserved != state.reservations().end()) {
      status.Update(editor.LoadReservation(id, reserved->second));
    }
    for (uint32_t t = 0; t < job.tasks.size(); ++t) {
      status.Update(editor.LoadTask({id, t}, job.tasks[t], state.TaskMessage({id, t})));
    }
  });
  status.Update(editor.LoadNextIds(state.next_job_id(), state.next_node_id(), state.next_queue_id(),
                                   state.next_hyper_node_id()));
  editor.LoadUsageCharged(state.usage_charged());
  BERTH_CHECK(editor.LoadRequestMix(state.request_mix()).ok());
  BERTH_CHECK(editor.LoadAccess(state.access().AsChange()).ok());
  BERTH_CHECK(editor.LoadPriorityClasses(state.priority_classes().AsChange()).ok());
  editor.FinishLoad();
  BERTH_CHECK(status.ok());
  return loaded;
}

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_CORE_MODEL_WORLD_H_
