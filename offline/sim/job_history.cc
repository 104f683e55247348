#include "offline/sim/job_history.h"

#include <algorithm>
#include <utility>

#include "core/model/transitions.h"
#include "offline/sim/names.h"
#include "server/convert/job.h"

namespace berth {
namespace {

TaskReported Report(TaskKey key, ReportState state) {
  TaskReported report;
  report.task = key;
  report.attempt = 1;
  report.state = state;
  return report;
}

// The state of a LOST task before its node fell silent. The state of the node makes it LOST.
TaskState BeforeLost(TaskState state) {
  return state == TaskState::kLost ? TaskState::kRunning : state;
}

bool Held(TaskState state) { return Occupies(state) || Ended(state); }
bool Ran(TaskState state) {
  return state == TaskState::kRunning || state == TaskState::kReleasing || Ended(state);
}

class Life {
 public:
  Life(const JobNow& now, const std::vector<TaskNow>& tasks, JobId id, const DeviceBook& book,
       SimCluster* cluster)
      : now_(now), tasks_(tasks), id_(id), book_(book), cluster_(*cluster) {}

  absl::Status Hold() {
    for (uint32_t g = 0; g < job().groups.size() && status_.ok(); ++g) HoldGroup(g);
    if (status_.ok()) SetState();
    return status_;
  }

  absl::Status Wait() {
    for (uint32_t i = 0; i < tasks_.size() && status_.ok(); ++i) {
      const TaskNow& task = tasks_[i];
      if (task.state == TaskState::kNominated) {
        Tell(task.since, TasksNominated{id_, {PlaceOf(i, task.node, task.devices, true)}});
      }
      if (task.moves_to.empty()) continue;
      Tell(task.since,
           TasksReleased{.job = id_,
                         .tasks = {i},
                         .requeue = true,
                         .reason = ReleaseReason::kDrain,
                         .moves_to = {PlaceOf(i, task.moves_to, task.moves_to_devices, true)}});
    }
    return status_;
  }

 private:
  const Job& job() const { return cluster_.state().jobs().At(id_); }

  void Tell(Time when, EventBody body) {
    if (status_.ok()) status_ = Under(now_.path, cluster_.ApplyAt(when, std::move(body)));
  }

  // Starts the members of one group together. A group that follows another does not start the gang.
  void HoldGroup(uint32_t g) {
    const Group& group = job().groups[g];
    std::vector<Placement> places;
    std::vector<uint32_t> started;
    Time when = absl::InfiniteFuture();
    for (uint32_t i = group.first_task; i < group.first_task + uint32_t(group.replicas); ++i) {
      if (!Held(tasks_[i].state)) continue;
      places.push_back(PlaceOf(i, tasks_[i].node, tasks_[i].devices, false));
      when = std::min(when, tasks_[i].since);
      const TaskState state = BeforeLost(tasks_[i].state);
      if (state == TaskState::kStarting || Ran(state)) started.push_back(i);
    }
    if (places.empty() || !status_.ok()) return;
    std::vector<uint32_t> held;
    for (const Placement& place : places) held.push_back(place.task);
    Tell(when, TasksBound{id_, job().status.starts == 0, std::move(places)});
    for (uint32_t i : held) {
      if (tasks_[i].state != TaskState::kBound) {
        Tell(tasks_[i].since, Report({id_, i}, ReportState::kPrepared));
      }
    }
    if (!started.empty()) Tell(when, TasksStarted{id_, started});
    for (uint32_t i : started) Reach(i);
  }

  void Reach(uint32_t i) {
    const TaskNow& task = tasks_[i];
    const TaskState state = BeforeLost(task.state);
    if (!Ran(state)) return;
    Tell(task.since, Report({id_, i}, ReportState::kRunning));
    if (state == TaskState::kReleasing && task.moves_to.empty()) {
      Tell(task.since,
           TasksReleased{
               .job = id_, .tasks = {i}, .requeue = !task.ends, .reason = ReleaseReason::kDrain});
    }
    if (!Ended(state)) return;
    TaskReported ended = Report({id_, i}, ReportState::kExited);
    ended.exit_code = state == TaskState::kFailed ? task.exit_code : 0;
    Tell(task.since, std::move(ended));
  }

  // Sets the state that the lifecycle stage would have set.
  void SetState() {
    JobStatus status = job().status;
    const GroupTally tally = TallyOf(job());
    if (tally.Occupying() == 0 || status.starts == 0) return;
    const bool ends = std::any_of(tasks_.begin(), tasks_.end(), [](const TaskNow& task) {
      return task.state == TaskState::kReleasing && task.ends;
    });
    const int32_t on_the_way = tally.In(TaskState::kBound) + tally.In(TaskState::kPrepared) +
                               tally.In(TaskState::kStarting);
    if (ends) {
      status.state = JobState::kCompleting;
      status.outcome = JobState::kCancelled;
    } else if (tally.Members() == 0 || tally.Members() < job().min_available) {
      const bool broken = tally.In(TaskState::kReleasing) > 0 && tally.Members() == 0;
      status.state = broken ? JobState::kRestarting : JobState::kRunning;
    } else if (on_the_way == 0) {
      status.state = JobState::kRunning;
    }
    status.start = status.bound;
    for (const Task& task : job().tasks) {
      if (task.start != absl::InfinitePast()) status.start = std::min(status.start, task.start);
    }
    Tell(status.bound, JobStatusChanged{id_, std::move(status)});
  }

  Placement PlaceOf(uint32_t task, const std::string& node_name,
                    const std::vector<std::string>& devices, bool to_wait) {
    const Node* node = cluster_.state().FindNode(node_name);
    const std::string whose = absl::StrCat(now_.path, ": ", TaskNameOf(job(), task));
    if (node == nullptr) {
      status_.Update(Wrong(whose, "no node \"", node_name, "\""));
      return {};
    }
    const ShapeId shape = job().groups[GroupOf(job(), task)].shape;
    absl::StatusOr<DeviceSet> chosen = book_.Choose(
        *node, cluster_.state().interner().Shape(shape).shape, devices, taken_[node->id], to_wait);
    if (!chosen.ok()) {
      status_.Update(Under(whose, chosen.status()));
      return {};
    }
    taken_[node->id] += UseOf(*node, cluster_.state().interner().Shape(shape), *chosen);
    return {task, node->id, *chosen};
  }

  const JobNow& now_;
  const std::vector<TaskNow>& tasks_;
  JobId id_;
  const DeviceBook& book_;
  SimCluster& cluster_;
  std::map<NodeId, DeviceUse> taken_;  // for members that are not bound yet
  absl::Status status_;
};

}  // namespace

absl::Status ReplayUntilHolding(const JobNow& now, const std::vector<TaskNow>& tasks, JobId id,
                                const DeviceBook& book, SimCluster* cluster) {
  return Life(now, tasks, id, book, cluster).Hold();
}

absl::Status ReplayUntilWaiting(const JobNow& now, const std::vector<TaskNow>& tasks, JobId id,
                                const DeviceBook& book, SimCluster* cluster) {
  return Life(now, tasks, id, book, cluster).Wait();
}

}  // namespace berth
