// One agent's logic with fakes around it, and a clock that the test controls.
#ifndef BERTH_TESTS_UNIT_AGENT_LOGIC_WORLD_H_
#define BERTH_TESTS_UNIT_AGENT_LOGIC_WORLD_H_

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clients/agent/logic.h"
#include "tests/unit/agent/fakes.h"

namespace berth::testing {

inline v1::TaskKey Key(uint64_t uid, uint32_t attempt = 1) { return ToKey({uid, 0, attempt}); }
inline TaskId Id(uint64_t uid, uint32_t attempt = 1) { return {uid, 0, attempt}; }
// Keys of one incarnation.
inline TaskId IdOf(uint64_t incarnation, uint64_t uid) { return {uid, 0, 1, incarnation}; }
inline v1::TaskKey KeyOf(uint64_t incarnation, uint64_t uid) {
  return ToKey(IdOf(incarnation, uid));
}

// One agent whose clock the test controls.
struct Agent {
  explicit Agent(FakeJournal* disk = nullptr)
      : runner(disk != nullptr ? disk : &own), journal(disk != nullptr ? *disk : own) {}

  void Begin(bool rebooted = false, std::optional<absl::Duration> lease = std::nullopt) {
    v1::NodeInventory inventory;
    for (const char* uuid : {"gpu-0", "gpu-1"}) {
      inventory.add_devices()->set_uuid(uuid);
      inventory.mutable_devices()->rbegin()->set_kind("gpu");
    }
    logic = std::make_unique<AgentLogic>(AgentLogic::Options{.node = "n1",
                                                             .agent_id = "a",
                                                             .boot_id = "b",
                                                             .version = "1",
                                                             .inventory = inventory,
                                                             .keep_ended = absl::Hours(1)},
                                         link, journal, runner, logs, random);
    logic->Begin(Now(), {.journal = journal.state, .rebooted = rebooted, .lease_deadline = lease});
  }
  // A message of a server that leads in `term`.
  void Tell(v1::ServerMessage message) {
    message.set_term(term);
    logic->OnServerMessage(Now(), message);
  }
  void Welcome(uint64_t epoch = 7, std::vector<v1::TaskKey> forget = {}) {
    v1::ServerMessage message;
    message.mutable_welcome()->set_epoch(epoch);
    message.mutable_welcome()->set_cluster_id(cluster);
    message.mutable_welcome()->set_incarnation(incarnation);
    message.mutable_welcome()->set_node_id(node_id);
    message.mutable_welcome()->mutable_lease()->set_seconds(15);
    message.mutable_welcome()->mutable_heartbeat_interval()->set_seconds(5);
    for (const auto& key : forget) *message.mutable_welcome()->add_forget() = key;
    Tell(message);
  }
  void Register() {
    Begin();
    Welcome();
    link.sent.clear();
  }
  void Prepare(v1::TaskKey key, bool at_once = false, bool fence = true,
               std::vector<std::string> devices = {}, std::vector<int> shares = {}) {
    v1::ServerMessage message;
    *message.mutable_prepare()->mutable_key() = key;
    message.mutable_prepare()->set_start_at_once(at_once);
    v1::TaskLaunch& launch = *message.mutable_prepare()->mutable_launch();
    launch.add_command("train");
    launch.set_fence(fence);
    launch.mutable_kill_grace()->set_seconds(3);
    for (const auto& uuid : devices) {
      launch.add_device_uuids(uuid);
      launch.add_device_kinds("gpu");
    }
    launch.mutable_device_shares()->Assign(shares.begin(), shares.end());
    Tell(message);
  }
  void Start(v1::TaskKey key) {
    v1::ServerMessage message;
    *message.mutable_start()->mutable_key() = key;
    message.mutable_start()->set_master_port(20007);
    Tell(message);
  }
  void Kill(v1::TaskKey key) {
    v1::ServerMessage message;
    *message.mutable_kill()->mutable_key() = key;
    message.mutable_kill()->mutable_grace()->set_seconds(2);
    message.mutable_kill()->set_signal("SIGUSR1");
    message.mutable_kill()->set_reason("cancelled");
    Tell(message);
  }
  void Ack(uint64_t report) {
    v1::ServerMessage message;
    message.mutable_report_ack()->set_report_id(report);
    Tell(message);
  }
  void AckHeartbeat(uint64_t sequence) {
    v1::ServerMessage message;
    message.mutable_heartbeat_ack()->set_sequence(sequence);
    Tell(message);
  }
  void Event(TaskId id, TaskEvent::Kind kind, int code = 0) {
    TaskEvent event;
    event.id = id;
    event.kind = kind;
    event.exit_code = code;
    event.port = kind == TaskEvent::Kind::kPrepared ? 20001 : 0;
    logic->OnTaskEvent(Now(), event);
  }
  void RunTask(uint64_t uid) {
    Prepare(Key(uid), true);
    Event(Id(uid), TaskEvent::Kind::kPrepared);
    Event(Id(uid), TaskEvent::Kind::kRunning);
  }
  // Advances from wake to wake, as a loop would.
  void Advance(absl::Duration by) {
    const absl::Duration end = now + by;
    while (logic->NextWake() <= end) {
      now = std::max(now, logic->NextWake());
      logic->Tick(Now());
    }
    now = end;
    logic->Tick(Now());
  }
  Instant Now() const {
    return {.steady = now, .wall = absl::FromUnixSeconds(1'800'000'000) + now};
  }

  FakeJournal own;
  FakeLink link;
  FakeRunner runner;
  FakeJournal& journal;
  FakeLogs logs;
  Random random{1};
  std::unique_ptr<AgentLogic> logic;
  absl::Duration now = absl::Seconds(100);
  std::string cluster;  // of the server that answers
  uint64_t incarnation = 0;
  uint32_t node_id = 0;
  uint64_t term = 0;
};

inline std::vector<v1::TaskReport> SentReports(Agent& agent) { return agent.link.TakeReports(); }

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_AGENT_LOGIC_WORLD_H_
