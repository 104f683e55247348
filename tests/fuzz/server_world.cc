#include "tests/fuzz/server_world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/model/apply.h"
#include "core/model/state_editor.h"
#include "server/config/config.h"
#include "server/config/scheduling.h"
#include "server/convert/values.h"
#include "server/loop/load.h"
#include "server/planning/policy_record.h"
#include "storage/load.h"

namespace berth::fuzz {
namespace {

constexpr int kMostRounds = 2000;  // of turns for one step; more indicate an endless loop
constexpr int kMostTicks = 40;     // of one Advance
constexpr size_t kMostWatchers = 8;

// Small limits, so that one input cannot request minutes of planning.
config::v1::Server SmallConfig() {
  config::v1::Server config;
  config.mutable_limits()->set_tasks_per_job(100);
  config.mutable_limits()->set_jobs_per_call(20);
  config.mutable_limits()->set_active_jobs(200);
  config.mutable_limits()->set_execs(2);
  config.mutable_limits()->set_log_followers(2);
  config.mutable_log()->set_level("error");
  config::v1::RunAs& rule = *config.add_run_as();
  rule.set_user("a");
  rule.set_without_tls(true);
  // Whoever calls may do everything, also once rules are enforced.
  config.mutable_access()->mutable_without_tls()->set_user("root");
  config.mutable_access()->mutable_administrators()->add_users("root");
  BERTH_CHECK(CompleteConfig(config).ok());
  return config;
}

void Must(const absl::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  std::abort();
}

// Drops all data; checks that nothing arrives after the end.
class DeafReader final : public LogReader {
 public:
  void OnChunk(v1::LogChunk) override { BERTH_CHECK(!ended_); }
  void OnEnd(absl::Status) override {
    BERTH_CHECK(!ended_);
    ended_ = true;
  }

 private:
  bool ended_ = false;
};

class DeafPeer final : public ExecPeer {
 public:
  void OnOutput(v1::ExecOutput output) override {
    BERTH_CHECK(!ended_);
    ended_ = output.end();
  }
  void OnGone(absl::Status) override {
    BERTH_CHECK(!ended_);
    ended_ = true;
  }

 private:
  bool ended_ = false;
};

class Watcher final : public WatchSink {
 public:
  Watcher(ServerWorld::Process* process, WatchHub::WatcherId id) : process_(process), id_(id) {}
  void Send(v1::WatchResponse) override { process_->to_acknowledge.push_back(id_); }
  void Finish(const absl::Status&) override {}

 private:
  ServerWorld::Process* const process_;
  const WatchHub::WatcherId id_;
};

}  // namespace

void PendingCall::Answer(const grpc::Status& status) {
  static const bool tell = std::getenv("BERTH_FUZZ_TELL") != nullptr;
  if (tell)
    std::fprintf(stderr, "answer %d %s\n", status.error_code(), status.error_message().c_str());
  ++answers_;
}

bool QueueExecutor::Drain() {
  const bool any = !calls_.empty();
  while (!calls_.empty()) {
    auto call = std::move(calls_.front());
    calls_.pop_front();
    std::move(call)();
  }
  return any;
}

// Like App::Load and App::Wire.
ServerWorld::Process::Process(ServerWorld& world)
    : defaults(JobDefaultsFrom(world.config_)), callers(world.config_.access()) {
  ClusterState loaded;
  Must(Load(
           world.store_, loaded,
           [this](StoredRequest request) { requests.Restore(std::move(request)); }, &preserved),
       "the store does not load");
  policies = Policies::Create(PolicyConfigFrom(world.config_)).value();
  committer = std::make_unique<SyncCommitter>(
      &world.store_, SyncCommitter::Mode::kOnFlush,
      [](const absl::Status& status) { Must(status, "the store failed"); });
  loop = std::make_unique<Loop>(LoopDeps{.clock = &world.clock_,
                                         .committer = committer.get(),
                                         .policies = &policies,
                                         .policy_record = PolicyRecordFrom(world.config_),
                                         .preserved = &preserved},
                                std::move(loaded), world.store_.LastSequence());
  state = loop->Read([](const ClusterState& read, uint64_t) { return &read; });
  LeaseOptions leasing;
  leasing.granted_before = ReadGrantedLease(world.store_).value();
  leases = std::make_unique<LeaseKeeper>(loop.get(), &world.clock_, leasing);
  dispatcher = std::make_unique<Dispatcher>(&world.store_, &executor, &world.clock_);
  gateway = std::make_unique<AgentGateway>(loop.get(), leases.get(), dispatcher.get());
  dispatcher->SetGateway(gateway.get());
  logs = std::make_unique<LogRelay>(gateway.get(), 2);
  gateway->SetLogSink(logs.get());
  execs = std::make_unique<ExecRelay>(gateway.get(), 2);
  gateway->SetExecSink(execs.get());
  watches = std::make_unique<WatchHub>(&world.store_, &executor, world.store_.LastSequence(),
                                       WatchOptions{.watchers = kMostWatchers, .ring_turns = 4});
  loop->AddObserver(dispatcher.get());
  migs = std::make_unique<MigKeeper>(loop.get(), gateway.get());
  loop->AddListener(watches.get());
  reloader = std::make_unique<Reloader>(
      world.config_, [&world] { return world.reread_; },
      [this](const config::v1::Server& config) {
        loop->SetPolicies(
            std::make_shared<const Policies>(Policies::Create(PolicyConfigFrom(config)).value()),
            PolicyRecordFrom(config));
        defaults.Set(JobDefaultsFrom(config));
      });
  streams = std::make_unique<OpenStreams>(loop.get(), &executor);
  loop->AddListener(streams.get());
  context = {.loop = loop.get(),
             .store = &world.store_,
             .clock = &world.clock_,
             .requests = &requests,
             .edits = &edits,
             .callers = &callers,
             .streams = streams.get(),
             .shares = &shares,
             .owned = &owned,
             .limits = world.config_.limits(),
             .run_as = world.config_.run_as(),
             .defaults = &defaults};
  jobs = std::make_unique<JobService>(&context, logs.get(), execs.get(), &executor);
  queues = std::make_unique<QueueService>(&context);
  nodes = std::make_unique<NodeService>(&context);
  maintenance =
      std::make_unique<Maintenance>(loop.get(), leases.get(), gateway.get(), MaintenanceOptions{});
  cluster = std::make_unique<ClusterService>(
      &context, world.clock_.Now(), reloader.get(), maintenance.get(),
      ClusterService::Backups{.store = &world.store_,
                              .executor = &executor,
                              // Exists; this store makes no backups.
                              .directory = "/"});
  explain = std::make_unique<ExplainService>(&context);
  hyper_nodes = std::make_unique<HyperNodeService>(&context);
  access = std::make_unique<AccessService>(&context);
  audit = std::make_unique<Audit>("", AuditLimits(), &world.store_, &executor, &world.clock_);
  audits = std::make_unique<AuditService>(&context, audit.get());
  leases->Start();
}

ServerWorld::Process::~Process() {
  gateway->DisconnectAll(absl::UnavailableError("the server is stopping"));
  executor.Drain();
  loop.reset();  // answers what waits for the disk
  executor.Drain();
}

ServerWorld::ServerWorld(uint32_t store_format)
    : store_("fuzzed", store_format), config_(SmallConfig()), reread_(config_) {
  Start();
}

ServerWorld::~ServerWorld() { Stop(); }

void ServerWorld::Start() {
  process_ = std::make_unique<Process>(*this);
  Settle();
}

void ServerWorld::Stop() {
  for (uint32_t slot = 0; slot < kSlots; ++slot) Close(slot);
  process_->committer->Crash(0);
  process_.reset();
  for (const auto& call : calls_) BERTH_CHECK(call->answers() == 1);
  calls_.clear();
}

void ServerWorld::Restart() {
  Stop();
  hold_ = false;
  Start();
}

void ServerWorld::Open(uint32_t slot) {
  Close(slot);
  AgentSlot& agent = agents_[slot];
  agent.link = std::make_shared<RecordingLink>();
  agent.seen = 0;
  agent.epoch = 0;
  agent.session = process_->gateway->OnConnect(agent.link);
}

void ServerWorld::Close(uint32_t slot) {
  AgentSlot& agent = agents_[slot];
  if (agent.session != 0) process_->gateway->OnClosed(std::exchange(agent.session, 0));
}

void ServerWorld::Send(uint32_t slot, v1::AgentMessage message) {
  AgentSlot& agent = agents_[slot];
  if (agent.session == 0) Open(slot);
  if (message.epoch() == 0 && !message.has_hello()) message.set_epoch(agent.epoch);
  process_->gateway->OnMessage(agent.session, std::move(message));
}

void ServerWorld::Work(uint32_t slot) {
  AgentSlot& agent = agents_[slot];
  if (agent.session == 0) return;
  const std::vector<v1::ServerMessage> messages(
      agent.link->messages.begin() + static_cast<int64_t>(agent.seen), agent.link->messages.end());
  agent.seen = agent.link->messages.size();
  const auto report = [&](const v1::TaskKey& key, v1::TaskReport::State state) {
    v1::AgentMessage answer;
    answer.mutable_report()->set_report_id(++agent.reports);
    *answer.mutable_report()->mutable_key() = key;
    answer.mutable_report()->set_state(state);
    if (state == v1::TaskReport::PREPARED) answer.mutable_report()->set_reserved_port(20000);
    Send(slot, std::move(answer));
  };
  for (const v1::ServerMessage& message : messages) {
    if (agent.session == 0) return;
    if (message.has_prepare()) report(message.prepare().key(), v1::TaskReport::PREPARED);
    if (message.has_prepare() && message.prepare().start_at_once())
      report(message.prepare().key(), v1::TaskReport::RUNNING);
    if (message.has_start()) report(message.start().key(), v1::TaskReport::RUNNING);
    if (message.has_kill()) report(message.kill().key(), v1::TaskReport::EXITED);
  }
}

void ServerWorld::Watch(const v1::WatchRequest& request) {
  const WatchHub::WatcherId id = process_->watches->NewId();
  process_->watches->Add(id, request, std::make_shared<Watcher>(process_.get(), id));
}

void ServerWorld::ReadLog(const v1::ReadLog& request) {
  const NodeId node{static_cast<uint32_t>(request.request() % 4)};
  const auto opened =
      process_->logs->Open({.node = node,
                            .task = {JobId{request.key().job_uid()}, request.key().task()},
                            .attempt = request.key().attempt(),
                            .stream = request.stream(),
                            .tail_lines = request.tail_lines(),
                            .from = request.from(),
                            .follow = request.follow()},
                           std::make_shared<DeafReader>());
  if (opened.ok() && request.key().task() == 1) process_->logs->Cancel(*opened);
}

void ServerWorld::OpenExec(const v1::OpenExec& request) {
  const NodeId node{static_cast<uint32_t>(request.request() % 4)};
  const auto opened = process_->execs->Open(node, request, std::make_shared<DeafPeer>());
  if (opened.ok() && request.key().task() == 1) process_->execs->Cancel(*opened);
}

void ServerWorld::Advance(absl::Duration by) {
  by = std::clamp(by, absl::ZeroDuration(), absl::Hours(48));
  const absl::Duration step = std::max(process_->leases->TickPeriod(), by / kMostTicks);
  for (; by > absl::ZeroDuration(); by -= step) {
    clock_.Advance(std::min(by, step));
    process_->leases->Tick();
    process_->migs->Tick();
    process_->loop->ExpireReaders();
    Settle();
  }
}

void ServerWorld::Configure(config::v1::Server config) {
  *config.mutable_limits() = config_.limits();
  config.mutable_log()->set_level("error");
  const absl::Status status = CompleteConfig(config);
  reread_ = status.ok() ? absl::StatusOr<config::v1::Server>(std::move(config)) : status;
}

void ServerWorld::Hold(bool hold) { hold_ = hold; }

bool ServerWorld::Step() {
  bool busy = process_->loop->RunTurn() == TurnResult::kWorked;
  if (!hold_ && process_->committer->Backlog() > 0) {
    process_->committer->Flush();
    busy = true;
  }
  busy = process_->executor.Drain() || busy;
  for (const WatchHub::WatcherId id : std::exchange(process_->to_acknowledge, {})) {
    process_->watches->Written(id);
    busy = true;
  }
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    AgentSlot& agent = agents_[slot];
    if (agent.session == 0) continue;
    for (const v1::ServerMessage& message : agent.link->messages)
      if (message.has_welcome()) agent.epoch = message.welcome().epoch();
    if (agent.link->closed) Close(slot);
  }
  return busy;
}

void ServerWorld::Settle() {
  for (int round = 0; Step(); ++round) BERTH_CHECK(round < kMostRounds);
}

void ServerWorld::Check() {
  hold_ = false;
  Settle();
  const ClusterState& live = *process_->state;
  Must(CheckConsistency(live), "the state is not consistent");
  for (const auto& call : calls_) BERTH_CHECK(call->answers() == 1);
  ClusterState loaded, folded;
  Must(LoadState(
           store_, loaded, [](StoredRequest) {}, nullptr)
           .status(),
       "the store does not load");
  Must(CheckConsistency(loaded), "the loaded state is not consistent");
  BERTH_CHECK(Fingerprint(loaded) == Fingerprint(live));
  Must(LoadEarliest(store_, folded).status(), "the log does not begin");
  const std::vector<LogEntry> log = store_.ReadLog(0, SIZE_MAX).value();
  for (const LogEntry& entry : log) {
    const LoggedTurn turn = DecodeTurn(entry.turn).value();
    for (const Event& event : turn.events)
      Must(Apply(folded, event), "an event of the log does not apply");
    folded.StampDirty(entry.sequence);
    folded.TakeDirty();
  }
  BERTH_CHECK(Fingerprint(folded) == Fingerprint(live));
}

}  // namespace berth::fuzz
