#include "tests/simulation/agent.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/identity.h"

namespace berth::simulation {
namespace {

constexpr char kStateDirectory[] = "/state";
constexpr size_t kCompactBytes = size_t{64} << 10;  // small, to compact the journal often
constexpr int kFirstPort = 20000;
constexpr int kPorts = 5000;
constexpr absl::Duration kLongestNotice = absl::Milliseconds(5);

TaskEvent Event(const TaskId& id, TaskEvent::Kind kind) {
  TaskEvent event;
  event.id = id;
  event.kind = kind;
  return event;
}

}  // namespace

// ---- Runner

void Runner::Prepare(const TaskId& id, const v1::TaskLaunch&, std::optional<int> port) {
  preparing_.insert(id);
  if (dice_->Chance(refusals_)) return Tell(id, TaskEvent::Kind::kRefused);
  TaskEvent prepared = Event(id, TaskEvent::Kind::kPrepared);
  if (port.has_value()) prepared.port = *port > 0 ? *port : kFirstPort + next_port_++ % kPorts;
  after_(dice_->Around(absl::Milliseconds(20)), std::move(prepared));
}

void Runner::Discard(const TaskId& id) { preparing_.erase(id); }

void Runner::Start(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start) {
  preparing_.erase(id);
  if (launch.working_dir() == kMissingDirectory) {
    TaskEvent refused = Event(id, TaskEvent::Kind::kRefused);
    refused.fault = v1::TaskReport::JOB;
    refused.message = absl::StrCat("cannot enter directory ", kMissingDirectory);
    return after_(absl::ZeroDuration(), std::move(refused));
  }
  if (!processes_->Spawn(id, launch, start)) return Tell(id, TaskEvent::Kind::kRefused);
  live_[id] = false;
}

void Runner::Kill(const TaskId& id, const std::string& signal, absl::Duration grace,
                  v1::TaskReport::Cause cause) {
  if (!live_.contains(id)) return;
  processes_->Stop(id, signal == "SIGKILL" ? absl::ZeroDuration() : grace, cause);
}

void Runner::Freeze(const TaskId& id, int64_t request, bool saves_devices) {
  if (live_.contains(id)) processes_->Freeze(id, request, saves_devices);
}

void Runner::Adopt(const agent::v1::TaskRecord& record) {
  const TaskId id = ToTaskId(record.key());
  if (record.phase() == agent::v1::TaskRecord::PREPARED) return;
  live_[id] = false;
  Changed(id);
}

void Runner::Changed(const TaskId& id) {
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  const Processes::Status status = processes_->Look(id);
  if (status.ran && !std::exchange(found->second, true)) {
    TaskEvent running = Event(id, TaskEvent::Kind::kRunning);
    running.began = status.began;
    after_(absl::ZeroDuration(), std::move(running));
  }
  const auto told = frozen_.find(id);
  const bool news = told == frozen_.end() ? status.frozen != 0 || status.thawed.has_value()
                                          : told->second != status.frozen;
  if (status.phase == Processes::Phase::kRunning && news) {
    frozen_[id] = status.frozen;
    TaskEvent event =
        Event(id, status.frozen != 0 ? TaskEvent::Kind::kPaused : TaskEvent::Kind::kResumed);
    event.freeze_request = status.frozen;
    event.devices_released = status.lends;
    event.began = status.thawed;
    after_(absl::ZeroDuration(), std::move(event));
  }
  if (status.phase == Processes::Phase::kExited || status.phase == Processes::Phase::kLost) {
    Finish(id, status);
  }
}

void Runner::Finish(const TaskId& id, const Processes::Status& status) {
  live_.erase(id);
  frozen_.erase(id);
  TaskEvent event = Event(id, TaskEvent::Kind::kExited);
  event.exit_code = status.exit_code;
  event.exit_signal = status.exit_signal;
  event.cause = status.cause;
  if (status.phase == Processes::Phase::kLost && !status.ran) {
    event.kind = TaskEvent::Kind::kRefused;  // the agent was killed before the spawn
  } else if (status.phase == Processes::Phase::kLost) {
    event.cause = v1::TaskReport::SUPERVISOR_LOST;
    event.exit_signal = SIGKILL;
    event.exit_code = 128 + SIGKILL;
  }
  after_(absl::ZeroDuration(), std::move(event));
}

// Events of one task stay in order: all have the same delay.
void Runner::Tell(const TaskId& id, TaskEvent::Kind kind) {
  after_(absl::ZeroDuration(), Event(id, kind));
}

bool Runner::Accept(const TaskEvent& event) {
  if (event.kind != TaskEvent::Kind::kPrepared) {
    preparing_.erase(event.id);
    return true;
  }
  if (preparing_.erase(event.id) == 0) return false;
  observer_->OnPrepared(node_, event.id);
  return true;
}

// ---- Agent

Agent::Agent(AgentSetup setup, Scheduler* scheduler, Network* network, Processes* processes,
             Observer* observer)
    : setup_(std::move(setup)),
      scheduler_(scheduler),
      processes_(processes),
      dice_(setup_.seed, setup_.node),
      runner_(processes, observer, setup_.node, &dice_, setup_.refusals,
              [this](absl::Duration delay, TaskEvent event) {
                const absl::Duration notice = delay + kLongestNotice;
                scheduler_->After(notice, actor_,
                                  [this, event = std::move(event)] { OnTaskEvent(event); });
              }),
      link_(network, setup_.node, actor_, this),
      images_(setup_.seed + setup_.node) {}

Agent::~Agent() = default;

absl::StatusOr<std::unique_ptr<Agent>> Agent::Create(AgentSetup setup, Scheduler* scheduler,
                                                     Network* network, Disk* disk,
                                                     Processes* processes, Observer* observer) {
  std::unique_ptr<Agent> agent(
      new Agent(std::move(setup), scheduler, network, processes, observer));
  if (absl::Status status = agent->Init(disk); !status.ok()) return status;
  return agent;
}

absl::Status Agent::Init(Disk* disk) {
  auto journal = FileJournal::Open(*disk, kStateDirectory, {.compact_bytes = kCompactBytes});
  if (!journal.ok()) return journal.status();
  journal_ = *std::move(journal);
  const absl::StatusOr<bool> rebooted =
      KeepIdentity(*journal_, setup_.boot_id, setup_.new_agent_id);
  if (!rebooted.ok()) return rebooted.status();
  rebooted_ = *rebooted;
  logic_ = std::make_unique<AgentLogic>(
      AgentLogic::Options{.node = setup_.name,
                          .agent_id = journal_->state().identity.agent_id(),
                          .boot_id = setup_.boot_id,
                          .version = "simulated",
                          .inventory = setup_.inventory,
                          .keep_ended = setup_.keep_ended},
      link_, *journal_, runner_, logs_, dice_.random());
  logic_->SetNoticeSource(processes_);
  logic_->SetImages(&images_);
  return absl::OkStatus();
}

void Agent::Begin() {
  AgentLogic::Recovered recovered;
  recovered.journal = journal_->state();
  recovered.rebooted = rebooted_;
  if (!rebooted_) recovered.lease_deadline = std::max(processes_->lease, processes_->longer_lease);
  logic_->Begin(setup_.now(), recovered);
  Settle();
}

void Agent::Die(bool powered) {
  actor_->dead = true;
  link_.Die(powered);
}

void Agent::OnMessage(uint64_t connection, v1::ServerMessage message) {
  if (connection != 0 && connection != link_.connection()) return;
  logic_->OnServerMessage(setup_.now(), message);
  Settle();
}

void Agent::OnDisconnected(uint64_t connection, const std::string& reason) {
  if (connection != link_.connection()) return;
  link_.Ended();
  logic_->OnDisconnected(setup_.now(), reason);
  Settle();
}

void Agent::SetInventory(v1::NodeInventory inventory) {
  logic_->SetInventory(setup_.now(), std::move(inventory));
  Settle();
}

void Agent::OnTaskEvent(const TaskEvent& event) {
  if (!runner_.Accept(event)) return;
  logic_->OnTaskEvent(setup_.now(), event);
  Settle();
}

void Agent::Settle() {
  if (!logic_->fatal().ok()) {
    return scheduler_->After(absl::ZeroDuration(), actor_, [this] { setup_.on_fatal(); });
  }
  const absl::Duration left =
      std::max(logic_->NextWake() - setup_.now().steady, absl::ZeroDuration());
  const absl::Duration at = scheduler_->now() + left;
  if (left == absl::InfiniteDuration() || at >= wake_) return;
  wake_ = at;
  scheduler_->At(at, actor_, [this, at] {
    if (at != wake_) return;  // an earlier tick replaced this one
    wake_ = absl::InfiniteDuration();
    logic_->Tick(setup_.now());
    Settle();
  });
}

}  // namespace berth::simulation
