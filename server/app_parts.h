// Internal to App: its parts, in order of dependency.
#ifndef BERTH_SERVER_APP_PARTS_H_
#define BERTH_SERVER_APP_PARTS_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "berth/config/v1/config.pb.h"
#include "core/engine/policies.h"
#include "server/app.h"
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
#include "server/controllers/prefetch_keeper.h"
#include "server/controllers/progress_book.h"
#include "server/convert/values.h"
#include "server/ha/high_availability.h"
#include "server/history/history.h"
#include "server/listeners/event_log.h"
#include "server/listeners/job_waits.h"
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
#include "server/services/history_service.h"
#include "server/services/hyper_node_service.h"
#include "server/services/job_service.h"
#include "server/services/node_service.h"
#include "server/services/open_streams.h"
#include "server/services/priority_class_service.h"
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
  bool handed_over() const { return handed_over_.load(); }
  bool TryHandOver() { return ha_ != nullptr && loop_->leads() && HandOver("").ok(); }

 private:
  // Refuses settings that the store cannot hold yet.
  Reloader::Read Holdable(Reloader::Read reread) const;

  absl::Status StartHttp();
  absl::Status Load(const StoreOpener& open_store);
  void Wire();
  void WireUsage();
  void WireServices();
  void Adopt(const config::v1::Server& config);
  void MaintainLog();
  void WarnWithoutRules() const;
  absl::Status Listen();
  void RunLoop();
  // app_ha.cc
  void JoinCluster();
  void TakeOverRequests(const Batch& batch);
  void LeadCluster(uint64_t term);
  absl::Status HandOver(const std::string& to);
  void Leave();
  absl::Duration LoopSilence() const;
  HttpAnswer Health() const;
  HttpAnswer Readiness() const;
  HttpAnswer StandbyReadiness() const;
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
  std::shared_ptr<Store> store_;
  std::shared_ptr<HighAvailability> ha_;  // null: this server is alone
  uint64_t last_term_ = 0;                // OpenedStore::term
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
  std::unique_ptr<PrefetchKeeper> prefetches_;
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
  std::unique_ptr<History> usage_;
  ProgressCounter progress_;
  RestartWatch restarts_;
  RefusedStarts refused_starts_;
  JobWaits waits_;
  Histogram submit_seconds_;
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
  std::unique_ptr<PriorityClassService> priority_class_service_;
  std::unique_ptr<AuditService> audit_service_;
  std::unique_ptr<HistoryService> history_service_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<StreamGuard> guard_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<LoopThread> loop_thread_;
  int port_ = 0;
  std::atomic<bool> stopped_{false};
  bool told_paused_ = false;
  std::atomic<bool> tending_{false};
  std::atomic<bool> handed_over_{false};
};

}  // namespace berth

#endif  // BERTH_SERVER_APP_PARTS_H_
