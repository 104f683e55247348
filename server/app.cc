#include "server/app.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "server/app_options.h"
#include "server/app_parts.h"

namespace berth {
namespace {

// Limits of the gRPC server besides those of the configuration.
constexpr size_t kGrpcMemoryBytes = size_t{1} << 30;
constexpr int kStreamsPerConnection = 10'000;
constexpr absl::Duration kRecheckPeriod = absl::Seconds(5);  // certificates of streams expire
constexpr absl::Duration kTrimPeriod = absl::Minutes(10);
constexpr absl::Duration kSignOfLife = absl::Seconds(1);
constexpr absl::Duration kEtcdRetry = absl::Milliseconds(20);  // while etcd does not answer

}  // namespace

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
  if (ha_ != nullptr) {
    RunLoop();
    if (absl::Status status = Listen(); !status.ok()) return status;
    JoinCluster();
    ready_ = true;
    return absl::OkStatus();
  }
  leases_->Start();
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
  absl::StatusOr<OpenedStore> store = open_store();
  if (!store.ok()) return store.status();
  store_ = std::move(store->store);
  ha_ = std::move(store->ha);
  last_term_ = store->term;
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
  if (ha_ != nullptr) committing.retry_delay = kEtcdRetry;
  committer_ = std::make_unique<GroupCommitter>(store_.get(), std::move(committing));
  LoopDeps deps{.clock = &SystemClock(),
                .committer = committer_.get(),
                .policies = &policies_,
                .policy_record = PolicyRecordFrom(config_),
                .preserved = &preserved_,
                .store_format = [store = store_.get()] { return store->Format(); },
                .leadership = ha_ != nullptr ? &ha_->leadership() : nullptr};
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
      .term = [this] { return ha_ != nullptr ? ha_->member().agents_term() : last_term_; },
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
  loop_->AddObserver(&waits_);
  migs_ = std::make_unique<MigKeeper>(loop_.get(), gateway_.get());
  prefetches_ = std::make_unique<PrefetchKeeper>(loop_.get(), dispatcher_.get());
  ended_ = std::make_unique<EndedKeeper>(loop_.get(), limits.active_tasks());
  // A store without files, as in tests, has no audit either.
  audit_ = std::make_unique<Audit>(
      health_ != nullptr ? absl::StrCat(config_.data_directory(), "/", kAuditName) : "",
      AuditLimitsFrom(config_), store_.get(), audit_executor_.get(), clock);
  if (audit_->writes()) loop_->AddListener(audit_->listener());
  WireUsage();
  loop_->AddListener(watches_.get());
  loop_->AddListener(&progress_);
  loop_->AddListener(&restarts_);
  loop_->AddListener(&event_log_);
  metrics_ = std::make_unique<Metrics>(
      MetricSources{loop_.get(), committer_.get(), gateway_.get(), dispatcher_.get(), leases_.get(),
                    logs_.get(), watches_.get(), migs_.get(), health_.get(), start_, &restarts_,
                    &refused_starts_, told_.get(), ha_.get(), &waits_, &submit_seconds_,
                    health_ != nullptr ? config_.data_directory() : "", TlsFilesOf(config_.tls()),
                    usage_->keeps() ? usage_.get() : nullptr},
      &progress_);
  WireServices();
}

void App::Parts::WireUsage() {
  std::optional<HistoryOptions> options = HistoryOptionsFrom(config_, health_ == nullptr);
  if (options.has_value() && health_ != nullptr) {
    options->low_space = [health = health_] { return !health->reserve().LowSpace().empty(); };
  }
  usage_ = std::make_unique<History>(std::move(options), store_.get(), &SystemClock());
  if (usage_->keeps()) loop_->AddListener(usage_.get());
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
      .images_of = [this](NodeId node) { return gateway_->ImagesOf(node); },
      .progress = told_.get(),
      .refused = &audit_->refused(),
      .leadership = ha_ != nullptr ? &ha_->leadership() : nullptr,
      .submit_seconds = &submit_seconds_};
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
                              .health = health_.get()},
      ClusterService::Members{.ha = ha_.get(),
                              .hand_over = [this](const std::string& to) { return HandOver(to); },
                              .leave = [this] { Leave(); },
                              .copies = absl::StrCat(config_.data_directory(), "/copies")});
  agent_service_ =
      std::make_unique<AgentService>(gateway_.get(), AgentDoor{.callers = &callers_,
                                                               .loop = loop_.get(),
                                                               .streams = streams_.get(),
                                                               .refused = &audit_->refused(),
                                                               .leadership = context_.leadership});
  explain_service_ = std::make_unique<ExplainService>(&context_);
  hyper_node_service_ = std::make_unique<HyperNodeService>(&context_);
  access_service_ = std::make_unique<AccessService>(&context_);
  priority_class_service_ = std::make_unique<PriorityClassService>(&context_);
  audit_service_ = std::make_unique<AuditService>(&context_, audit_.get());
  history_service_ = std::make_unique<HistoryService>(&context_, usage_.get());
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
  loop_thread_ = std::make_unique<LoopThread>(loop_.get(), &SystemClock(),
                                              DurationFrom(config_.coalescing_window()));
  loop_thread_->AddPeriodic(leases_->TickPeriod(), [this] {
    if (loop_->leads()) leases_->Tick();
  });
  loop_thread_->AddPeriodic(MigKeeper::kTick, [this] {
    if (loop_->leads()) migs_->Tick();
  });
  loop_thread_->AddPeriodic(PrefetchKeeper::kTick, [this] {
    if (loop_->leads()) prefetches_->Tick();
  });
  loop_thread_->AddPeriodic(EndedKeeper::kTick, [this] {
    if (loop_->leads()) ended_->Tick();
  });
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
           hyper_node_service_.get(), access_service_.get(), audit_service_.get(),
           priority_class_service_.get(), history_service_.get()}) {
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

absl::StatusOr<std::unique_ptr<App>> App::Start(const config::v1::Server& config,
                                                const StoreOpener& open_store,
                                                Reloader::Read reread,
                                                std::shared_ptr<StoreHealth> health) {
  auto parts = std::make_unique<Parts>(config, std::move(reread), std::move(health));
  if (absl::Status status = parts->Start(open_store); !status.ok()) return status;
  return std::unique_ptr<App>(new App(std::move(parts)));
}

bool App::TryHandOver() { return parts_->TryHandOver(); }
bool App::handed_over() const { return parts_->handed_over(); }
App::App(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
App::~App() = default;

void App::GrantStopLease() {
  if (parts_->loop().leads()) parts_->maintenance().GrantStopLease();
}
void App::Stop() { parts_->Stop(); }
absl::StatusOr<std::vector<ConfigChange>> App::Reload() { return parts_->reloader().Reload(false); }
int App::port() const { return parts_->port(); }
int App::http_port() const { return parts_->http_port(); }
Loop& App::loop() { return parts_->loop(); }
WatchHub& App::watch_hub() { return parts_->watches(); }

}  // namespace berth
