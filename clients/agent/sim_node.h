// One simulated node: the agent's logic with a runner whose tasks are timers. Used under its
// shard's mutex.
#ifndef BERTH_CLIENTS_AGENT_SIM_NODE_H_
#define BERTH_CLIENTS_AGENT_SIM_NODE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/config/v1/config.pb.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/notice_files.h"
#include "support/random.h"

namespace berth {

// How tasks behave on one kind of node.
struct SimBehaviour {
  absl::Duration run_time = absl::Seconds(1);
  absl::Duration run_time_jitter;
  double failure_rate = 0;
  double refusal_rate = 0;
  absl::Duration prepare_delay;
  absl::Duration start_delay;
  absl::Duration step_time;                                 // 0: tasks report no steps
  std::function<void(const TaskId&)> on_prepare = nullptr;  // called for each Prepare
};
SimBehaviour ToBehaviour(const config::v1::SimulatedNodes& nodes);

// Devices are named NAME-KIND-0, ... for each declared kind. INVALID_ARGUMENT if the device
// topology is unknown, or for other devices.
absl::StatusOr<v1::NodeInventory> SimInventory(const std::string& name,
                                               const config::v1::SimulatedNodes& nodes);

struct SimCounters {
  size_t running = 0;
  uint64_t started = 0;
};

// Tasks that only take time. Their end events go through `after`, which delivers the event after a
// delay.
class SimRunner final : public TaskRunner, public NoticeSource {
 public:
  using After = absl::AnyInvocable<void(absl::Duration delay, TaskEvent event)>;
  SimRunner(const SimBehaviour& behaviour, Random& random, SimCounters& counters, After after);

  void Prepare(const TaskId& id, const v1::TaskLaunch& launch, std::optional<int> port) override;
  void Discard(const TaskId& id) override;
  void Start(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start) override;
  void Kill(const TaskId& id, const std::string& signal, absl::Duration grace,
            v1::TaskReport::Cause cause) override;
  void Signal(const TaskId&, const std::string&) override {}  // they have nothing to save
  // The time of a frozen task goes on, but it does not end before it is thawed.
  void Freeze(const TaskId& id, int64_t request, bool saves_devices) override;
  void Adopt(const agent::v1::TaskRecord& record) override;
  void Remove(const TaskId& id) override;
  bool SetLease(absl::Duration, absl::Duration) override { return true; }

  // The task sends `datagram` to its NOTIFY_SOCKET. False: it does not run here.
  bool Tell(const TaskId& id, absl::string_view datagram, absl::Duration now);
  // With step_time, tasks have made their steps when they are asked.
  std::optional<TaskNotices> Read(const TaskId& id, NoticesVersion* version) override;

  // Whether a delayed event still applies: a killed task does not end twice.
  bool Accept(const TaskEvent& event);

 private:
  void MakeSteps(const TaskId& id);

  enum class Phase { kPreparing, kPrepared, kStarting, kRunning };

  const SimBehaviour& behaviour_;
  Random& random_;
  SimCounters& counters_;
  After after_;
  std::map<TaskId, Phase> tasks_;
  std::map<TaskId, std::optional<TaskEvent>> frozen_;  // with the end that waits, if there is one
  std::map<TaskId, absl::Duration> began_;  // with step_time: when tasks were asked first
  std::map<TaskId, SimNotices> notices_;    // of tasks that were not removed yet
  int next_port_ = 0;
};

// Simulated tasks write nothing.
class NoLogs final : public LogSource {
 public:
  absl::StatusOr<std::unique_ptr<LogCursor>> Open(const v1::ReadLog&) override {
    return absl::NotFoundError("a simulated task has no output");
  }
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SIM_NODE_H_
