#include "offline/sim/scenario_steps.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "offline/sim/names.h"
#include "offline/sim/scenario_load.h"
#include "offline/sim/specs.h"
#include "offline/sim/task_names.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using sim::v1::Step;

DrainMode ModeFrom(v1::NodeDrain::Mode mode) {
  if (mode == v1::NodeDrain::CHECKPOINT) return DrainMode::kCheckpoint;
  if (mode == v1::NodeDrain::WHEN_PLACED) return DrainMode::kWhenPlaced;
  return mode == v1::NodeDrain::WAIT ? DrainMode::kWait : DrainMode::kNow;
}

class StepRunner {
 public:
  StepRunner(const std::string& path, SimCluster* cluster) : path_(path), cluster_(*cluster) {}

  absl::Status ForNodes(const sim::v1::Names& names,
                        const std::function<absl::Status(const Node&)>& what) {
    return ForNames(names, [&](const std::string& name) {
      const Node* node = cluster_.state().FindNode(name);
      return node == nullptr ? absl::InvalidArgumentError(absl::StrCat("no node \"", name, "\""))
                             : what(*node);
    });
  }

  absl::Status ForJobs(const sim::v1::Names& names,
                       const std::function<absl::Status(const Job&)>& what) {
    return ForNames(names, [&](const std::string& name) {
      const Job* job = cluster_.state().FindJob(name);
      return job == nullptr ? absl::InvalidArgumentError(absl::StrCat("no job \"", name, "\""))
                            : what(*job);
    });
  }

  absl::Status Silence(const Node& node) { return cluster_.Happen(NodeSilenced{node.id}); }

  absl::Status Lose(const Node& node) {
    const NodeId id = node.id;
    if (node.status.state == NodeState::kReady) {
      if (auto status = Silence(node); !status.ok()) return status;
    }
    return cluster_.Happen(NodeFenced{id});
  }

  // Registers the node again. With `rebooted`, its tasks have exited.
  absl::Status Return(const Node& node, bool rebooted) {
    NodeRegistered event;
    event.id = node.id;
    event.spec = node.spec;
    event.epoch = node.status.epoch + 1;
    event.agent_id = node.spec.name;
    event.boot_id = rebooted ? absl::StrCat("boot-", event.epoch) : node.status.boot_id;
    if (auto status = cluster_.Happen(std::move(event)); !status.ok()) return status;
    if (!rebooted) return absl::OkStatus();
    std::vector<TaskKey> tasks = node.tasks;
    std::sort(tasks.begin(), tasks.end());
    for (TaskKey key : tasks) {
      TaskReported report = ReportOf(key, ReportState::kExited);
      report.cause = ExitCause::kReboot;
      if (auto status = cluster_.Happen(std::move(report)); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Steer(const Node& node, bool cordoned, bool draining) {
    return cluster_.Happen(
        NodeSteered{.id = node.id, .cordoned = cordoned, .draining = draining, .reason = {}});
  }

  // As DrainNode does.
  absl::Status Drain(const Node& node, const sim::v1::Drain& how) {
    NodeSteered event{.id = node.id, .cordoned = node.status.cordoned, .reason = {}};
    event.drain = {.mode = ModeFrom(how.mode()), .begin = cluster_.now()};
    for (const std::string& uuid : how.devices()) {
      const auto& all = node.spec.devices;
      const auto found = std::find_if(all.begin(), all.end(),
                                      [&](const Device& device) { return device.uuid == uuid; });
      if (found == all.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("node ", node.spec.name, " has no device \"", uuid, "\""));
      }
      event.drain.devices.Add(static_cast<size_t>(found - all.begin()));
    }
    if (how.has_deadline()) {
      event.drain.deadline = cluster_.now() + DurationFrom(how.deadline());
    } else if (event.drain.mode == DrainMode::kCheckpoint) {
      event.drain.deadline = cluster_.now() + kDefaultCheckpointDrain;
    }
    if (how.devices().empty()) event.cordoned = event.draining = true;
    return cluster_.Happen(event);
  }

  // Reports on every named task, or on all tasks in a state that `concerns` accepts.
  absl::Status Reports(const sim::v1::Tasks& what, ReportState state,
                       const std::function<bool(TaskState)>& concerns,
                       const std::function<void(TaskReported*)>& change) {
    return ForTasks(what, concerns, [&](TaskKey key) -> EventBody {
      TaskReported report = ReportOf(key, state);
      change(&report);
      return report;
    });
  }

  // What running tasks tell about themselves.
  absl::Status Told(const sim::v1::Tasks& what,
                    const std::function<EventBody(TaskKey key, uint32_t attempt)>& event) {
    const auto runs = [](TaskState state) { return state == TaskState::kRunning; };
    return ForTasks(what, runs, [&](TaskKey key) {
      return event(key, cluster_.state().jobs().At(key.job).tasks[key.task].attempt);
    });
  }

  // For every named task, or for all tasks in a state that `concerns` accepts.
  absl::Status ForTasks(const sim::v1::Tasks& what, const std::function<bool(TaskState)>& concerns,
                        const std::function<EventBody(TaskKey)>& event) {
    const Job* job = cluster_.state().FindJob(what.job());
    if (job == nullptr) return Wrong(path_, "no job \"", what.job(), "\"");
    const auto names = ExpandPlaces({what.tasks().begin(), what.tasks().end()});
    if (!names.ok()) return Under(path_, names.status());
    std::vector<uint32_t> tasks;
    for (const std::string& name : *names) {
      const auto task = FindTask(job->groups, name);
      if (!task.has_value()) return Wrong(path_, job->name, " has no task ", name);
      tasks.push_back(*task);
    }
    for (uint32_t i = 0; i < job->tasks.size() && names->empty(); ++i) {
      if (concerns(job->tasks[i].state)) tasks.push_back(i);
    }
    if (tasks.empty()) return Wrong(path_, "no task of ", job->name, " is in a state for this");
    for (uint32_t task : tasks) {
      if (auto status = cluster_.Happen(event({job->id, task})); !status.ok()) {
        return Under(path_, status);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Set(const sim::v1::Set& set) {
    for (int i = 0; i < set.nodes_size(); ++i) {
      const std::string here = absl::StrCat(path_, ".set.nodes[", i, "]");
      auto status = RegisterNodes(set.nodes(i), /*healthy=*/false, here, &cluster_);
      if (!status.ok()) return status;
    }
    auto tree = ChangeHyperNodes(set.hyper_nodes(),
                                 {set.delete_hyper_nodes().begin(), set.delete_hyper_nodes().end()},
                                 path_ + ".set.hyper_nodes", &cluster_);
    if (!tree.ok()) return tree;
    for (int i = 0; i < set.queues_size(); ++i) {
      auto status =
          UpdateQueue(set.queues(i), absl::StrCat(path_, ".set.queues[", i, "]"), &cluster_);
      if (!status.ok()) return status;
    }
    for (const std::string& name : set.delete_queues()) {
      const Queue* queue = cluster_.state().FindQueue(name);
      if (queue == nullptr) return Wrong(path_, "no queue \"", name, "\"");
      auto status = cluster_.Happen(QueueDeleted{queue->id});
      if (!status.ok()) return Under(path_, status);
    }
    for (const sim::v1::Priority& one : set.priorities()) {
      const Job* job = cluster_.state().FindJob(one.job());
      if (job == nullptr) return Wrong(path_, "no job \"", one.job(), "\"");
      auto status = cluster_.Happen(JobUpdated{job->id, one.priority(), job->labels});
      if (!status.ok()) return Under(path_, status);
    }
    if (!set.has_config()) return absl::OkStatus();
    const auto config = ToPolicyConfig(set.config(), absl::StrCat(path_, ".set.config"));
    if (!config.ok()) return config.status();
    cluster_.SetPolicies(*Policies::Create(*config));
    return absl::OkStatus();
  }

 private:
  absl::Status ForNames(const sim::v1::Names& names,
                        const std::function<absl::Status(const std::string&)>& what) {
    const auto expanded = ExpandPlaces({names.names().begin(), names.names().end()});
    if (!expanded.ok()) return Under(path_, expanded.status());
    for (const std::string& name : *expanded) {
      if (auto status = what(name); !status.ok()) return Under(path_, status);
    }
    return absl::OkStatus();
  }

  TaskReported ReportOf(TaskKey key, ReportState state) const {
    TaskReported report;
    report.task = key;
    report.attempt = cluster_.state().jobs().At(key.job).tasks[key.task].attempt;
    report.state = state;
    return report;
  }

  const std::string& path_;
  SimCluster& cluster_;
};

absl::Status TakeNodeStep(const Step& step, StepRunner* taking) {
  switch (step.what_case()) {
    case Step::kNodeDown:
      return taking->ForNodes(step.node_down(), [&](const Node& n) { return taking->Silence(n); });
    case Step::kNodeLost:
      return taking->ForNodes(step.node_lost(), [&](const Node& n) { return taking->Lose(n); });
    case Step::kNodeUp:
      return taking->ForNodes(step.node_up(),
                              [&](const Node& n) { return taking->Return(n, false); });
    case Step::kNodeReboot:
      return taking->ForNodes(step.node_reboot(),
                              [&](const Node& n) { return taking->Return(n, true); });
    case Step::kCordon:
      return taking->ForNodes(step.cordon(),
                              [&](const Node& n) { return taking->Steer(n, true, false); });
    case Step::kUncordon:
      return taking->ForNodes(step.uncordon(),
                              [&](const Node& n) { return taking->Steer(n, false, false); });
    default: {
      sim::v1::Names nodes;
      *nodes.mutable_names() = step.drain().names();
      return taking->ForNodes(nodes, [&](const Node& n) { return taking->Drain(n, step.drain()); });
    }
  }
}

absl::Status TakeProgressStep(const Step& step, StepRunner* taking) {
  switch (step.what_case()) {
    case Step::kReady:
      return taking->Told(step.ready(), [](TaskKey key, uint32_t attempt) {
        return TaskReady{.task = key, .attempt = attempt};
      });
    case Step::kSaved:
      return taking->Told(step.saved(), [&](TaskKey key, uint32_t attempt) {
        return CheckpointRecorded{.task = key, .attempt = attempt, .step = step.saved().step()};
      });
    case Step::kHung:
      return taking->Told(step.hung(), [&](TaskKey key, uint32_t attempt) {
        return TaskHung{.task = key, .attempt = attempt, .step = step.hung().step()};
      });
    default:
      return taking->Told(step.moves(), [](TaskKey key, uint32_t attempt) {
        return TaskHung{.task = key, .attempt = attempt, .over = true};
      });
  }
}

absl::Status TakeTaskStep(const Step& step, StepRunner* taking) {
  const auto in = [](TaskState state) {
    return [state](TaskState other) { return other == state; };
  };
  const auto as_it_is = [](TaskReported*) {};
  switch (step.what_case()) {
    case Step::kFinish:
      return taking->Reports(step.finish(), ReportState::kExited, in(TaskState::kRunning),
                             as_it_is);
    case Step::kFail:
      return taking->Reports(
          step.fail(), ReportState::kExited,
          [](TaskState state) {
            return state == TaskState::kRunning || state == TaskState::kReleasing;
          },
          [&](TaskReported* report) {
            const int32_t code = step.fail().exit_code();
            report->exit_signal = static_cast<uint8_t>(step.fail().exit_signal());
            report->exit_code = code == 0 && report->exit_signal == 0 ? 1 : code;
          });
    case Step::kPrepared:
      return taking->Reports(step.prepared(), ReportState::kPrepared, in(TaskState::kBound),
                             as_it_is);
    case Step::kRunning:
      return taking->Reports(step.running(), ReportState::kRunning, in(TaskState::kStarting),
                             as_it_is);
    case Step::kRefuse:
      return taking->Reports(step.refuse(), ReportState::kRefused, in(TaskState::kBound),
                             [&](TaskReported* report) {
                               report->own_fault = step.refuse().own_fault();
                               report->message = step.refuse().message();
                             });
    default:
      return taking->Reports(step.gone(), ReportState::kExited, in(TaskState::kReleasing),
                             [](TaskReported* report) { report->cause = ExitCause::kKilled; });
  }
}

}  // namespace

absl::Status ApplyStep(const Step& step, const std::string& path, SimCluster* cluster) {
  StepRunner taking(path, cluster);
  switch (step.what_case()) {
    case Step::kSubmit:
      return SubmitJobs(step.submit().jobs(), absl::StrCat(path, ".submit.jobs"), cluster);
    case Step::kSet:
      return taking.Set(step.set());
    case Step::kCancel:
      return taking.ForJobs(step.cancel(), [&](const Job& job) {
        return cluster->Happen(JobCancelled{job.id, "cancelled"});
      });
    case Step::kSuspend:
      return taking.ForJobs(step.suspend(), [&](const Job& job) {
        return cluster->Happen(JobSuspended{job.id, true});
      });
    case Step::kPause:
      return taking.ForJobs(step.pause(), [&](const Job& job) {
        return cluster->Happen(JobSuspended{.id = job.id, .suspended = true, .freeze = true});
      });
    case Step::kResume:
      return taking.ForJobs(step.resume(), [&](const Job& job) {
        return cluster->Happen(JobSuspended{job.id, false});
      });
    case Step::kDelete:
      return taking.ForJobs(step.delete_(),
                            [&](const Job& job) { return cluster->Happen(JobDeleted{job.id}); });
    case Step::kNodeDelete:
      return taking.ForNodes(step.node_delete(), [&](const Node& node) {
        return cluster->Happen(NodeDeleted{node.id});
      });
    case Step::kReady:
    case Step::kSaved:
    case Step::kHung:
    case Step::kMoves:
      return TakeProgressStep(step, &taking);
    case Step::kFinish:
    case Step::kFail:
    case Step::kPrepared:
    case Step::kRunning:
    case Step::kRefuse:
    case Step::kGone:
      return TakeTaskStep(step, &taking);
    default:
      return TakeNodeStep(step, &taking);
  }
}

}  // namespace berth
