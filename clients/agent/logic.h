// The agent of one node as a state machine: events in, calls of the small interfaces out.
//
//   Connect, Hello -> Welcome(epoch, lease) -> heartbeats, reports | Prepare, Start,
//   Kill, ReadLog, OpenExec
//        ^                                                        |
//        '---------- back-off with full jitter <------ OnDisconnected, Refused, silence
//
// The lease counts on the steady clock from when the heartbeat that was acked was *sent* (Hello
// counts as the first one). When it lapses, strict tasks are killed, whatever the connection looks
// like; the supervisors know the deadline too, and keep it while no agent runs.
//
// No thread, clock, randomness or IO of its own: a simulation runs thousands from one seed. Not
// thread-safe; calls must not nest.
#ifndef BERTH_CLIENTS_AGENT_LOGIC_H_
#define BERTH_CLIENTS_AGENT_LOGIC_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/journal_state.h"
#include "clients/agent/log_pump.h"
#include "clients/agent/task_book.h"
#include "clients/cpp/retry.h"
#include "support/random.h"

namespace berth {

// A Welcome of another store, or of another incarnation of it: foreign tasks are fenced first, and
// the agent registers when they are gone, at the latest after kForeignPatience. Only then does the
// server take them for gone, and start again what it had under the same names.
//
// Well within a lease: a server that comes back in time must find the agent before the agent has to
// kill its strict tasks.
inline constexpr RetryPolicy kReconnect = {.first_backoff = absl::Milliseconds(250),
                                           .max_backoff = absl::Seconds(2)};
// And no more than half the lease, which counts from Hello: a Welcome that comes later brings next
// to nothing of it.
inline constexpr absl::Duration kMaxHelloTimeout = absl::Seconds(10);
inline constexpr absl::Duration kForeignPatience = absl::Minutes(1);  // twice their grace
// No server is away for longer: whatever one grants, this is what the agent takes.
inline constexpr absl::Duration kLongestLease = absl::Hours(24);

class AgentLogic {
 public:
  struct Options {
    std::string node;
    std::string agent_id;
    std::string boot_id;
    std::string version;
    v1::NodeInventory inventory;
    absl::Duration keep_ended = absl::Hours(24);
  };
  // What was found on disk. lease_deadline: on the steady clock of this boot, if one was ever
  // granted in it.
  struct Recovered {
    JournalState journal;
    bool rebooted = false;
    std::optional<absl::Duration> lease_deadline;
  };

  AgentLogic(Options options, ServerLink& link, Journal& journal, TaskRunner& runner,
             LogSource& logs, Random& random);

  // Once, first: adopts what is there and connects.
  void Begin(Instant now, const Recovered& recovered);
  void OnServerMessage(Instant now, const v1::ServerMessage& message);
  void OnDisconnected(Instant now, absl::string_view reason);
  void OnTaskEvent(Instant now, const TaskEvent& event);
  // Before Begin: who runs commands inside tasks. Without, they are answered with an error.
  void SetExecRunner(ExecRunner* execs) { execs_ = execs; }
  // Before Begin: who divides GPUs. Without, the server's wishes are passed over.
  void SetGpuDivider(GpuDivider* divider) { divider_ = divider; }
  void OnExecOutput(v1::ExecOutput output);
  // All that is wrong with the node; told at once, and after each registration.
  void SetConditions(v1::NodeConditions conditions);
  // What the node has from now on. The server learns it by a new registration: of an agent that has
  // one this ends the connection, and with it the logs that are followed and the commands inside
  // tasks, but no task.
  void SetInventory(Instant now, v1::NodeInventory inventory);
  // Does what is due. To be called at NextWake, or earlier; more often does no harm.
  void Tick(Instant now);
  absl::Duration NextWake() const;  // on the steady clock

  const StoreMembership& store() const { return book_.store(); }
  bool registered() const { return state_ == State::kRegistered; }
  uint64_t epoch() const { return epoch_; }
  size_t live_tasks() const { return book_.live(); }
  // Some task has the device, or waits for it.
  bool DeviceInUse(const std::string& uuid) const { return book_.DeviceInUse(uuid); }
  // Why the last connection ended; for the log.
  const std::string& last_error() const { return last_error_; }
  // Not OK: the journal failed; end the process (tasks live on) and start again.
  const absl::Status& fatal() const { return book_.fatal(); }

 private:
  enum class State { kWaiting, kHelloSent, kRegistered };
  struct Sent {
    uint64_t sequence;
    absl::Duration when;
  };

  void Connect(Instant now);
  void OnWelcome(Instant now, const v1::Welcome& welcome);
  bool Join(Instant now, const v1::Welcome& welcome);
  bool IsOurs(const v1::TaskKey& key) const {
    return key.incarnation() == book_.store().incarnation;
  }
  bool ForeignEnded() const { return foreign_until_.has_value() && book_.foreign_live() == 0; }
  void RefuseLog(const v1::ReadLog& request);
  void OnRefused(Instant now, const v1::Refused& refused);
  void OnHeartbeatAck(Instant now, const v1::HeartbeatAck& ack);
  void OnTaskMessage(Instant now, const v1::ServerMessage& message);
  void SendHeartbeat(Instant now);
  // The lease that the server granted last, of this length, from when that message was sent. False:
  // it is shorter than what the agent holds, and could not be told to the supervisors, or was over
  // when it came: then the longer one holds.
  bool TakeLease(Instant now, absl::Duration from, absl::Duration length);
  // Older supervisors look at the near end of a long lease only: moves it on.
  void StepLease(Instant now);
  void CheckLease(Instant now);
  bool LeaseHolds(Instant now) const;
  void Retry(Instant now, absl::Duration at_least, absl::string_view reason);
  void Send(v1::AgentMessage message);
  void SendReport(const v1::TaskReport& report);
  void SendConditions();
  void OpenExec(const v1::OpenExec& request);

  const Options options_;
  ServerLink& link_;
  TaskRunner& runner_;
  Random& random_;
  TaskBook book_;
  LogPump pump_;
  ExecRunner* execs_ = nullptr;
  GpuDivider* divider_ = nullptr;
  v1::NodeInventory inventory_;
  std::optional<v1::NodeConditions> conditions_;  // absent: nobody has looked yet

  State state_ = State::kWaiting;
  std::string last_error_;
  uint64_t epoch_ = 0;
  Backoff backoff_;
  absl::Duration deadline_;  // of the present state: reconnect at, give up Hello at
  absl::Duration heartbeat_at_;
  absl::Duration heartbeat_interval_ = absl::Seconds(5);
  absl::Duration lease_ = absl::Seconds(15);
  absl::Duration hello_sent_;
  uint64_t heartbeat_sequence_ = 0;
  std::deque<Sent> unacked_heartbeats_;
  Sent last_acked_{0, absl::ZeroDuration()};      // sequence 0: Hello, by Welcome
  std::optional<absl::Duration> lease_deadline_;  // of the last lease
  absl::Duration held_ = absl::Seconds(15);       // its length
  absl::Duration told_soon_;                      // what older supervisors go by
  bool fenced_ = false;                           // what the last lapse demands was done
  std::optional<absl::Duration> foreign_until_;   // foreign tasks are waited for
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_LOGIC_H_
