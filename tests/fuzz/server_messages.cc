// Sequences of server messages to an agent with a fake runner, journal and logs.
#include <google/protobuf/duration.pb.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "clients/agent/logic.h"
#include "clients/agent/notice_files.h"
#include "core/base/check.h"
#include "tests/fuzz/message.h"
#include "tests/fuzz/steps.h"
#include "tests/fuzz/target.h"
#include "tests/unit/agent/fakes.h"

namespace berth::fuzz {
namespace {

constexpr int kMostTicks = 200;

// Checks that (job, task, attempt) starts at most once, whatever the server sends and however often
// the agent restarts.
class CountingRunner final : public TaskRunner {
 public:
  void Prepare(const TaskId& id, const v1::TaskLaunch&, std::optional<int>) override {
    known.push_back(id);
  }
  void Signal(const TaskId&, const std::string&) override {}
  void Freeze(const TaskId&, int64_t) override {}
  void Discard(const TaskId&) override {}
  void Start(const TaskId& id, const v1::TaskLaunch&, const v1::Start&) override {
    BERTH_CHECK(started.insert(id).second);
  }
  void Kill(const TaskId&, const std::string&, absl::Duration, v1::TaskReport::Cause) override {}
  void Adopt(const agent::v1::TaskRecord& record) override {
    known.push_back(ToTaskId(record.key()));
  }
  void Remove(const TaskId&) override {}
  bool SetLease(absl::Duration, absl::Duration) override { return true; }

  std::vector<TaskId> known;  // candidates for events
  std::set<TaskId> started;
};

// What tasks have reported.
class Notebook final : public NoticeSource {
 public:
  std::optional<TaskNotices> Read(const TaskId& id, NoticesVersion* version) override {
    const auto found = tasks.find(id);
    return found == tasks.end() ? std::nullopt : found->second.Read(version);
  }
  std::map<TaskId, SimNotices> tasks;
};

void CheckProgress(const v1::Progress& progress) {
  BERTH_CHECK(progress.tasks_size() <= kMaxProgressTasks);
  std::set<TaskId> tasks;
  for (const v1::TaskProgress& state : progress.tasks()) {
    BERTH_CHECK(tasks.insert(ToTaskId(state.key())).second);
    BERTH_CHECK(state.has_still() || !state.hung());
    BERTH_CHECK(state.still().seconds() >= 0);
  }
}

class World {
 public:
  World() { Begin(false); }

  void Run(const Step& step) {
    Do(step);
    for (const v1::AgentMessage& message : std::exchange(link_.sent, {}))
      if (message.has_progress()) CheckProgress(message.progress());
  }

 private:
  void Do(const Step& step) {
    static constexpr absl::string_view kKinds[] = {"Server",  "Event",      "Advance", "Disconnect",
                                                   "Restart", "Conditions", "Notify",  "Exec"};
    const auto* found = std::find(std::begin(kKinds), std::end(kKinds), step.name);
    const size_t kind = found != std::end(kKinds) ? static_cast<size_t>(found - std::begin(kKinds))
                                                  : KindOf(step.name, std::size(kKinds));
    switch (kind) {
      case 0:
        return Server(step);
      case 1:
        return Event(step);
      case 2:
        return Advance(step);
      case 3:
        if (link_.connected) logic_->OnDisconnected(Now(), "it broke");
        link_.connected = false;
        return;
      case 4:
        return Begin(step.slot == 1);
      case 5:
        return logic_->SetConditions(Read<v1::NodeConditions>(step));
      case 6:
        if (runner_.known.empty()) return;
        return notices_.tasks[runner_.known[step.slot % runner_.known.size()]].Add(step.body, now_);
      default:
        return logic_->OnExecOutput(Read<v1::ExecOutput>(step));
    }
  }

  template <class Message>
  static Message Read(const Step& step) {
    Message message;
    ReadMessage(step.body, &message);
    return message;
  }

  Instant Now() const {
    return {.steady = now_, .wall = absl::FromUnixSeconds(1'800'000'000) + now_};
  }

  void Begin(bool rebooted) {
    v1::NodeInventory inventory;
    for (const char* uuid : {"gpu-0", "gpu-1"}) {
      v1::Device& device = *inventory.add_devices();
      device.set_uuid(uuid);
      device.set_kind("gpu");
      device.set_max_tasks(2);
    }
    link_ = {};
    runner_.known.clear();
    logic_ = std::make_unique<AgentLogic>(AgentLogic::Options{.node = "n0",
                                                              .agent_id = "id-0",
                                                              .boot_id = "boot-1",
                                                              .version = "1",
                                                              .inventory = inventory},
                                          link_, journal_, runner_, logs_, random_);
    logic_->SetNoticeSource(&notices_);
    logic_->Begin(
        Now(), {.journal = journal_.state, .rebooted = rebooted, .lease_deadline = std::nullopt});
  }

  void Server(const Step& step) {
    if (!link_.connected) Advance(step);
    if (!link_.connected) return;
    logs_.pieces = {"output", std::string(100, 'x')};
    logic_->OnServerMessage(Now(), Read<v1::ServerMessage>(step));
  }

  // An event that a runner may send: about a task that it received, in the form of a report.
  void Event(const Step& step) {
    const auto report = Read<v1::TaskReport>(step);
    if (runner_.known.empty()) return;
    TaskEvent event;
    event.id = runner_.known[report.key().task() % runner_.known.size()];
    event.kind = static_cast<TaskEvent::Kind>(report.report_id() % 4);
    event.port = report.reserved_port();
    event.exit_code = report.exit_code();
    event.exit_signal = report.exit_signal();
    event.cause = report.cause();
    event.message = report.message();
    logic_->OnTaskEvent(Now(), event);
  }

  void Advance(const Step& step) {
    const auto duration = Read<google::protobuf::Duration>(step);
    const absl::Duration end =
        now_ + absl::Seconds(std::clamp<int64_t>(duration.seconds(), 0, 100'000));
    for (int ticks = 0; logic_->NextWake() <= end && ticks < kMostTicks; ++ticks) {
      now_ = std::max(now_, logic_->NextWake());
      logic_->Tick(Now());
    }
    now_ = std::max(now_, end);
    logic_->Tick(Now());
  }

  testing::FakeLink link_;
  testing::FakeJournal journal_;
  CountingRunner runner_;
  testing::FakeLogs logs_;
  Notebook notices_;
  Random random_{1};
  std::unique_ptr<AgentLogic> logic_;
  absl::Duration now_ = absl::Seconds(100);
};

}  // namespace

void FuzzOne(absl::string_view input) {
  World world;
  for (const Step& step : ReadSteps(input)) world.Run(step);
}

}  // namespace berth::fuzz
