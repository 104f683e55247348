// The processes on a node, each with its supervisor, which outlives agents. Does what
// clients/agent/supervisor and process_runner do with real processes: runs a command, stops it on
// request or when the lease in the lease file expires, and keeps its exit status for the agent.
#ifndef BERTH_TESTS_SIMULATION_PROCESSES_H_
#define BERTH_TESTS_SIMULATION_PROCESSES_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/notice_files.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/observer.h"
#include "tests/simulation/scheduler.h"

namespace berth::simulation {

// In the environment of a task: how long its processes run, and how often they fail.
inline constexpr char kRunTimeVariable[] = "SIM_RUN_MS";
inline constexpr char kFailVariable[] = "SIM_FAIL_PERCENT";
// How often they report a step, and how often they hang: at any time of their run they stop to
// report steps, and never end by themselves.
inline constexpr char kStepVariable[] = "SIM_STEP_MS";
inline constexpr char kHangVariable[] = "SIM_HANG_PERCENT";
inline constexpr char kMissingDirectory[] = "/typo";  // exists on no node: each refuses such a task
// The number in this variable, or `otherwise`.
int64_t VariableOf(const v1::TaskLaunch& launch, absl::string_view name, int64_t otherwise);

class Processes final : public NoticeSource {
 public:
  // `changed(id)`: the agent should check the task. `local`: the machine's steady clock.
  Processes(Scheduler* scheduler, Observer* observer, size_t node, uint64_t seed,
            std::function<absl::Duration()> local, std::function<void(const TaskId&)> changed);

  enum class Phase : uint8_t { kSpawned, kRunning, kExited, kLost };
  struct Status {
    Phase phase = Phase::kSpawned;
    int exit_code = 0, exit_signal = 0;
    v1::TaskReport::Cause cause = v1::TaskReport::CAUSE_UNSPECIFIED;
    bool ran = false;
    absl::Duration began;                       // on the machine's steady clock, if it ran
    int64_t frozen = 0;                         // the request by which it is
    bool lends = false;                         // likewise: nothing of it is on its devices
    std::optional<absl::Duration> thawed = {};  // likewise, the last time
  };

  // Returns false if the task already has a supervisor.
  bool Spawn(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start);
  // SIGKILL after the grace, which can only be shortened; the first cause is kept.
  void Stop(const TaskId& id, absl::Duration grace, v1::TaskReport::Cause cause);
  // Its processes stand still, or go on (request 0); a stop thaws them. What they have on devices
  // is saved if `saves`, of most tasks.
  void Freeze(const TaskId& id, int64_t request, bool saves);
  // The process exits with 1 after the delay, unless it has ended by then.
  void FailLater(const TaskId& id, absl::Duration delay);
  // It runs and hangs.
  bool Hangs(const TaskId& id) const;
  // For a task that has or had a supervisor; kLost: there is no trace of one.
  Status Look(const TaskId& id) const;
  std::optional<TaskNotices> Read(const TaskId& id, NoticesVersion* version) override;
  // Removes the remains of an ended process.
  void Remove(const TaskId& id);

  // Time until which strict tasks may run; on disk, read by supervisors.
  std::optional<absl::Duration> lease, longer_lease;

  // The machine loses its power: all processes end.
  void PowerCut();
  size_t alive() const { return alive_; }

 private:
  struct Process {
    Status status;
    SimNotices notices;
    v1::TaskLaunch launch;
    v1::Start start;
    ActorPtr actor;
    bool obeys = true;  // exits soon after the signal, not only by SIGKILL
    absl::Duration run_time;
    int own_exit = 0;
    absl::Duration step;  // how long each takes; 0 = it reports none
    int64_t steps = 0;
    bool will_hang = false, hangs = false;
    absl::Duration frozen_at, frozen_for;  // on the machine's steady clock; of pauses that are over
    std::optional<absl::Duration> kill_at;
    v1::TaskReport::Cause stop_cause = v1::TaskReport::CAUSE_UNSPECIFIED;
  };
  void Exec(const TaskId& id);
  void Thaw(Process& process);
  void ExitByItself(const TaskId& id, int code, absl::Duration paused);
  void WatchLease(const TaskId& id);
  void MakeStep(const TaskId& id);
  void Hang(const TaskId& id);
  void Exit(const TaskId& id, int code, int signal);

  Scheduler* const scheduler_;
  Observer* const observer_;
  const size_t node_;
  Dice dice_, hang_dice_;
  const std::function<absl::Duration()> local_;
  const std::function<void(const TaskId&)> changed_;
  std::map<TaskId, Process> processes_;
  size_t alive_ = 0;

 public:
  // The machine's actor: its supervisors freeze with it.
  ActorPtr machine = std::make_shared<Actor>();
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_PROCESSES_H_
