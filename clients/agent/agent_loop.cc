#include "clients/agent/agent_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/agent/agent_config.h"
#include "clients/agent/changed_devices.h"
#include "clients/agent/cuda_checkpoint.h"
#include "clients/agent/identity.h"
#include "support/log.h"
#include "support/proto_time.h"
#include "support/tls.h"
#include "support/version.h"

namespace berth {
namespace {

constexpr size_t kMaxLoggedErrors = 100;
constexpr size_t kMaxInbox = 4096;  // messages; a full inbox stops reading the stream
constexpr absl::Duration kMaxWait = absl::Minutes(1);
constexpr int kFailAfter = 2;
constexpr int kRecoverAfter = 3;

using Devices = google::protobuf::RepeatedPtrField<v1::Device>;

// Live tasks of an earlier agent. None survives a reboot of the machine.
std::set<TaskId> LiveTasks(const AgentLogic::Recovered& recovered) {
  std::set<TaskId> live;
  if (recovered.rebooted) return live;
  for (const auto& [id, record] : recovered.journal.tasks) {
    if (record.phase() != agent::v1::TaskRecord::ENDED) live.insert(id);
  }
  return live;
}

}  // namespace

AgentLoop::AgentLoop(const config::v1::Agent& config, AgentDevices devices)
    : config_(config),
      devices_(std::move(devices)),
      health_(
          config.health().fail_after() > 0 ? config.health().fail_after() : kFailAfter,
          config.health().recover_after() > 0 ? config.health().recover_after() : kRecoverAfter) {}

absl::StatusOr<std::unique_ptr<AgentLoop>> AgentLoop::Create(const config::v1::Agent& config,
                                                             const std::string& supervisor,
                                                             AgentChannels channels,
                                                             AgentDevices devices) {
  std::unique_ptr<AgentLoop> loop(new AgentLoop(config, std::move(devices)));
  if (absl::Status status = loop->Init(supervisor, channels); !status.ok()) return status;
  return loop;
}

AgentLoop::~AgentLoop() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  scout_.reset();
  checks_.reset();
  link_.reset();  // before the objects that its events use
  if (journal_ != nullptr) journal_->Flush().IgnoreError();
  for (const int fd : {wake_fd_, lock_fd_}) {
    if (fd >= 0) close(fd);
  }
}

absl::Status AgentLoop::OpenState() {
  const std::string& directory = config_.state_directory();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return absl::InternalError(absl::StrCat("create ", directory, ": ", error.message()));
  if (geteuid() == 0)
    chmod(directory.c_str(), 0711);  // users of tasks must reach their own directories
  const absl::StatusOr<int> lock = LockState(directory);
  if (!lock.ok()) return lock.status();
  lock_fd_ = *lock;
  auto journal = FileJournal::Open(SystemDisk(), directory, {});
  if (!journal.ok()) return journal.status();
  journal_ = *std::move(journal);
  return absl::OkStatus();
}

absl::Status AgentLoop::MakeRunner(const std::string& supervisor) {
  EnvironmentContext context;
  context.node = config_.node_name();
  context.address = config_.address();
  context.has_gpus = HasGpus(config_.devices());
  context.mps_pipe_directory = config_.sharing().mps_pipe_directory();
  for (const v1::Device& device : config_.devices()) {
    context.device_memory.emplace(device.uuid(), device.memory_bytes());
  }
  context.nccl_topo_file = NcclTopologyFile(config_.discovery());
  context.socket_interface = SocketInterface(config_);
  const std::string state = std::filesystem::absolute(config_.state_directory());
  auto isolation = Isolation::Create(config_, state);
  if (!isolation.ok()) return isolation.status();
  for (const std::string& warning : (*isolation)->warnings())
    LogWarn("isolation", {{"node", config_.node_name()}, {"warning", warning}});
  LogInfo("isolation", {{"node", config_.node_name()}, {"tasks", (*isolation)->description()}});
  isolation_ = *std::move(isolation);
  mig_ = devices_.found.mig;
  isolation_->SetDevices(config_.devices(), devices_.found);
  FindSaver();
  auto runner = ProcessRunner::Create(
      {.state_directory = state,
       .supervisor = supervisor,
       .image_program = std::filesystem::path(supervisor).parent_path() / "berth-image",
       .first_port = config_.first_port(),
       .last_port = config_.last_port(),
       .log_file_bytes = config_.log_file_bytes(),
       .log_files = config_.log_files(),
       .context = context,
       .isolation = isolation_,
       .min_free_bytes = MinFreeBytes(config_.health()),
       .kept_output_bytes = config_.kept_log_bytes(),
       .sockets = sockets_.get(),
       .cuda_checkpoint = cuda_checkpoint_,
       .gpu_files = GpuFiles(config_)});
  if (!runner.ok()) return runner.status();
  runner_ = *std::move(runner);
  execs_ = std::make_unique<ExecHost>(supervisor, runner_->tasks_directory());
  auto prefetcher = Prefetcher::Create(
      isolation_, std::filesystem::path(supervisor).parent_path() / "berth-image",
      state + "/prefetch");
  if (!prefetcher.ok()) return prefetcher.status();
  prefetcher_ = *std::move(prefetcher);
  use_ = std::make_unique<UseWatch>(runner_->tasks_directory());
  return absl::OkStatus();
}

// Paused jobs keep their GPUs without it.
void AgentLoop::FindSaver() {
  const char* path = std::getenv("PATH");
  auto program = FindCudaCheckpoint(config_.cuda_checkpoint(), path == nullptr ? "" : path);
  if (program.ok()) {
    cuda_checkpoint_ = *std::move(program);
  } else {
    LogWarn("paused jobs keep their GPUs",
            {{"node", config_.node_name()}, {"reason", program.status().message()}});
  }
}

absl::Status AgentLoop::Init(const std::string& supervisor, const AgentChannels& channels) {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return ErrnoStatus(errno, "eventfd");
  if (absl::Status status = ReadBootId(&boot_id_); !status.ok()) return status;
  if (absl::Status status = OpenState(); !status.ok()) return status;
  if (absl::Status status = StartMetrics(); !status.ok()) return status;
  if (!channels.tasks.empty()) {
    auto sockets = TaskSockets::Create(channels.tasks);
    if (!sockets.ok()) return sockets.status();
    sockets_ = *std::move(sockets);
  }
  if (absl::Status status = MakeRunner(supervisor); !status.ok()) return status;
  const absl::StatusOr<bool> rebooted = KeepIdentity(*journal_, boot_id_, NewAgentId());
  if (!rebooted.ok()) return rebooted.status();
  rebooted_ = *rebooted;
  logs_ = std::make_unique<LogFiles>(runner_->tasks_directory());
  notices_ = std::make_unique<NoticeFiles>(runner_->tasks_directory());
  random_ =
      std::make_unique<Random>(static_cast<uint64_t>(absl::ToUnixNanos(SystemClock().Now())) ^
                               std::hash<std::string>()(journal_->state().identity.agent_id()));
  link_ = std::make_unique<GrpcLink>(channels.own, *this);
  inventory_ = MakeInventory(config_);
  inventory_.set_freezes(isolation_->HasGroups());
  inventory_.set_checkpoints_devices(isolation_->HasGroups() && !cuda_checkpoint_.empty());
  *inventory_.mutable_topology() = devices_.found.topology;
  known_ = devices_.found.known;
  lines_.insert(devices_.found.lines.begin(), devices_.found.lines.end());
  sent_inventory_ = inventory_;
  metrics_.node = config_.node_name();
  metrics_.inventory = inventory_;
  logic_ = std::make_unique<AgentLogic>(
      AgentLogic::Options{.node = config_.node_name(),
                          .agent_id = journal_->state().identity.agent_id(),
                          .boot_id = boot_id_,
                          .version = kBerthVersion,
                          .inventory = inventory_,
                          .keep_ended = DurationFrom(config_.keep_ended())},
      *link_, *journal_, *runner_, *logs_, *random_);
  logic_->SetExecRunner(execs_.get());
  logic_->SetNoticeSource(notices_.get());
  logic_->SetGpuDivider(this);
  logic_->SetKeptFiles(&isolation_->kept());
  if (config_.images().registries_size() > 0 && geteuid() == 0)
    logic_->SetImages(prefetcher_.get());
  return absl::OkStatus();
}

Instant AgentLoop::Now() { return {.steady = SystemClock().Steady(), .wall = SystemClock().Now()}; }

absl::Status AgentLoop::Run() {
  AgentLogic::Recovered recovered;
  recovered.journal = journal_->state();
  recovered.rebooted = rebooted_;
  if (!rebooted_) recovered.lease_deadline = ProcessRunner::ReadLease(config_.state_directory());
  logic_->Begin(Now(), recovered);
  runner_->CleanUp(LiveTasks(recovered));
  StartThreads();
  while (!stopping_ && logic_->fatal().ok()) {
    HandleTasks();
    HandleLink();
    HandleRenewal();
    HandleHealth();
    HandleDevices();
    HandleUse();
    logic_->Tick(Now());
    HandleTasks();
    HandleExecs();
    prefetcher_->Poll();
    LogState();
    if (!stopping_ && logic_->fatal().ok()) Wait();
  }
  return logic_->fatal();
}

void AgentLoop::StartThreads() {
  if (!devices_.found.vanished.empty()) {
    health_.Set(kDevicesCheck, EffectOfCheck(config_.health(), kDevicesCheck),
                devices_.found.vanished);
  }
  const HealthChecks::Options options = {
      .state_directory = config_.state_directory(),
      .scratch_directory = config_.scratch_directory(),
      .disk_exhausted = [this] { return runner_->DiskIsExhausted(); },
      .probe = devices_.probe,
      .nvml_library = config_.discovery().nvml_library()};
  checks_ = std::make_unique<HealthChecks>(config_.health(), options, [this](HealthRound round) {
    absl::MutexLock lock(&mutex_);
    rounds_.push_back(std::move(round));
    Wake();
  });
  if (devices_.probe.empty()) return;
  const auto tell = [this](DeviceScout::Look look) {
    absl::MutexLock lock(&mutex_);
    // The result of a division is reported once, even if nobody has read it before the next scan.
    if (look_ && look_->divided && !look.divided) look.divided = std::move(look_->divided);
    look_ = std::move(look);
    Wake();
  };
  const auto around = [this](absl::FunctionRef<void()> call) { checks_->WithoutGpuWatch(call); };
  scout_ = std::make_unique<DeviceScout>(devices_.declared, devices_.probe, tell, around);
}

void AgentLoop::Wake() {
  const uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof one) < 0) return;  // full: it wakes up anyway
}

void AgentLoop::Stop() {
  stopping_ = true;
  Wake();
}

void AgentLoop::LookAgain() {
  look_again_ = true;
  Wake();
}

void AgentLoop::Wait() {
  const absl::Duration now = SystemClock().Steady();
  const absl::Duration wait = std::clamp(
      std::min({logic_->NextWake() - now, runner_->PollInterval(), division_.NextWake() - now,
                held_exits_.NextWake() - now, use_at_ - now}),
      absl::ZeroDuration(), kMaxWait);
  timespec timeout = absl::ToTimespec(wait);
  pollfd fds[] = {{wake_fd_, POLLIN, 0},
                  {runner_->fd(), POLLIN, 0},
                  {execs_->fd(), POLLIN, 0},
                  {prefetcher_->fd(), POLLIN, 0}};
  if (ppoll(fds, std::size(fds), &timeout, nullptr) < 0) return;  // interrupted
  uint64_t count;
  if (read(wake_fd_, &count, sizeof count) < 0) return;  // no wakeup was posted
}

void AgentLoop::HandleLink() {
  std::vector<LinkEvent> events;
  {
    absl::MutexLock lock(&mutex_);
    events.swap(inbox_);
  }
  for (const LinkEvent& event : events) {
    if (event.connection != link_->connection()) continue;  // of an abandoned connection
    if (event.disconnected) {
      link_->Ended();
      if (sockets_ != nullptr) sockets_->SetSession(std::nullopt);
      logic_->OnDisconnected(Now(), event.reason);
    } else {
      logic_->OnServerMessage(Now(), event.message);
      NoteSession(event.message);
    }
    HandleTasks();
  }
}

void AgentLoop::CertificateRenewed(std::vector<AgentServer> servers) {
  absl::MutexLock lock(&mutex_);
  renewed_ = std::move(servers);
  Wake();
}

// The server ends the connection when its certificate expires, and with it the commands inside
// tasks. So the agent changes to the new certificate before that, at a time without commands.
void AgentLoop::HandleRenewal() {
  const Instant now = Now();
  {
    absl::MutexLock lock(&mutex_);
    if (!renewed_.empty()) {
      link_->SetChannels(std::exchange(renewed_, {}));
      reconnect_at_ = now.steady + 2 * kTlsReload;
    }
  }
  if (now.steady < reconnect_at_ || !execs_->idle()) return;
  reconnect_at_ = absl::InfiniteDuration();
  LogInfo("connecting with the renewed certificate", {{"node", config_.node_name()}});
  logic_->Reconnect(now);
}

void AgentLoop::NoteSession(const v1::ServerMessage& message) {
  if (sockets_ == nullptr || !message.has_welcome() || !logic_->registered()) return;
  const v1::Welcome& welcome = message.welcome();
  sockets_->SetSession(AgentSession{.node = config_.node_name(),
                                    .node_id = welcome.node_id(),
                                    .epoch = welcome.epoch(),
                                    .incarnation = welcome.incarnation(),
                                    .key = welcome.task_key(),
                                    .server = link_->current()});
}

void AgentLoop::HandleTasks() {
  for (const TaskEvent& event : runner_->Poll()) {
    LogDebug("task event", {{"task", ToString(event.id)},
                            {"kind", static_cast<int>(event.kind)},
                            {"exit_code", event.exit_code},
                            {"message", event.message}});
    if (!HoldExit(event)) logic_->OnTaskEvent(Now(), event);
    if (event.node_problem.empty()) continue;
    LogWarn("epilog", {{"task", ToString(event.id)}, {"error", event.node_problem}});
    const std::string what = absl::StrCat("task ", ToString(event.id), ": ", event.node_problem);
    if (health_.Raise(kEpilogCheck, v1::NodeCondition::DRAIN, what))
      logic_->SetConditions(health_.Conditions());
  }
  ReleaseExits();
}

// True if the exit is reported after a look at the GPUs.
bool AgentLoop::HoldExit(const TaskEvent& event) {
  if (!FailedByItself(event) || devices_.probe.empty()) return false;
  std::vector<std::string> gpus;
  for (const std::string& uuid : logic_->DevicesOf(event.id)) {
    const auto is_gpu = [&](const v1::Device& device) {
      return device.uuid() == uuid && (device.kind() == "gpu" || device.kind() == kMigDevices);
    };
    const Devices& devices = inventory_.devices();
    if (std::any_of(devices.begin(), devices.end(), is_gpu)) gpus.push_back(uuid);
  }
  if (gpus.empty()) return false;
  const bool known = std::any_of(gpus.begin(), gpus.end(),
                                 [this](const std::string& uuid) { return !WhyBad(uuid).empty(); });
  held_exits_.Hold(event, std::move(gpus), known ? 0 : checks_->LookAtGpus(), Now().steady);
  return true;
}

void AgentLoop::ReleaseExits() {
  const auto why_bad = [this](const std::string& uuid) { return WhyBad(uuid); };
  for (const TaskEvent& event : held_exits_.Take(round_over_, Now().steady, why_bad)) {
    if (event.cause == v1::TaskReport::DEVICE_FAULT) {
      LogWarn("device fault", {{"task", ToString(event.id)},
                               {"exit_code", event.exit_code},
                               {"message", event.message}});
    }
    logic_->OnTaskEvent(Now(), event);
  }
}

// Why the device, or the GPU of which it is an instance, is unfit; empty: it is not.
std::string AgentLoop::WhyBad(const std::string& uuid) const {
  std::string why = health_.WhyUnfit(uuid);
  const auto mig = mig_.find(uuid);
  return why.empty() && mig != mig_.end() ? health_.WhyUnfit(mig->second.gpu) : why;
}

void AgentLoop::HandleExecs() {
  for (v1::ExecOutput& output : execs_->Poll()) logic_->OnExecOutput(std::move(output));
}

void AgentLoop::HandleUse() {
  const Instant now = Now();
  if (now.steady < use_at_) return;
  use_at_ = now.steady + kUseInterval;
  const std::set<TaskId> visited = execs_->TakeVisited();
  logic_->SetUnusedTasks(now, use_->Unused(now.steady, logic_->InteractiveTasks(), visited));
}

void AgentLoop::HandleHealth() {
  std::vector<HealthRound> rounds;
  {
    absl::MutexLock lock(&mutex_);
    rounds.swap(rounds_);
  }
  bool changed = !rounds.empty() && !std::exchange(health_seen_, true);
  for (HealthRound& round : rounds) {
    for (const CheckResult& result : round.results) changed |= NoteResult(result);
    metrics_.gpus = std::move(round.gpus);
    std::map<std::string, int64_t> use;
    if (metrics_.gpus.has_value()) {
      for (const auto& gpu : metrics_.gpus->gpus) use.emplace(gpu.uuid, gpu.gpu_percent);
    }
    logic_->SetDeviceUse(Now(), use);
    metrics_.last_xids = std::move(round.last_xids);
    round_over_ = round.number;
  }
  if (changed) {
    logic_->SetConditions(health_.Conditions());
    ApplyDevices();
  }
  if (!rounds.empty()) ShowMetrics();
  ReleaseExits();  // after the registration with the bad device, so that it is not used again
}

absl::Status AgentLoop::StartMetrics() {
  if (config_.http_listen().empty()) return absl::OkStatus();
  auto server = HttpServer::Start(config_.http_listen());
  if (!server.ok()) return server.status();
  metrics_server_ = *std::move(server);
  metrics_server_->SetHandler("/metrics", [] { return HttpAnswer{503, "no metrics yet\n"}; });
  return absl::OkStatus();
}

// A comment, so that the response of a node without devices is not empty.
void AgentLoop::ShowMetrics() {
  if (metrics_server_ == nullptr) return;
  const HttpAnswer answer{
      200, absl::StrCat("# berth-agent of ", metrics_.node, "\n", MetricsText(metrics_)),
      kMetricsContentType};
  metrics_server_->SetHandler("/metrics", [answer] { return answer; });
}

bool AgentLoop::NoteResult(const CheckResult& result) {
  const config::v1::Health& health = config_.health();
  const bool turned =
      health_.Note(result, EffectOfCheck(health, result.check), TakesDevice(health, result.check));
  if (turned) {
    LogWarn("health", {{"node", config_.node_name()},
                       {"check", result.check},
                       {"device", result.device},
                       {"state", result.good ? "recovered" : "bad"},
                       {"message", result.message}});
  }
  return turned;
}

void AgentLoop::LogState() {
  if (logic_->registered() != was_registered_) {
    was_registered_ = logic_->registered();
    if (was_registered_) {
      logged_errors_.clear();
      LogInfo("registered", {{"node", config_.node_name()},
                             {"server", link_->address()},
                             {"epoch", logic_->epoch()},
                             {"tasks", logic_->live_tasks()}});
    }
  }
  // Each once: with several servers they alternate.
  if (was_registered_ || logic_->last_error().empty()) return;
  if (logged_errors_.size() < kMaxLoggedErrors &&
      logged_errors_.insert(logic_->last_error()).second) {
    LogWarn("not registered", {{"node", config_.node_name()},
                               {"server", config_.server()},
                               {"error", ExplainedError(config_.tls(), logic_->last_error())}});
  }
}

void AgentLoop::OnMessage(uint64_t connection, v1::ServerMessage message) {
  LinkEvent event;
  event.connection = connection;
  event.message = std::move(message);
  Post(std::move(event));
}

void AgentLoop::OnDisconnected(uint64_t connection, const std::string& reason) {
  LinkEvent event;
  event.connection = connection;
  event.disconnected = true;
  event.reason = reason;
  Post(std::move(event));
}

void AgentLoop::Post(LinkEvent event) {
  const auto room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return inbox_.size() < kMaxInbox || closed_;
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&room));
  inbox_.push_back(std::move(event));
  const uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof one) < 0) return;
}

}  // namespace berth
