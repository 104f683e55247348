#include "server/controllers/registration.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/controllers/conditions.h"
#include "server/convert/agent.h"
#include "support/log.h"

namespace berth {
namespace {

// Whether the state has not yet gone past the report.
bool IsNews(const Task& task, TaskState state, ReportState report) {
  switch (report) {
    case ReportState::kPrepared:
      return state == TaskState::kBound;
    case ReportState::kRunning:
      return state == TaskState::kBound || state == TaskState::kPrepared ||
             state == TaskState::kStarting;
    case ReportState::kPaused:
      return state == TaskState::kRunning && task.pause == PauseState::kPausing;
    case ReportState::kRefused:
    case ReportState::kExited:
      return true;
  }
  return true;
}

// "devices, labels", for the log: why an agent registered again.
std::string Differences(const Node& known, const NodeSpec& spec, const v1::Hello& hello) {
  std::vector<absl::string_view> names;
  const auto note = [&names](bool same, absl::string_view name) {
    if (!same) names.push_back(name);
  };
  note(known.status.agent_id == hello.agent_id(), "agent");
  note(known.status.boot_id == hello.boot_id(), "boot");
  note(known.status.agent_version == hello.agent_version(), "version");
  note(known.spec.address == spec.address, "address");
  note(known.spec.cpu_millis == spec.cpu_millis, "cpu");
  note(known.spec.memory_bytes == spec.memory_bytes, "memory");
  note(known.spec.devices == spec.devices, "devices");
  note(known.spec.topology == spec.topology, "topology");
  note(known.spec.extended == spec.extended, "extended");
  note(known.spec.max_tasks == spec.max_tasks, "tasks");
  note(known.spec.freezes == spec.freezes, "freezing");
  note(known.spec.checkpoints_devices == spec.checkpoints_devices, "checkpoints of devices");
  note(known.spec.labels == spec.labels, "labels");
  note(known.spec.taints == spec.taints, "taints");
  return absl::StrJoin(names, ", ");
}

// One registration in progress.
class Registrar {
 public:
  Registrar(Turn& turn, const v1::Hello& hello, const StoreIdentity& store,
            const Expectation& expected)
      : turn_(turn), hello_(hello), store_(store), expected_(expected) {}

  absl::StatusOr<Registration> Run() {
    const Node* known = turn_.state().FindNode(hello_.node());
    if (known != nullptr && known->status.agent_id != hello_.agent_id() &&
        known->status.state != NodeState::kLost) {
      return absl::AlreadyExistsError(
          absl::StrCat("node ", hello_.node(), " is in use by another agent"));
    }
    const bool cordoned_for_refusals = known != nullptr && known->status.cordoned &&
                                       !known->status.draining &&
                                       absl::StartsWith(known->status.reason, kCordonedForRefusals);
    same_agent_ = known != nullptr && known->status.agent_id == hello_.agent_id();
    same_boot_ = known != nullptr && known->status.boot_id == hello_.boot_id();
    if (absl::Status status = CheckIncarnation(); !status.ok()) return status;
    if (absl::Status status = EmitRegistered(known); !status.ok()) return status;
    ReadReports();
    MarkMissing();
    Repeat();
    // The reboot may have removed the cause of its refusals: it is trusted again.
    if (cordoned_for_refusals && !same_boot_) {
      const NodeStatus& now = turn_.state().nodes().At(result_.node).status;
      const NodeSteered trusted{.id = result_.node, .drain = DrainOfDevices(now)};
      if (absl::Status status = turn_.Emit(trusted); !status.ok()) return status;
    }
    return std::move(result_);
  }

 private:
  absl::Status CheckIncarnation() const {
    if (store_.incarnation != 0 && !hello_.knows_incarnations()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "berth-agent ", hello_.agent_version(),
          " cannot distinguish tasks of this store from those of an earlier one: upgrade the "
          "agent"));
    }
    const bool here = hello_.cluster_id() == store_.cluster_id &&
                      hello_.incarnation() == store_.incarnation && !store_.cluster_id.empty();
    const std::string later = here ? LaterStateSeen() : "";
    if (later.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "node ", hello_.node(), " ", later,
        ": the store is an older copy that was put back by hand. Stop berthd, move the data "
        "directory away and put the copy back with `berthd --restore`"));
  }

  // Evidence that the agent has seen a later state of this store; "" if none. Within an incarnation
  // ids are never reused, and epochs of one node id only grow.
  std::string LaterStateSeen() const {
    const NodeId id{hello_.node_id()};
    if (id >= turn_.state().next_node_id()) {
      return absl::StrCat("has registered as node ", id.value,
                          " before, and this store never assigned that id");
    }
    const Node* node = turn_.state().nodes().Find(id);
    if (node != nullptr && hello_.epoch() > node->status.epoch) {
      return absl::StrCat("has registered with epoch ", hello_.epoch(),
                          " before, and this store knows ", node->status.epoch);
    }
    if (hello_.greatest_job() >= expected_.first_unknown.value) {
      return absl::StrCat("has tasks of job uid ", hello_.greatest_job(),
                          ", and this store never assigned that uid");
    }
    return "";
  }

  absl::Status EmitRegistered(const Node* known) {
    result_.node = known != nullptr ? known->id : turn_.state().next_node_id();
    result_.name = hello_.node();
    result_.epoch = known != nullptr ? known->status.epoch + 1 : 1;
    NodeSpec spec = ToNodeSpec(hello_);
    if (known != nullptr) result_.changed = Differences(*known, spec, hello_);
    return turn_.Emit(NodeRegistered{.id = result_.node,
                                     .spec = std::move(spec),
                                     .epoch = result_.epoch,
                                     .agent_id = hello_.agent_id(),
                                     .boot_id = hello_.boot_id(),
                                     .agent_version = hello_.agent_version()});
  }

  void ReadReports() {
    NoteImages();
    for (const v1::TaskReport& message : hello_.tasks()) {
      if (message.report_id() != 0) result_.acks.push_back(message.report_id());
      absl::StatusOr<TaskReported> report = ToTaskReported(message);
      const bool ours = message.key().incarnation() == store_.incarnation;
      if (ours && report.ok() && Read(*report, message)) {
        held_[report->task] = report->attempt;
      } else {
        result_.forget.push_back(message.key());
      }
    }
  }

  // Of tasks that count already, before those that may be compared with them.
  void NoteImages() {
    if (expected_.images == nullptr) return;
    for (const v1::TaskReport& message : hello_.tasks()) {
      const absl::StatusOr<TaskReported> report = ToTaskReported(message);
      const bool ours = message.key().incarnation() == store_.incarnation;
      if (ours && report.ok() &&
          JudgeReport(turn_.state(), result_.node, *report, message.freeze_request()) ==
              ReportVerdict::kKnown)
        expected_.images->Note(turn_.state(), message);
    }
    expected_.images->NoteNode(result_.node);
  }

  // Of a task that is prepared with another image than its peers, Repeat sends the Prepare again.
  bool Counts(const TaskReported& report, const v1::TaskReport& message) {
    return expected_.images == nullptr ||
           expected_.images->Note(turn_.state(), message) == ImageBook::Verdict::kCounts ||
           report.state != ReportState::kPrepared;
  }

  // True if the agent should have the task.
  bool Read(const TaskReported& report, const v1::TaskReport& message) {
    switch (JudgeReport(turn_.state(), result_.node, report, message.freeze_request())) {
      case ReportVerdict::kKnown:
        return true;
      case ReportVerdict::kNews:
        if (!Counts(report, message)) return true;
        if (absl::Status status = turn_.Emit(report); !status.ok()) {
          LogWarn("a report of a registering agent was refused",
                  {{"node", hello_.node()}, {"job", report.task.job.value}, {"error", status}});
        }
        return true;
      case ReportVerdict::kSuperseded:
      case ReportVerdict::kUnknown:
        return false;
    }
    return false;
  }

  void MarkMissing() {
    for (const TaskKey& key : Tasks()) {
      const Task& task = turn_.state().jobs().At(key.job).tasks.at(key.task);
      auto held = held_.find(key);
      if (held != held_.end() && held->second == task.attempt) continue;
      if (task.state == TaskState::kBound && same_agent_ && !expected_.restored) continue;
      result_.missing.push_back(
          {key, task.attempt, same_boot_ ? ExitCause::kGone : ExitCause::kReboot});
    }
  }

  void Repeat() {
    LaunchCapture capture(turn_.state(), expected_.images);
    auto missing = result_.missing.begin();  // in the same order
    for (const TaskKey& key : Tasks()) {
      if (missing != result_.missing.end() && missing->task == key) {
        ++missing;
      } else {
        capture.AddByState(key);
      }
    }
    result_.orders = capture.Take();
  }

  // The tasks on the node, in order. A copy: events change the node's list.
  std::vector<TaskKey> Tasks() const {
    const Node& node = turn_.state().nodes().At(result_.node);
    std::vector<TaskKey> tasks(node.tasks.begin(), node.tasks.end());
    std::sort(tasks.begin(), tasks.end());
    return tasks;
  }

  Turn& turn_;
  const v1::Hello& hello_;
  const StoreIdentity& store_;
  const Expectation& expected_;
  bool same_agent_ = false;
  bool same_boot_ = false;
  std::map<TaskKey, uint32_t> held_;  // attempts
  Registration result_;
};

}  // namespace

absl::StatusOr<Registration> RegisterNode(Turn& turn, const v1::Hello& hello,
                                          const StoreIdentity& store, const Expectation& expected) {
  return Registrar(turn, hello, store, expected).Run();
}

void ProcessMissing(Turn& turn, NodeId id, uint64_t epoch,
                    const std::vector<MissingTask>& missing) {
  const Node* node = turn.state().nodes().Find(id);
  if (node == nullptr || node->status.epoch != epoch) return;
  // Silent again: its tasks are Lost, and its next registration finds them missing again.
  if (node->status.state != NodeState::kReady) return;
  for (const MissingTask& gone : missing) {
    const TaskReported report{.task = gone.task,
                              .attempt = gone.attempt,
                              .state = ReportState::kExited,
                              .cause = gone.cause,
                              .message = "its agent came back without this task"};
    if (JudgeReport(turn.state(), id, report) != ReportVerdict::kNews) continue;
    if (absl::Status status = turn.Emit(report); !status.ok()) {
      LogError("a task that its agent lost cannot end",
               {{"job", gone.task.job.value}, {"task", gone.task.task}, {"error", status}});
    }
  }
}

ReportVerdict JudgeReport(const ClusterState& state, NodeId node, const TaskReported& report,
                          int64_t freeze_request) {
  const Job* job = state.jobs().Find(report.task.job);
  if (job == nullptr || report.task.task >= job->tasks.size()) return ReportVerdict::kUnknown;
  const Task& task = job->tasks[report.task.task];
  if (report.attempt == 0 || report.attempt > task.attempt) return ReportVerdict::kUnknown;
  if (report.attempt < task.attempt) return ReportVerdict::kSuperseded;
  if (task.node != node) return ReportVerdict::kUnknown;
  if (!Occupies(task.state)) return ReportVerdict::kSuperseded;
  const bool of_pause = freeze_request == absl::ToUnixNanos(job->status.pause.since);
  if (report.state == ReportState::kPaused && !of_pause) return ReportVerdict::kKnown;
  const bool lost = task.state == TaskState::kLost;
  const TaskState now = lost ? task.before_lost : task.state;
  return IsNews(task, now, report.state) ? ReportVerdict::kNews : ReportVerdict::kKnown;
}

}  // namespace berth
