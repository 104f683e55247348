// The real agent: one thread that passes events to the logic, woken by descriptors and deadlines.
#ifndef BERTH_CLIENTS_AGENT_AGENT_LOOP_H_
#define BERTH_CLIENTS_AGENT_AGENT_LOOP_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "berth/config/v1/config.pb.h"
#include "clients/agent/device_scout.h"
#include "clients/agent/exec_host.h"
#include "clients/agent/gpu_division.h"
#include "clients/agent/gpu_metrics.h"
#include "clients/agent/grpc_link.h"
#include "clients/agent/health_checks.h"
#include "clients/agent/held_exits.h"
#include "clients/agent/journal.h"
#include "clients/agent/log_files.h"
#include "clients/agent/logic.h"
#include "clients/agent/notice_files.h"
#include "clients/agent/prefetcher.h"
#include "clients/agent/process_runner.h"
#include "clients/agent/task_sockets.h"
#include "clients/agent/use_watch.h"
#include "support/clock.h"
#include "support/http/http_server.h"
#include "support/random.h"

namespace berth {

// How the agent discovers devices, besides those that config.devices() has at the start.
struct AgentDevices {
  std::string probe = {};           // berth-probe; empty: devices are not watched or scanned again
  config::v1::Agent declared = {};  // the configuration before discovery added to it
  DiscoveredDevices found = {};     // its result
};

// Connections to berthd.
struct AgentChannels {
  std::vector<AgentServer> own;
  // For the calls of tasks, apart from heartbeats, to the same servers. Empty: tasks have no
  // sockets.
  std::vector<std::shared_ptr<grpc::Channel>> tasks = {};
};

class AgentLoop final : public LinkEvents, private GpuDivider {
 public:
  // Opens the state directory (one agent at a time: otherwise FAILED_PRECONDITION), the journal and
  // the runner. `config` is complete and checked.
  static absl::StatusOr<std::unique_ptr<AgentLoop>> Create(const config::v1::Agent& config,
                                                           const std::string& supervisor,
                                                           AgentChannels channels,
                                                           AgentDevices devices = {});
  ~AgentLoop() override;

  // Runs until Stop, or an error after which the process must end. Tasks keep running in both
  // cases.
  absl::Status Run();
  // From any thread or signal handler.
  void Stop();
  // The certificate was renewed: connects again over `servers`, once no command runs inside a task.
  // From any thread.
  void CertificateRenewed(std::vector<AgentServer> servers);
  // Scans the devices now, and forgets which GPUs had XIDs. From any thread, while Run runs.
  void LookAgain();

  void OnMessage(uint64_t connection, v1::ServerMessage message) override;
  void OnDisconnected(uint64_t connection, const std::string& reason) override;

 private:
  struct LinkEvent {
    uint64_t connection = 0;
    bool disconnected = false;
    v1::ServerMessage message;
    std::string reason;
  };

  AgentLoop(const config::v1::Agent& config, AgentDevices devices);
  absl::Status Init(const std::string& supervisor, const AgentChannels& channels);
  absl::Status OpenState();
  void Post(LinkEvent event);
  void Wait();
  void HandleLink();
  void HandleTasks();
  // Tasks call with the session that the message begins.
  void NoteSession(const v1::ServerMessage& message);
  bool HoldExit(const TaskEvent& event);
  void ReleaseExits();
  std::string WhyBad(const std::string& uuid) const;
  void HandleExecs();
  void HandleUse();
  void HandleRenewal();
  void HandleHealth();
  void HandleDevices();
  void ApplyScan(DeviceScout::Look look);
  void Divide(const v1::DivideGpu& wish) override;
  void HandleDivision();
  bool NoteDivision(const DividedGpu& divided);
  void AddTaints(v1::NodeInventory* inventory) const;
  void ApplyDevices();
  bool NoteResult(const CheckResult& result);
  void SaveKnown(const v1::NodeInventory& known);
  void StartThreads();
  absl::Status StartMetrics();
  void ShowMetrics();
  void Wake();
  void FindSaver();
  absl::Status MakeRunner(const std::string& supervisor);
  void LogState();
  Instant Now();

  const config::v1::Agent config_;
  const AgentDevices devices_;
  int wake_fd_ = -1;
  int lock_fd_ = -1;
  std::atomic<bool> stopping_ = false;
  absl::Duration reconnect_at_ = absl::InfiniteDuration();  // steady
  std::string boot_id_;
  bool rebooted_ = false;
  std::unique_ptr<FileJournal> journal_;
  std::unique_ptr<TaskSockets> sockets_;  // null: tasks have none
  std::unique_ptr<ProcessRunner> runner_;
  std::unique_ptr<LogFiles> logs_;
  std::unique_ptr<NoticeFiles> notices_;
  std::unique_ptr<ExecHost> execs_;
  std::unique_ptr<Prefetcher> prefetcher_;
  std::unique_ptr<UseWatch> use_;
  absl::Duration use_at_;  // the next look, on the steady clock
  HealthBook health_;
  std::unique_ptr<Random> random_;
  std::unique_ptr<GrpcLink> link_;
  std::unique_ptr<AgentLogic> logic_;
  v1::NodeInventory inventory_;          // as last discovered
  std::map<std::string, MigPlace> mig_;  // as last discovered
  // A request of the server on this connection, handled after the logic has returned.
  struct Wish {
    uint64_t connection = 0;
    v1::DivideGpu message;
  };
  std::optional<Wish> wish_;
  GpuDivision division_;
  std::shared_ptr<Isolation> isolation_;
  std::string cuda_checkpoint_;       // NVIDIA's program; empty: there is none, or it is not used
  v1::NodeInventory sent_inventory_;  // last sent to the server
  v1::NodeInventory known_;           // what STATE/devices holds
  std::set<std::string> lines_;       // lines of discovery that were logged
  AgentMetrics metrics_;
  std::unique_ptr<HttpServer> metrics_server_;  // null: not configured
  bool was_registered_ = false;
  std::set<std::string> logged_errors_;  // since the last registration

  absl::Mutex mutex_;
  std::vector<AgentServer> renewed_ ABSL_GUARDED_BY(mutex_);
  std::vector<LinkEvent> inbox_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<HealthRound> rounds_ ABSL_GUARDED_BY(mutex_);
  std::optional<DeviceScout::Look> look_ ABSL_GUARDED_BY(mutex_);
  bool health_seen_ = false;
  HeldExits held_exits_;
  uint64_t round_over_ = 0;  // the latest of the health checks
  std::atomic<bool> look_again_ = false;
  std::unique_ptr<HealthChecks> checks_;  // last, because its thread uses the other members
  std::unique_ptr<DeviceScout> scout_;    // last, too
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_AGENT_LOOP_H_
