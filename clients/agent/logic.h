// The agent of one node as a state machine: events in, calls to the small interfaces out.
//
//   Connect, Hello -> Welcome(epoch, lease) -> heartbeats, reports | Prepare, Start,
//   Kill, ReadLog, OpenExec
//        ^                                                        |
//        '---------- back-off with full jitter <------ OnDisconnected, Refused, silence
//
// The lease counts on the steady clock from when the acknowledged heartbeat was *sent* (Hello
// counts as the first). When it lapses, strict tasks are killed, regardless of the connection; the
// supervisors know the deadline too, and enforce it while no agent runs.
//
// No thread, clock, randomness or IO: a simulation runs thousands of these from one seed. Not
// thread-safe; calls must not nest.
#ifndef BERTH_CLIENTS_AGENT_LOGIC_H_
#define BERTH_CLIENTS_AGENT_LOGIC_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/journal_state.h"
#include "clients/agent/log_pump.h"
#include "clients/agent/progress_sender.h"
#include "clients/agent/task_book.h"
#include "clients/cpp/retry.h"
#include "support/random.h"

namespace berth {

// If a Welcome comes from another store, or another incarnation of it, foreign tasks are fenced
// first, and the agent registers when they are gone, at the latest after kForeignTimeout. Only
// then does the server treat them as gone and restart the tasks with the same names.
//
// kReconnect: well within a lease, so that a server that returns in time finds the agent before the
// agent has to kill its strict tasks.
inline constexpr RetryPolicy kReconnect = {.first_backoff = absl::Milliseconds(250),
                                           .max_backoff = absl::Seconds(2)};
// Of an agent with several servers, which asks one that answers at once who leads.
inline constexpr RetryPolicy kReconnectToSeveral = {.first_backoff = absl::Milliseconds(250),
                                                    .max_backoff = absl::Seconds(1)};
// At most half the lease, which counts from Hello: a later Welcome leaves almost none of it.
inline constexpr absl::Duration kMaxHelloTimeout = absl::Seconds(10);
inline constexpr absl::Duration kForeignTimeout = absl::Minutes(1);  // twice their grace
// The longest lease that the agent accepts: no planned outage of the server is longer.
inline constexpr absl::Duration kLongestLease = absl::Hours(24);
inline constexpr absl::Duration kKeptFilesInterval = absl::Seconds(30);
inline constexpr absl::Duration kKeptFilesSoon = absl::Seconds(5);  // after a task has ended
inline constexpr int kMaxKeptFiles = 1000;                          // jobs in a message

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
  // State found on disk. lease_deadline: on the steady clock of this boot, if a lease was granted
  // in it.
  struct Recovered {
    JournalState journal;
    bool rebooted = false;
    std::optional<absl::Duration> lease_deadline;
  };

  AgentLogic(Options options, ServerLink& link, Journal& journal, TaskRunner& runner,
             LogSource& logs, Random& random);

  // Call once, first: adopts recovered tasks and connects.
  void Begin(Instant now, const Recovered& recovered);
  void OnServerMessage(Instant now, const v1::ServerMessage& message);
  void OnDisconnected(Instant now, absl::string_view reason);
  void OnTaskEvent(Instant now, const TaskEvent& event);
  // Before Begin: sets the runner of commands inside tasks. Without one, they fail with an error.
  void SetExecRunner(ExecRunner* execs) { execs_ = execs; }
  // Before Begin: sets the divider of GPUs. Without one, the server's requests are ignored.
  void SetGpuDivider(GpuDivider* divider) { divider_ = divider; }
  // Before Begin: sets the source of what tasks report. Without one, nothing of it is sent.
  void SetNoticeSource(NoticeSource* source) { progress_.SetSource(source); }
  // Before Begin: sets what jobs keep here. Without it, nothing is removed.
  void SetKeptFiles(KeptFiles* kept) { kept_ = kept; }
  // Before Begin: sets the node's images. Without it, none is reported or pulled in advance.
  void SetImages(NodeImageSource* images) { images_ = images; }
  void OnExecOutput(v1::ExecOutput output);
  // How busy each GPU is now, in percent, by UUID.
  void SetDeviceUse(Instant now, const std::map<std::string, int64_t>& percent) {
    progress_.SetDeviceUse(now, percent);
  }
  // Running tasks of interactive jobs, and which of them are not used.
  std::vector<TaskId> InteractiveTasks() const { return progress_.Interactive(); }
  void SetUnusedTasks(Instant now, const std::set<TaskId>& unused) {
    progress_.SetUnused(now, unused);
  }
  // All conditions of the node; reported at once, and after each registration.
  void SetConditions(v1::NodeConditions conditions);
  // The node's inventory from now on. The server gets it by a new registration: if the agent is
  // registered, this ends the connection, and with it followed logs and commands inside tasks, but
  // no task.
  void SetInventory(Instant now, v1::NodeInventory inventory);
  // Registers on a new connection. Tasks go on; commands inside them end.
  void Reconnect(Instant now);
  // Does what is due. Call at NextWake or earlier; extra calls do no harm.
  void Tick(Instant now);
  absl::Duration NextWake() const;  // on the steady clock

  const StoreMembership& store() const { return book_.store(); }
  bool registered() const { return state_ == State::kRegistered; }
  uint64_t epoch() const { return epoch_; }
  size_t live_tasks() const { return book_.live(); }
  // Whether a task has the device, or waits for it.
  bool DeviceInUse(const std::string& uuid) const { return book_.DeviceInUse(uuid); }
  // The devices of the task, by uuid; none if it is unknown.
  std::vector<std::string> DevicesOf(const TaskId& id) const { return book_.DevicesOf(id); }
  // Why the last connection ended; for the log.
  const std::string& last_error() const { return last_error_; }
  // Not OK: the journal failed; end the process (tasks keep running) and restart.
  const absl::Status& fatal() const { return book_.fatal(); }

 private:
  enum class State { kWaiting, kHelloSent, kRegistered };
  struct Sent {
    uint64_t sequence;
    absl::Duration when;
  };

  void Connect(Instant now);
  bool Obey(Instant now, const absl::Status& term);
  void OnWelcome(Instant now, const v1::ServerMessage& message);
  bool Join(Instant now, const v1::ServerMessage& message);
  bool IsOurs(const v1::TaskKey& key) const {
    return key.incarnation() == book_.store().incarnation;
  }
  bool ForeignEnded() const { return foreign_until_.has_value() && book_.foreign_live() == 0; }
  void RefuseLog(const v1::ReadLog& request);
  void OnRefused(Instant now, const v1::Refused& refused);
  void OnHeartbeatAck(Instant now, const v1::HeartbeatAck& ack);
  void OnTaskMessage(Instant now, const v1::ServerMessage& message);
  void SendHeartbeat(Instant now);
  // Takes the last lease that the server granted, of this length, counted from when that message
  // was sent. False: it is shorter than the current lease, and the supervisors could not be
  // updated, or it had already expired: then the longer one remains in force.
  bool TakeLease(Instant now, absl::Duration from, absl::Duration length);
  // Older supervisors only read a near deadline: moves it forward during a long lease.
  void StepLease(Instant now);
  // How long an unacknowledged heartbeat proves nothing about the server. With several servers one
  // third of a lease: another may lead, and be found before the lease ends.
  absl::Duration Patience() const { return link_.servers() > 1 ? lease_ / 3 : lease_; }
  void CheckLease(Instant now);
  bool LeaseHolds(Instant now) const;
  void Retry(Instant now, absl::Duration at_least, absl::string_view reason);
  void Send(v1::AgentMessage message);
  void SendReport(const v1::TaskReport& report);
  void SendConditions();
  void SendLastProgress();
  void SendKeptFiles(Instant now);
  void DropFiles(const v1::DropFiles& request);
  void SendImages(Instant now);
  bool SendsProgress() const { return state_ == State::kRegistered && takes_progress_; }
  void OpenExec(const v1::OpenExec& request);

  const Options options_;
  ServerLink& link_;
  TaskRunner& runner_;
  Random& random_;
  TaskBook book_;
  ProgressSender progress_;
  LogPump pump_;
  ExecRunner* execs_ = nullptr;
  GpuDivider* divider_ = nullptr;
  KeptFiles* kept_ = nullptr;
  NodeImageSource* images_ = nullptr;
  v1::NodeInventory inventory_;
  std::optional<v1::NodeConditions> conditions_;  // absent: not checked yet

  State state_ = State::kWaiting;
  std::string last_error_;
  uint64_t epoch_ = 0;
  bool takes_progress_ = false;  // the server does
  bool takes_kept_files_ = false;
  absl::Duration kept_files_at_;  // next message about them
  bool takes_images_ = false;
  absl::Duration images_at_;                // next look at them
  std::optional<std::string> sent_images_;  // in this registration
  Backoff backoff_;
  absl::Duration deadline_;  // of the current state: when to reconnect, or give up on Hello
  absl::Duration heartbeat_at_;
  absl::Duration heartbeat_interval_ = absl::Seconds(5);
  absl::Duration lease_ = absl::Seconds(15);
  absl::Duration hello_sent_;
  uint64_t heartbeat_sequence_ = 0;
  std::deque<Sent> unacked_heartbeats_;
  Sent last_acked_{0, absl::ZeroDuration()};      // sequence 0: Hello, acknowledged by Welcome
  std::optional<absl::Duration> lease_deadline_;  // of the last lease
  absl::Duration held_ = absl::Seconds(15);       // its length
  absl::Duration legacy_deadline_;                // the deadline for older supervisors
  bool fenced_ = false;                           // the last lapse was handled
  std::optional<absl::Duration> foreign_until_;   // the wait for foreign tasks ends
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_LOGIC_H_
