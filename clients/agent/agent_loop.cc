#include "clients/agent/agent_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/agent_config.h"
#include "support/log.h"
#include "support/version.h"

namespace berth {
namespace {

constexpr size_t kMaxInbox = 4096;  // messages; above it the stream is not read
constexpr absl::Duration kMaxWait = absl::Minutes(1);
constexpr int kFailAfter = 2;
constexpr int kRecoverAfter = 3;

}  // namespace

AgentLoop::AgentLoop(const config::v1::Agent& config, v1::DeviceTopology topology)
    : config_(config),
      topology_(std::move(topology)),
      health_(
          config.health().fail_after() > 0 ? config.health().fail_after() : kFailAfter,
          config.health().recover_after() > 0 ? config.health().recover_after() : kRecoverAfter) {}

absl::StatusOr<std::unique_ptr<AgentLoop>> AgentLoop::Create(const config::v1::Agent& config,
                                                             const std::string& supervisor,
                                                             std::shared_ptr<grpc::Channel> channel,
                                                             v1::DeviceTopology topology) {
  std::unique_ptr<AgentLoop> loop(new AgentLoop(config, std::move(topology)));
  if (absl::Status status = loop->Init(supervisor, std::move(channel)); !status.ok()) return status;
  return loop;
}

AgentLoop::~AgentLoop() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  checks_.reset();
  link_.reset();  // before what its events need
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
    chmod(directory.c_str(), 0711);  // tasks' users pass through to their own directories
  lock_fd_ = open((directory + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) return ErrnoStatus(errno, absl::StrCat("open ", directory, "/lock"));
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, ": another agent uses this state directory"));
  }
  auto journal = FileJournal::Open(SystemDisk(), directory, {});
  if (!journal.ok()) return journal.status();
  journal_ = *std::move(journal);
  return absl::OkStatus();
}

// The agent's id is for the life of the state directory; another boot id than the last one means a
// reboot.
absl::Status AgentLoop::WriteIdentity(bool* rebooted) {
  agent::v1::Identity identity = journal_->state().identity;
  *rebooted = identity.boot_id() != boot_id_;
  if (!*rebooted && !identity.agent_id().empty()) return absl::OkStatus();
  identity.set_version(kJournalVersion);
  identity.set_boot_id(boot_id_);
  if (identity.agent_id().empty()) identity.set_agent_id(NewAgentId());
  agent::v1::JournalRecord record;
  *record.mutable_identity() = identity;
  return journal_->Append({record});
}

absl::Status AgentLoop::MakeRunner(const std::string& supervisor) {
  const auto gpu = [](const v1::Device& device) { return device.kind() == "gpu"; };
  EnvironmentContext context;
  context.node = config_.node_name();
  context.address = config_.address();
  context.has_gpus = std::any_of(config_.devices().begin(), config_.devices().end(), gpu);
  context.mps_pipe_directory = config_.sharing().mps_pipe_directory();
  for (const v1::Device& device : config_.devices()) {
    context.device_memory.emplace(device.uuid(), device.memory_bytes());
  }
  context.nccl_topo_file = NcclTopologyFile(config_.discovery());
  const std::string state = std::filesystem::absolute(config_.state_directory());
  auto isolation = Isolation::Create(config_, state);
  if (!isolation.ok()) return isolation.status();
  for (const std::string& warning : (*isolation)->warnings())
    LogWarn("isolation", {{"node", config_.node_name()}, {"warning", warning}});
  LogInfo("isolation", {{"node", config_.node_name()}, {"tasks", (*isolation)->description()}});
  auto runner = ProcessRunner::Create({.state_directory = state,
                                       .supervisor = supervisor,
                                       .first_port = config_.first_port(),
                                       .last_port = config_.last_port(),
                                       .log_file_bytes = config_.log_file_bytes(),
                                       .log_files = config_.log_files(),
                                       .context = context,
                                       .isolation = *std::move(isolation)});
  if (!runner.ok()) return runner.status();
  runner_ = *std::move(runner);
  execs_ = std::make_unique<ExecHost>(supervisor, runner_->tasks_directory());
  return absl::OkStatus();
}

absl::Status AgentLoop::Init(const std::string& supervisor,
                             std::shared_ptr<grpc::Channel> channel) {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return ErrnoStatus(errno, "eventfd");
  if (absl::Status status = ReadBootId(&boot_id_); !status.ok()) return status;
  if (absl::Status status = OpenState(); !status.ok()) return status;
  if (absl::Status status = MakeRunner(supervisor); !status.ok()) return status;
  if (absl::Status status = WriteIdentity(&rebooted_); !status.ok()) return status;
  logs_ = std::make_unique<LogFiles>(runner_->tasks_directory());
  random_ =
      std::make_unique<Random>(static_cast<uint64_t>(absl::ToUnixNanos(SystemClock().Now())) ^
                               std::hash<std::string>()(journal_->state().identity.agent_id()));
  link_ = std::make_unique<GrpcLink>(channel, *this);
  v1::NodeInventory inventory = MakeInventory(config_);
  *inventory.mutable_topology() = topology_;
  logic_ = std::make_unique<AgentLogic>(
      AgentLogic::Options{.node = config_.node_name(),
                          .agent_id = journal_->state().identity.agent_id(),
                          .boot_id = boot_id_,
                          .version = kBerthVersion,
                          .inventory = std::move(inventory),
                          .keep_ended = FromProto(config_.keep_ended())},
      *link_, *journal_, *runner_, *logs_, *random_);
  logic_->SetExecRunner(execs_.get());
  return absl::OkStatus();
}

Instant AgentLoop::Now() { return {.steady = SystemClock().Steady(), .wall = SystemClock().Now()}; }

absl::Status AgentLoop::Run() {
  AgentLogic::Recovered recovered;
  recovered.journal = journal_->state();
  recovered.rebooted = rebooted_;
  if (!rebooted_) recovered.lease_deadline = ProcessRunner::ReadLease(config_.state_directory());
  logic_->Begin(Now(), recovered);
  checks_ = std::make_unique<HealthChecks>(
      config_.health(), config_.state_directory(), [this](std::vector<CheckResult> results) {
        absl::MutexLock lock(&mutex_);
        checked_.insert(checked_.end(), results.begin(), results.end());
        const uint64_t one = 1;
        if (write(wake_fd_, &one, sizeof one) < 0) return;  // full: it wakes up anyway
      });
  while (!stopping_ && logic_->fatal().ok()) {
    HandleTasks();
    HandleLink();
    HandleHealth();
    logic_->Tick(Now());
    HandleTasks();
    HandleExecs();
    LogState();
    if (!stopping_ && logic_->fatal().ok()) Wait();
  }
  return logic_->fatal();
}

void AgentLoop::Stop() {
  stopping_ = true;
  const uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof one) < 0) return;  // full: it wakes up anyway
}

void AgentLoop::Wait() {
  const absl::Duration now = SystemClock().Steady();
  const absl::Duration wait = std::clamp(
      std::min(logic_->NextWake() - now, runner_->PollInterval()), absl::ZeroDuration(), kMaxWait);
  timespec timeout = absl::ToTimespec(wait);
  pollfd fds[] = {{wake_fd_, POLLIN, 0}, {runner_->fd(), POLLIN, 0}, {execs_->fd(), POLLIN, 0}};
  if (ppoll(fds, 3, &timeout, nullptr) < 0) return;  // interrupted
  uint64_t count;
  if (read(wake_fd_, &count, sizeof count) < 0) return;  // nothing was posted
}

void AgentLoop::HandleLink() {
  std::vector<LinkEvent> events;
  {
    absl::MutexLock lock(&mutex_);
    events.swap(inbox_);
  }
  for (const LinkEvent& event : events) {
    if (event.connection != link_->connection()) continue;  // of a connection that was given up
    if (event.disconnected) {
      link_->Ended();
      logic_->OnDisconnected(Now(), event.reason);
    } else {
      logic_->OnServerMessage(Now(), event.message);
    }
    HandleTasks();
  }
}

void AgentLoop::HandleTasks() {
  for (const TaskEvent& event : runner_->Poll()) {
    LogDebug("task event", {{"task", ToString(event.id)},
                            {"kind", static_cast<int>(event.kind)},
                            {"exit_code", event.exit_code},
                            {"message", event.message}});
    logic_->OnTaskEvent(Now(), event);
    if (event.node_problem.empty()) continue;
    LogWarn("epilog", {{"task", ToString(event.id)}, {"error", event.node_problem}});
    const std::string what = absl::StrCat("task ", ToString(event.id), ": ", event.node_problem);
    if (health_.Raise(kEpilogCheck, v1::NodeCondition::DRAIN, what))
      logic_->SetConditions(health_.Conditions());
  }
}

void AgentLoop::HandleExecs() {
  for (v1::ExecOutput& output : execs_->Poll()) logic_->OnExecOutput(std::move(output));
}

void AgentLoop::HandleHealth() {
  std::vector<CheckResult> results;
  {
    absl::MutexLock lock(&mutex_);
    results.swap(checked_);
  }
  bool changed = !results.empty() && !std::exchange(health_seen_, true);
  for (const CheckResult& result : results) {
    const bool turned = health_.Note(result, EffectOfCheck(config_.health(), result.check));
    if (turned) {
      LogWarn("health", {{"node", config_.node_name()},
                         {"check", result.check},
                         {"state", result.good ? "good again" : "bad"},
                         {"message", result.message}});
    }
    changed |= turned;
  }
  if (changed) logic_->SetConditions(health_.Conditions());
}

void AgentLoop::LogState() {
  if (logic_->registered() != was_registered_) {
    was_registered_ = logic_->registered();
    if (was_registered_) {
      logged_error_.clear();
      LogInfo("registered", {{"node", config_.node_name()},
                             {"server", config_.server()},
                             {"epoch", logic_->epoch()},
                             {"tasks", logic_->live_tasks()}});
    }
  }
  if (!was_registered_ && logic_->last_error() != logged_error_) {
    logged_error_ = logic_->last_error();
    LogWarn("not registered", {{"node", config_.node_name()},
                               {"server", config_.server()},
                               {"error", ExplainedError(config_.tls(), logged_error_)}});
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
