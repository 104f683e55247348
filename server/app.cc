#include "server/app.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "berth/config/v1/config.pb.h"
#include "core/base/check.h"
#include "core/engine/policies.h"
#include "server/app_options.h"
#include "server/audit/audit.h"
#include "server/commands/default_queue.h"
#include "server/config/config.h"
#include "server/config/live.h"
#include "server/config/reload.h"
#include "server/config/scheduling.h"
#include "server/controllers/agent_gateway.h"
#include "server/controllers/dispatcher.h"
#include "server/controllers/ended_keeper.h"
#include "server/controllers/exec_relay.h"
#include "server/controllers/executor.h"
#include "server/controllers/lease_keeper.h"
#include "server/controllers/log_relay.h"
#include "server/controllers/maintenance.h"
#include "server/controllers/mig_keeper.h"
#include "server/controllers/mix_keeper.h"
#include "server/controllers/progress_book.h"
#include "server/convert/values.h"
#include "server/listeners/event_log.h"
#include "server/listeners/queue_conditions.h"
#include "server/listeners/watch_hub.h"
#include "server/loop/committer.h"
#include "server/loop/history.h"
#include "server/loop/load.h"
#include "server/loop/loop.h"
#include "server/loop/loop_thread.h"
#include "server/metrics/metrics.h"
#include "server/planning/policy_record.h"
#include "server/services/acceptor.h"
#include "server/services/access_service.h"
#include "server/services/agent_service.h"
#include "server/services/audit_service.h"
#include "server/services/caller.h"
#include "server/services/cluster_service.h"
#include "server/services/explain_service.h"
#include "server/services/hyper_node_service.h"
#include "server/services/job_service.h"
#include "server/services/node_service.h"
#include "server/services/open_streams.h"
#include "server/services/queue_service.h"
#include "server/services/stream_guard.h"
#include "server/services/watch_service.h"
#include "server/validation/lifecycle.h"
#include "storage/files.h"
#include "storage/preserved.h"
#include "storage/store_health.h"
#include "support/http/http_server.h"
#include "support/log.h"
#include "support/tls.h"
#include "support/version.h"

namespace berth {
namespace {

// Limits of the gRPC server besides those of the configuration.
constexpr size_t kGrpcMemoryBytes = size_t{1} << 30;
constexpr int kStreamsPerConnection = 10'000;
constexpr absl::Duration kLoopSilence = absl::Seconds(30);   // /healthz fails after this time
constexpr absl::Duration kRecheckPeriod = absl::Seconds(5);  // certificates of streams expire
constexpr absl::Duration kTrimPeriod = absl::Minutes(10);
constexpr absl::Duration kSignOfLife = absl::Seconds(1);
constexpr absl::Duration kFarewell = absl::Milliseconds(250);  // see StopCalls
// Connections are cut this long before gRPC cancels their calls.
constexpr absl::Duration kBeforeCancel = absl::Milliseconds(100);
constexpr absl::Duration kGiveUp = absl::Seconds(1);

}  // namespace

class App::Parts {
 public:
  Parts(const config::v1::Server& config, Reloader::Read reread,
        std::shared_ptr<StoreHealth> health);
  ~Parts() { Stop(); }

  absl::Status Start(const StoreOpener& open_store);
  void Stop();
  Maintenance& maintenance() { return *maintenance_; }
  Reloader& reloader() { return reloader_; }
  int port() const { return port_; }
  int http_port() const { return http_ != nullptr ? http_->port() : 0; }
  Loop& loop() { return *loop_; }
  WatchHub& watches() { return *watches_; }

 private:
  // Refuses settings that the store cannot hold yet.
  Reloader::Read Holdable(Reloader::Read reread) const;

  absl::Status StartHttp();
  absl::Status Load(const StoreOpener& open_store);
  void Wire();
  void WireServices();
  void Adopt(const config::v1::Server& config);
  void MaintainLog();
  void WarnWithoutRules() const;
  absl::Status Listen();
  void RunLoop();
  HttpAnswer Health() const;
  HttpAnswer Readiness() const;
  void Housekeeping();
  void MaintainReserve();
  void StopCalls();
  bool AwaitAnswers();

  // In order of dependency: later members use earlier ones.
  const config::v1::Server config_;  // at the start
  Live<JobDefaults> job_defaults_;
  Live<absl::Duration> history_;
  Reloader reloader_;
  Time start_ = SystemClock().Now();
  std::atomic<bool> ready_{false};
  std::atomic<int64_t> loop_seen_nanos_{0};  // steady time of the loop's last turn or tick
  std::unique_ptr<HttpServer> http_;
  const std::shared_ptr<StoreHealth> health_;  // may be null
  std::unique_ptr<Store> store_;
  Preserved preserved_;
  GrantedLease granted_lease_;  // by earlier processes; LeaseOptions::granted_before
  RequestTable requests_;
  TurnEdits edits_;
  CallerBook callers_;
  Policies policies_, held_policies_;
  std::unique_ptr<GroupCommitter> committer_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<LeaseKeeper> leases_;
  std::unique_ptr<ThreadExecutor> dispatch_executor_, watch_executor_, read_executor_,
      log_executor_, audit_executor_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<MigKeeper> migs_;
  std::unique_ptr<EndedKeeper> ended_;
  std::unique_ptr<MixKeeper> mixes_;
  std::unique_ptr<ProgressBook> told_;
  std::unique_ptr<ThreadExecutor> price_executor_;  // after mixes_, because it runs work for it
  std::unique_ptr<AgentGateway> gateway_;
  std::unique_ptr<Maintenance> maintenance_;
  std::unique_ptr<LogRelay> logs_;
  std::unique_ptr<ExecRelay> execs_;
  std::unique_ptr<WatchHub> watches_;
  std::unique_ptr<Audit> audit_;
  ProgressCounter progress_;
  RestartWatch restarts_;
  RefusedStarts refused_starts_;
  EventLog event_log_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<OpenStreams> streams_;
  std::unique_ptr<UserShares> shares_;
  std::unique_ptr<OwnedJobs> owned_;
  ServiceContext context_;
  std::unique_ptr<JobService> job_service_;
  std::unique_ptr<QueueService> queue_service_;
  std::unique_ptr<NodeService> node_service_;
  std::unique_ptr<WatchService> watch_service_;
  std::unique_ptr<ClusterService> cluster_service_;
  std::unique_ptr<AgentService> agent_service_;
  std::unique_ptr<ExplainService> explain_service_;
  std::unique_ptr<HyperNodeService> hyper_node_service_;
  std::unique_ptr<AccessService> access_service_;
  std::unique_ptr<AuditService> audit_service_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<StreamGuard> guard_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<LoopThread> loop_thread_;
  int port_ = 0;
  std::atomic<bool> stopped_{false};
  bool told_paused_ = false;
  std::atomic<bool> tending_{false};
};

App::Parts::Parts(const config::v1::Server& config, Reloader::Read reread,
                  std::shared_ptr<StoreHealth> health)
    : config_(config),
      job_defaults_(JobDefaultsFrom(config)),
      history_(DurationFrom(config.history())),
      reloader_(config, Holdable(std::move(reread)),
                [this](const config::v1::Server& changed) { Adopt(changed); }),
      health_(std::move(health)),
      callers_(config.access(), config.tls().ca()) {}

absl::Status App::Parts::Start(const StoreOpener& open_store) {
  if (absl::Status status = StartHttp(); !status.ok()) return status;
  if (absl::Status status = Load(open_store); !status.ok()) return status;
  Wire();
  if (absl::Status status = MakeDefaultQueue(*loop_); !status.ok()) return status;
  RunLoop();
  if (HadNoQueues(*loop_)) AwaitAnswers();  // a new store's first clients find the default one
  WarnWithoutRules();
  if (absl::Status status = Listen(); !status.ok()) return status;
  ready_ = true;
  return absl::OkStatus();
}

Reloader::Read App::Parts::Holdable(Reloader::Read reread) const {
  if (reread == nullptr) return nullptr;
  return [this, reread = std::move(reread)]() -> absl::StatusOr<config::v1::Server> {
    absl::StatusOr<config::v1::Server> config = reread();
    if (!config.ok()) return config;
    const absl::Status holds = CheckStoreFormat(*config, store_->Format());
    if (!holds.ok()) return holds;
    return config;
  };
}

absl::Status App::Parts::StartHttp() {
  if (config_.http_listen() == kNoHttp) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<HttpServer>> http = HttpServer::Start(config_.http_listen());
  if (!http.ok()) return http.status();
  http_ = *std::move(http);
  http_->SetHandler("/healthz", [this] { return Health(); });
  http_->SetHandler("/readyz", [this] { return Readiness(); });
  return absl::OkStatus();
}

absl::Status App::Parts::Load(const StoreOpener& open_store) {
  absl::StatusOr<std::unique_ptr<Store>> store = open_store();
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  if (auto holds = CheckStoreFormat(config_, store_->Format()); !holds.ok()) return holds;
  ClusterState state;
  const Time now = SystemClock().Now();
  absl::Status loaded = berth::Load(
      *store_, state,
      [&](StoredRequest request) {
        if (now - request.time <= kRequestRetention) requests_.Restore(std::move(request));
      },
      &preserved_);
  if (!loaded.ok()) return loaded;
  const absl::StatusOr<GrantedLease> granted = ReadGrantedLease(*store_);
  if (!granted.ok()) return granted.status();
  granted_lease_ = *granted;
  absl::StatusOr<Policies> policies = Policies::Create(PolicyConfigFrom(config_));
  if (!policies.ok()) return policies.status();
  policies_ = *std::move(policies);
  CommitterOptions committing;
  if (health_ != nullptr) {
    committing.low_space = [health = health_] { return health->reserve().LowSpace(); };
  }
  committer_ = std::make_unique<GroupCommitter>(store_.get(), std::move(committing));
  LoopDeps deps{.clock = &SystemClock(),
                .committer = committer_.get(),
                .policies = &policies_,
                .policy_record = PolicyRecordFrom(config_),
                .preserved = &preserved_,
                .store_format = [store = store_.get()] { return store->Format(); }};
  if (granted_lease_.restored) {
    const config::v1::Server held = WithoutPlacing(config_);
    held_policies_ = Policies::Create(PolicyConfigFrom(held)).value();
    deps.held_policies = &held_policies_;
    deps.held_record = PolicyRecordFrom(held);
  }
  loop_ = std::make_unique<Loop>(deps, std::move(state), store_->LastSequence(),
                                 LoopOptionsFrom(config_));
  return absl::OkStatus();
}

void App::Parts::Wire() {
  Clock* clock = &SystemClock();
  leases_ =
      std::make_unique<LeaseKeeper>(loop_.get(), clock, LeaseOptionsFrom(config_, granted_lease_));
  dispatch_executor_ = std::make_unique<ThreadExecutor>();
  watch_executor_ = std::make_unique<ThreadExecutor>();
  read_executor_ = std::make_unique<ThreadExecutor>();
  log_executor_ = std::make_unique<ThreadExecutor>();
  audit_executor_ = std::make_unique<ThreadExecutor>();
  dispatcher_ = std::make_unique<Dispatcher>(store_.get(), dispatch_executor_.get(), clock);
  const AgentGatewayOptions agents{
      .heartbeat_interval = DurationFrom(config_.heartbeat_interval()),
      .store = {.cluster_id = store_->ClusterId(), .incarnation = store_->Incarnation()},
      .store_format = [store = store_.get()] { return store->Format(); },
      .brake = {.percent = config_.health_brake().percent(),
                .least = config_.health_brake().least()},
      .fabric_health = config_.fabric_health()};
  gateway_ = std::make_unique<AgentGateway>(loop_.get(), leases_.get(), dispatcher_.get(), agents);
  dispatcher_->SetGateway(gateway_.get());
  dispatcher_->SetDefaults(&job_defaults_);
  const config::v1::Limits& limits = config_.limits();
  logs_ = std::make_unique<LogRelay>(gateway_.get(), static_cast<size_t>(limits.log_followers()));
  gateway_->SetLogSink(logs_.get());
  execs_ = std::make_unique<ExecRelay>(gateway_.get(), static_cast<size_t>(limits.execs()));
  gateway_->SetExecSink(execs_.get());
  watches_ =
      std::make_unique<WatchHub>(store_.get(), watch_executor_.get(), store_->LastSequence(),
                                 WatchOptions{.watchers = static_cast<size_t>(limits.watchers()),
                                              .patience = 4 * DurationFrom(config_.lease())});
  maintenance_ = std::make_unique<Maintenance>(
      loop_.get(), leases_.get(), gateway_.get(),
      MaintenanceOptions{.stop_lease = DurationFrom(config_.stop_lease()),
                         .longest = DurationFrom(config_.longest_lease())});
  loop_->AddObserver(dispatcher_.get());
  price_executor_ = std::make_unique<ThreadExecutor>();
  const RequestMix known =
      loop_->Read([](const ClusterState& state, uint64_t) { return state.request_mix(); });
  mixes_ = std::make_unique<MixKeeper>(loop_.get(), price_executor_.get(), known);
  loop_->AddObserver(mixes_.get());
  told_ = std::make_unique<ProgressBook>(
      [store = store_.get()] { return store->Format() >= kFormatOfProgress; });
  gateway_->SetProgressBook(told_.get());
  gateway_->SetTaskKeys(&callers_.task_keys());
  loop_->AddObserver(told_.get());
  loop_->Read([&](const ClusterState& state, uint64_t) { refused_starts_.Begin(state); });
  loop_->AddObserver(&refused_starts_);
  migs_ = std::make_unique<MigKeeper>(loop_.get(), gateway_.get());
  ended_ = std::make_unique<EndedKeeper>(loop_.get(), limits.active_tasks());
  // A store without files, as in tests, has no audit either.
  audit_ = std::make_unique<Audit>(
      health_ != nullptr ? absl::StrCat(config_.data_directory(), "/", kAuditName) : "",
      AuditLimitsFrom(config_), store_.get(), audit_executor_.get(), clock);
  if (audit_->writes()) loop_->AddListener(audit_->listener());
  loop_->AddListener(watches_.get());
  loop_->AddListener(&progress_);
  loop_->AddListener(&restarts_);
  loop_->AddListener(&event_log_);
  metrics_ = std::make_unique<Metrics>(
      MetricSources{loop_.get(), committer_.get(), gateway_.get(), dispatcher_.get(), leases_.get(),
                    logs_.get(), watches_.get(), migs_.get(), health_.get(), start_, &restarts_,
                    &refused_starts_, told_.get()},
      &progress_);
  WireServices();
}

void App::Parts::WireServices() {
  streams_ = std::make_unique<OpenStreams>(loop_.get(), read_executor_.get());
  loop_->AddListener(streams_.get());
  shares_ = std::make_unique<UserShares>(UserLimitsFrom(config_));
  owned_ = std::make_unique<OwnedJobs>(config_.limits().active_jobs_per_user());
  loop_->Read([&](const ClusterState& state, uint64_t) { owned_->Begin(state); });
  loop_->AddObserver(owned_.get());
  context_ = {
      .loop = loop_.get(),
      .store = store_.get(),
      .clock = &SystemClock(),
      .requests = &requests_,
      .edits = &edits_,
      .callers = &callers_,
      .streams = streams_.get(),
      .shares = shares_.get(),
      .owned = owned_.get(),
      .limits = config_.limits(),
      .run_as = config_.run_as(),
      .defaults = &job_defaults_,
      .hold_reason = [this] { return maintenance_->RestoreHoldText(); },
      .frequent_restarts = [this](JobId job, Time now) { return restarts_.Often(job, now); },
      .starts_refused =
          [this](QueueId queue) { return refused_starts_.ConsecutiveRefusals(queue); },
      .progress = told_.get(),
      .refused = &audit_->refused()};
  job_service_ =
      std::make_unique<JobService>(&context_, logs_.get(), execs_.get(), read_executor_.get());
  queue_service_ = std::make_unique<QueueService>(&context_);
  node_service_ = std::make_unique<NodeService>(&context_);
  watch_service_ = std::make_unique<WatchService>(&context_, watches_.get(), streams_.get());
  cluster_service_ = std::make_unique<ClusterService>(
      &context_, start_, &reloader_, maintenance_.get(),
      ClusterService::Backups{.store = store_.get(),
                              .executor = log_executor_.get(),
                              .directory = config_.backup_directory(),
                              .health = health_.get()});
  agent_service_ =
      std::make_unique<AgentService>(gateway_.get(), AgentDoor{.callers = &callers_,
                                                               .loop = loop_.get(),
                                                               .streams = streams_.get(),
                                                               .refused = &audit_->refused()});
  explain_service_ = std::make_unique<ExplainService>(&context_);
  hyper_node_service_ = std::make_unique<HyperNodeService>(&context_);
  access_service_ = std::make_unique<AccessService>(&context_);
  audit_service_ = std::make_unique<AuditService>(&context_, audit_.get());
  if (http_ != nullptr) {
    http_->SetHandler(
        "/metrics",
        [this] {
          return HttpAnswer{200, metrics_->Text(), kMetricsContentType};
        },
        HttpServer::Cost::kHigh);
  }
}

// A completed configuration: its policies and its log level are valid.
void App::Parts::Adopt(const config::v1::Server& config) {
  absl::StatusOr<Policies> policies = Policies::Create(PolicyConfigFrom(config));
  BERTH_CHECK(policies.ok());
  loop_->SetPolicies(std::make_shared<const Policies>(*std::move(policies)),
                     PolicyRecordFrom(config));
  job_defaults_.Set(JobDefaultsFrom(config));
  history_.Set(DurationFrom(config.history()));
  if (absl::Status level = SetLogLevel(config.log().level()); !level.ok()) {
    LogWarn("the log level is unchanged", {{"error", level}});
  }
}

void App::Parts::RunLoop() {
  leases_->Start();
  loop_thread_ = std::make_unique<LoopThread>(loop_.get(), &SystemClock(),
                                              DurationFrom(config_.coalescing_window()));
  loop_thread_->AddPeriodic(leases_->TickPeriod(), [this] { leases_->Tick(); });
  loop_thread_->AddPeriodic(MigKeeper::kTick, [this] { migs_->Tick(); });
  loop_thread_->AddPeriodic(EndedKeeper::kTick, [this] { ended_->Tick(); });
  loop_thread_->AddPeriodic(kSignOfLife, [this] { Housekeeping(); });
  loop_thread_->AddPeriodic(kRecheckPeriod, [this] { streams_->Recheck(); });
  loop_thread_->AddPeriodic(Audit::kTick, [this] { audit_->Tick(); });
  loop_thread_->AddPeriodic(kTrimPeriod, [this] { log_executor_->Run([this] { MaintainLog(); }); });
  Housekeeping();
  loop_thread_->Start();
}

// A log that cannot be verified from its beginning is better than one that fills the disk.
void App::Parts::MaintainLog() {
  const Time now = SystemClock().Now();
  const absl::Duration history = history_.Get();
  const absl::StatusOr<bool> renewed = RenewBase(*store_, now, history);
  if (!renewed.ok() && !absl::IsUnimplemented(renewed.status())) {
    LogWarn("cannot keep a base for verifying the log", {{"error", renewed.status()}});
  }
  if (renewed.ok() && *renewed) loop_->Replan();
  const absl::Status trimmed = TrimHistory(*store_, now, history);
  if (!trimmed.ok()) LogWarn("the log history cannot be trimmed", {{"error", trimmed}});
}

void App::Parts::WarnWithoutRules() const {
  const bool enforced =
      loop_->Read([](const ClusterState& state, uint64_t) { return state.access().enforced(); });
  if (enforced) return;
  LogWarn(
      "NO ACCESS RULES: every client that can connect may do everything; write rules with "
      "`berth access init`",
      {{"clients",
        config_.tls().ca().empty() ? "all users of this machine" : "all with a certificate"}});
}

absl::Status App::Parts::Listen() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  auto credentials = MakeServerCredentials(TlsFilesOf(config_.tls()));
  if (!credentials.ok()) return credentials.status();
  grpc::ServerBuilder builder;
  const config::v1::Limits& limits = config_.limits();
  auto acceptor = Acceptor::Listen(
      config_.listen(),
      {.limits = CompleteLimits({static_cast<size_t>(limits.connections()),
                                 static_cast<size_t>(limits.connections_per_address())}),
       .user_timeout = DurationFrom(config_.lease()) / 2});
  if (!acceptor.ok()) return acceptor.status();
  acceptor_ = *std::move(acceptor);
  port_ = acceptor_->port();
  callers_.SetEnd([this](const std::string& address) { acceptor_->End(ParseClientEnd(address)); });
  auto connections = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, *credentials);
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.message_bytes()));
  builder.SetResourceQuota(grpc::ResourceQuota("berthd").Resize(kGrpcMemoryBytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  AddAgentKeepalive(DurationFrom(config_.lease()), builder);
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{
           job_service_.get(), queue_service_.get(), node_service_.get(), watch_service_.get(),
           cluster_service_.get(), agent_service_.get(), explain_service_.get(),
           hyper_node_service_.get(), access_service_.get(), audit_service_.get()}) {
    builder.RegisterService(service);
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC cannot start its server");
  acceptor_->Start(std::move(connections));
  guard_ = std::make_unique<StreamGuard>(
      StreamLimits{.open = kStreamsPerConnection}, [this](const SocketStreams& socket) {
        acceptor_->Cut(EndOf(socket.address, socket.port), StreamGuard::kBan);
      });
  return absl::OkStatus();
}

HttpAnswer App::Parts::Health() const {
  const int64_t seen = loop_seen_nanos_.load();
  if (seen == 0) return {200, "loading\n"};
  const absl::Duration silence = SystemClock().Steady() - absl::Nanoseconds(seen);
  if (silence < kLoopSilence) return {200, "ok\n"};
  return {503,
          absl::StrCat("the loop has made no progress for ", absl::FormatDuration(silence), "\n")};
}

HttpAnswer App::Parts::Readiness() const {
  if (!ready_.load()) return {503, stopped_.load() ? "stopping\n" : "loading the store\n"};
  const std::string paused = loop_->PausedReason();
  if (!paused.empty()) return {503, absl::StrCat(paused, "\n")};
  std::string but = health_ != nullptr ? health_->Damage() : "";
  if (but.empty()) but = maintenance_->RestoreHoldText();
  return {200, but.empty() ? "ready\n" : absl::StrCat("ready, but ", but, "\n")};
}

// Loop thread, about once a second.
void App::Parts::Housekeeping() {
  loop_seen_nanos_ = absl::ToInt64Nanoseconds(SystemClock().Steady());
  MaintainReserve();
  const bool paused = !loop_->PausedReason().empty();
  if (paused == told_paused_ || !ready_.load()) return;
  told_paused_ = paused;
  // The server as a whole still serves: reads work, and agents are heard.
  server_->GetHealthCheckService()->SetServingStatus(v1::JobService::service_full_name(), !paused);
}

// Looking for space may wait for the disk, so it does not run here.
void App::Parts::MaintainReserve() {
  if (health_ == nullptr || health_->reserve().bytes() >= SpaceReserve::kBytes) return;
  if (tending_.exchange(true)) return;
  log_executor_->Run([this] {
    health_->reserve().Fill();
    tending_ = false;
  });
}

// Waits until the loop has processed all earlier requests and the disk has them: then their clients
// have their responses. False after kStopPatience.
bool App::Parts::AwaitAnswers() {
  auto answered = std::make_shared<absl::Notification>();
  const absl::Status posted =
      loop_->Post([answered](Turn& turn) { turn.OnDurable([answered] { answered->Notify(); }); },
                  CommandClass::kEssential);
  return posted.ok() && answered->WaitForNotificationWithTimeout(kStopPatience);
}

// Ends all calls. gRPC also waits for its connections to close, which idle or dead clients do not
// do: after kFarewell they are cut. Calls that wait for a full disk would wait forever; they are
// answered when the loop is destroyed.
void App::Parts::StopCalls() {
  if (server_ == nullptr) return;
  server_->GetHealthCheckService()->SetServingStatus(false);
  guard_.reset();
  watches_->Stop();
  gateway_->DisconnectAll(absl::UnavailableError("the server is stopping"));
  acceptor_->Stop();
  const bool answered = AwaitAnswers();
  absl::Notification ended;
  std::thread shutdown([&] {
    server_->Shutdown(absl::ToChronoTime(absl::Now() + kFarewell));
    ended.Notify();
  });
  if (!ended.WaitForNotificationWithTimeout(kFarewell - kBeforeCancel)) {
    acceptor_->CutConnections();
  }
  if (!ended.WaitForNotificationWithTimeout(kFarewell + (answered ? kStopPatience : kGiveUp))) {
    LogWarn("calls still wait for the disk; they are abandoned");
    loop_thread_->Stop();
    log_executor_.reset();  // it may restart planning
    committer_->Stop();
    loop_.reset();
  }
  shutdown.join();
}

void App::Parts::Stop() {
  if (stopped_.exchange(true)) return;
  ready_ = false;
  if (http_ != nullptr) http_->SetHandler("/metrics", nullptr);  // its sources are destroyed now
  StopCalls();
  if (mixes_ != nullptr) mixes_->Stop();
  if (loop_thread_ != nullptr) loop_thread_->Stop();
  if (committer_ != nullptr) committer_->Stop();
  http_.reset();
  // Executors finish their queue while everything that they use still exists.
  dispatch_executor_.reset();
  price_executor_.reset();
  watch_executor_.reset();
  read_executor_.reset();
  log_executor_.reset();
  audit_executor_.reset();
  server_.reset();
}

absl::StatusOr<std::unique_ptr<App>> App::Start(const config::v1::Server& config,
                                                const StoreOpener& open_store,
                                                Reloader::Read reread,
                                                std::shared_ptr<StoreHealth> health) {
  auto parts = std::make_unique<Parts>(config, std::move(reread), std::move(health));
  if (absl::Status status = parts->Start(open_store); !status.ok()) return status;
  return std::unique_ptr<App>(new App(std::move(parts)));
}

App::App(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
App::~App() = default;

void App::GrantStopLease() { parts_->maintenance().GrantStopLease(); }
void App::Stop() { parts_->Stop(); }
absl::StatusOr<std::vector<ConfigChange>> App::Reload() { return parts_->reloader().Reload(false); }
int App::port() const { return parts_->port(); }
int App::http_port() const { return parts_->http_port(); }
Loop& App::loop() { return parts_->loop(); }
WatchHub& App::watch_hub() { return parts_->watches(); }

}  // namespace berth
