// AgentGateway: the server's end of every agent stream. Checks agents' messages, turns them into
// commands, and replies once those are durable. Independent of gRPC, and has no thread.
//
// A stream is one session: Hello -> NodeRegistered with the next epoch -> Welcome. From then on
// only messages with that epoch count. A node has at most one session, its latest. Every message to
// a node names its epoch, so that no decision from before a registration reaches the agent after
// it. The registration resends whatever such a message would have said.
//
// The gateway adds the store's incarnation to every task key that it sends, and ignores reports
// about tasks of other incarnations. The rest of the server knows only one.
//
// Heartbeats never reach the loop: LeaseKeeper answers them.
#ifndef BERTH_SERVER_CONTROLLERS_AGENT_GATEWAY_H_
#define BERTH_SERVER_CONTROLLERS_AGENT_GATEWAY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/v1/agent.pb.h"
#include "server/access/task_caller.h"
#include "server/controllers/agent_link.h"
#include "server/controllers/fabric_health.h"
#include "server/controllers/health_brake.h"
#include "server/controllers/image_book.h"
#include "server/controllers/node_image_keeper.h"
#include "server/controllers/registration.h"
#include "server/loop/loop.h"

namespace berth {

class Dispatcher;
class LeaseKeeper;
class ProgressBook;

struct AgentGatewayOptions {
  absl::Duration heartbeat_interval = absl::Seconds(5);
  absl::Duration busy_retry = absl::Seconds(2);  // when the loop accepts no more
  absl::Duration name_in_use_retry = absl::Seconds(30);
  StoreIdentity store = {};
  // Term of this server's reign, for agents to know an earlier leader by (ServerMessage.term).
  // Null: 0.
  std::function<uint64_t()> term = nullptr;
  // Of the store: what an older one cannot hold is refused, or recorded as older versions would.
  std::function<uint32_t()> store_format = [] { return UINT32_MAX; };
  HealthBrakeLimits brake = {};
  bool fabric_health = true;
};

// Running totals for metrics.
struct AgentCounters {
  std::atomic<uint64_t> registrations{0}, hellos_refused{0}, stale_epochs{0}, reports{0};
  std::atomic<uint64_t> duplicate_reports{0}, unknown_reports{0}, invalid_messages{0};
  std::atomic<uint64_t> heartbeats{0}, messages_sent{0}, messages_dropped{0};
  std::atomic<uint64_t> foreign_reports{0};  // of another incarnation
};

using SessionId = uint64_t;  // never reused; 0 = none

// Receives agents' responses to ReadLog.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void OnLogChunk(SessionId session, v1::LogChunk chunk) = 0;
  virtual void OnSessionGone(SessionId session) = 0;  // nothing more will come from it
};

// Receives agents' messages about commands inside tasks.
class ExecSink {
 public:
  virtual ~ExecSink() = default;
  virtual void OnExecOutput(SessionId session, v1::ExecOutput output) = 0;
  virtual void OnExecSessionGone(SessionId session) = 0;  // nothing more will come from it
};

class AgentGateway {
 public:
  // All outlive the gateway.
  AgentGateway(Loop* loop, LeaseKeeper* leases, Dispatcher* dispatcher,
               AgentGatewayOptions options = {});

  // The stream's side. Thread-safe; calls for one session come one at a time. OnClosed comes last,
  // once, regardless of who ended the stream.
  SessionId OnConnect(std::shared_ptr<AgentLink> link) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnMessage(SessionId session, v1::AgentMessage message) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnClosed(SessionId session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends to the node if its session still has `epoch`. False: dropped.
  bool SendTo(NodeId node, uint64_t epoch, v1::ServerMessage message) ABSL_LOCKS_EXCLUDED(mutex_);
  // The node's session, or 0; and a message to exactly that session. False: it is gone.
  SessionId CurrentSession(NodeId node) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool SendToSession(SessionId session, v1::ServerMessage message) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the node's session if it still has `epoch`: the agent must register again.
  void Disconnect(NodeId node, uint64_t epoch, v1::Refused::Code code, const std::string& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels a job that can never be launched.
  void CancelJob(JobId job, absl::string_view why);
  // Sends the longer lease of a pause to all connected agents that have not confirmed it, without
  // waiting for their heartbeats.
  void GrantLongerLeases() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all sessions, including later ones; for the server's shutdown.
  void DisconnectAll(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);

  // This server leads from now on: former leaders assigned all ids of jobs so far. Before the loop
  // leads.
  void TakeOver();

  // Before the first message.
  void SetLogSink(LogSink* sink) { log_sink_ = sink; }
  void SetExecSink(ExecSink* sink) { exec_sink_ = sink; }
  // Without one, agents are not asked to report progress.
  void SetProgressBook(ProgressBook* book) { progress_book_ = book; }
  // Without them, agents cannot make calls for their tasks.
  void SetTaskKeys(const TaskKeys* keys) { task_keys_ = keys; }
  // How many connected nodes report each condition, by its name.
  std::map<std::string, int64_t> Conditions() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Images that the node holds, as its agent reported them. Null: nothing is known.
  std::shared_ptr<const v1::NodeImages> ImagesOf(NodeId node) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether its agent gets images in advance.
  bool TakesPrefetch(NodeId node) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Nodes whose conditions would cordon or drain them and are only noted for now.
  size_t HeldConditions() const { return brake_.held(); }
  size_t sessions() const ABSL_LOCKS_EXCLUDED(mutex_);
  const AgentCounters& counters() const { return counters_; }

 private:
  using Link = std::shared_ptr<AgentLink>;
  struct Session {
    Link link;
    bool said_hello = false;
    NodeId node;         // once registered
    uint64_t epoch = 0;  // 0 = not registered yet
    std::vector<std::string> conditions = {};
    std::shared_ptr<const v1::NodeImages> images = {};  // null: none reported
    bool takes_prefetch = false;                        // from its Hello
    // From its Hello, until the agent sends a message with its epoch, which proves that the Hello
    // is recent.
    std::vector<MissingTask> missing = {};
  };

  // A copy, because sessions come and go on other threads. Without a link: the session is gone.
  Session Look(SessionId id) const ABSL_LOCKS_EXCLUDED(mutex_);
  void OnHello(SessionId id, const Link& link, v1::Hello hello) ABSL_LOCKS_EXCLUDED(mutex_);
  void Register(Turn& turn, SessionId id, const Link& link, const v1::Hello& hello);
  JobId FirstUnknown(const ClusterState& state, const std::string& agent_id) const;
  void Activate(SessionId id, const Link& link, Registration registration)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The first message with the session's epoch.
  void Confirm(SessionId id) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnHeartbeat(const Session& session, const v1::Heartbeat& heartbeat);
  void OnReport(const Session& session, v1::TaskReport report);
  void ApplyReport(Turn& turn, const Session& session, const v1::TaskReport& report);
  bool CountsImage(Turn& turn, const TaskReported& report, const v1::TaskReport& message);
  void PrepareAgain(Turn& turn, const std::vector<TaskKey>& tasks);
  void RetryImages();
  void OnImages(SessionId id, const Session& session, v1::NodeImages images)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void RecordImages(NodeId node);
  void OnConditions(SessionId id, const Session& session, v1::NodeConditions conditions)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void RetryConditions(NodeId node);
  void CheckFabric();
  void OnProgress(const Session& session, v1::Progress progress);
  void OnKeptFiles(SessionId id, const Session& session, v1::KeptFiles kept);
  void SetIncarnation(v1::ServerMessage* message) const;
  // Every message to an agent goes out here.
  void Deliver(const Link& link, v1::ServerMessage message) const;
  void SendWelcome(const Link& link, const Registration& registration);
  void SendAck(const Link& link, uint64_t report_id);
  void SendHeartbeatAck(const Link& link, uint64_t sequence, absl::Duration longer);
  void Refuse(const Link& link, v1::Refused::Code code, absl::string_view why,
              absl::Duration retry_after = absl::ZeroDuration());

  Loop* const loop_;
  LeaseKeeper* const leases_;
  Dispatcher* const dispatcher_;
  std::atomic<JobId> first_job_;                   // first job id that this server may assign
  absl::flat_hash_set<std::string> known_agents_;  // agents that have registered with this server;
                                                   // loop thread
  const AgentGatewayOptions options_;
  LogSink* log_sink_ = nullptr;
  ExecSink* exec_sink_ = nullptr;
  ProgressBook* progress_book_ = nullptr;
  const TaskKeys* task_keys_ = nullptr;
  AgentCounters counters_;
  HealthBrake brake_;
  ImageBook images_;  // loop thread, but for holds()
  NodeImageKeeper node_images_;
  FabricHealth fabric_;

  mutable absl::Mutex mutex_;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // OK, or why there are no more sessions
  SessionId next_session_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<SessionId, Session> sessions_ ABSL_GUARDED_BY(mutex_);
  // The latest registration with an open session.
  absl::flat_hash_map<NodeId, SessionId> by_node_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_AGENT_GATEWAY_H_
