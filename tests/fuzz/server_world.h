// A berthd without threads, disk and network: its services, loop and controllers, wired as in App,
// with a store in memory and a clock that steps advance.
#ifndef BERTH_TESTS_FUZZ_SERVER_WORLD_H_
#define BERTH_TESTS_FUZZ_SERVER_WORLD_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/test/default_reactor_test_peer.h>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "berth/config/v1/config.pb.h"
#include "server/audit/audit.h"
#include "server/config/reload.h"
#include "server/controllers/agent_gateway.h"
#include "server/controllers/dispatcher.h"
#include "server/controllers/exec_relay.h"
#include "server/controllers/executor.h"
#include "server/controllers/lease_keeper.h"
#include "server/controllers/log_relay.h"
#include "server/controllers/mig_keeper.h"
#include "server/listeners/watch_hub.h"
#include "server/loop/committer.h"
#include "server/loop/loop.h"
#include "server/services/access_service.h"
#include "server/services/audit_service.h"
#include "server/services/cluster_service.h"
#include "server/services/explain_service.h"
#include "server/services/hyper_node_service.h"
#include "server/services/job_service.h"
#include "server/services/node_service.h"
#include "server/services/queue_service.h"
#include "storage/memory/memory_store.h"
#include "storage/preserved.h"
#include "tests/fuzz/message.h"
#include "tests/fuzz/steps.h"

namespace berth::fuzz {

class StillClock final : public Clock {
 public:
  absl::Time Now() override { return absl::FromUnixSeconds(1'800'000'000) + steady_; }
  absl::Duration Steady() override { return steady_; }
  void Advance(absl::Duration by) { steady_ += by; }

 private:
  absl::Duration steady_ = absl::Hours(1);
};

// Keeps calls until Drain.
class QueueExecutor final : public Executor {
 public:
  void Run(absl::AnyInvocable<void() &&> call) override { calls_.push_back(std::move(call)); }
  bool Drain();  // returns whether there were any

 private:
  std::deque<absl::AnyInvocable<void() &&>> calls_;
};

class RecordingLink final : public AgentLink {
 public:
  void Send(v1::ServerMessage message) override {
    if (!closed) messages.push_back(std::move(message));
  }
  void Close(absl::Status) override { closed = true; }

  std::vector<v1::ServerMessage> messages;
  bool closed = false;
};

// The stream of an agent, well-behaved or not.
struct AgentSlot {
  std::shared_ptr<RecordingLink> link;
  SessionId session = 0;  // 0: no stream
  uint64_t epoch = 0;     // of its last Welcome
  size_t seen = 0;        // number of the link's messages
  uint64_t reports = 0;
};

// A unary call, from its handler to its answer. If BERTH_FUZZ_TELL is set in the environment,
// answers are printed, to show what an input does.
class PendingCall {
 public:
  PendingCall() : peer_(&context_, [this](const grpc::Status& status) { Answer(status); }) {}
  virtual ~PendingCall() = default;
  grpc::CallbackServerContext* context() { return &context_; }
  int answers() const { return answers_; }

 private:
  void Answer(const grpc::Status& status);

  int answers_ = 0;
  grpc::CallbackServerContext context_;
  grpc::testing::DefaultReactorTestPeer peer_;
};

class ServerWorld {
 public:
  explicit ServerWorld(uint32_t store_format = kStoreFormat);
  ~ServerWorld();

  // The operations of steps.
  template <class Service, class Request, class Response>
  void Call(Service& service,
            grpc::ServerUnaryReactor* (Service::*method)(grpc::CallbackServerContext*,
                                                         const Request*, Response*),
            absl::string_view body) {
    struct Typed final : PendingCall {
      Request request;
      Response response;
    };
    auto call = std::make_unique<Typed>();
    ReadMessage(body, &call->request);
    (service.*method)(call->context(), &call->request, &call->response);
    calls_.push_back(std::move(call));
  }
  void Open(uint32_t slot);
  void Close(uint32_t slot);
  // An epoch of 0 is replaced by that of the session.
  void Send(uint32_t slot, v1::AgentMessage message);
  // The agent executes its messages, as a well-behaved one would.
  void Work(uint32_t slot);
  void Watch(const v1::WatchRequest& request);
  void ReadLog(const v1::ReadLog& request);
  void OpenExec(const v1::OpenExec& request);
  void Advance(absl::Duration by);
  void Configure(config::v1::Server config);  // for the next ReloadConfig
  void Hold(bool hold);                       // the disk does not answer
  void Restart();                             // loses what was not on disk

  // Runs turns, writes and effects until nothing is left to do.
  void Settle();
  // Checks the invariants. Aborts the process if one is violated.
  void Check();

  struct Process;
  Process& process() { return *process_; }

 private:
  void Start();
  void Stop();
  bool Step();

  StillClock clock_;
  MemoryStore store_;
  config::v1::Server config_;  // complete
  absl::StatusOr<config::v1::Server> reread_;
  std::unique_ptr<Process> process_;
  std::array<AgentSlot, kSlots> agents_;
  std::vector<std::unique_ptr<PendingCall>> calls_;
  bool hold_ = false;
};

struct ServerWorld::Process {
  explicit Process(ServerWorld& world);
  ~Process();

  Preserved preserved;
  RequestTable requests{100};
  TurnEdits edits;
  Live<JobDefaults> defaults;
  Policies policies;
  std::unique_ptr<SyncCommitter> committer;
  std::unique_ptr<Loop> loop;
  const ClusterState* state = nullptr;  // one thread: no lock needed
  QueueExecutor executor;
  std::unique_ptr<LeaseKeeper> leases;
  std::unique_ptr<Dispatcher> dispatcher;
  std::unique_ptr<AgentGateway> gateway;
  std::unique_ptr<LogRelay> logs;
  std::unique_ptr<ExecRelay> execs;
  std::unique_ptr<WatchHub> watches;
  std::unique_ptr<MigKeeper> migs;
  std::unique_ptr<Reloader> reloader;
  CallerBook callers;
  std::unique_ptr<OpenStreams> streams;
  UserShares shares{{.requests = 1000, .jobs = 100'000, .streams = 1000}};
  OwnedJobs owned{0};
  ServiceContext context;
  std::unique_ptr<JobService> jobs;
  std::unique_ptr<QueueService> queues;
  std::unique_ptr<NodeService> nodes;
  std::unique_ptr<Maintenance> maintenance;
  std::unique_ptr<ClusterService> cluster;
  std::unique_ptr<ExplainService> explain;
  std::unique_ptr<HyperNodeService> hyper_nodes;
  std::unique_ptr<AccessService> access;
  std::unique_ptr<Audit> audit;
  std::unique_ptr<AuditService> audits;
  std::vector<WatchHub::WatcherId> to_acknowledge;  // watchers with unacknowledged responses
};

// Runs the steps of an input, each followed by Settle.
void RunSteps(ServerWorld& world, const std::vector<Step>& steps);

}  // namespace berth::fuzz

#endif  // BERTH_TESTS_FUZZ_SERVER_WORLD_H_
