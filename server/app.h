// App: a whole berthd in one object. Loads, wires loop, controllers and services, listens, and
// stops in order.
//
//   absl::StatusOr<std::unique_ptr<App>> app = App::Start(config, open_store);
//   ... wait for SIGTERM ...
//   (*app)->Stop();
#ifndef BERTH_SERVER_APP_H_
#define BERTH_SERVER_APP_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/config/v1/config.pb.h"
#include "core/engine/policies.h"
#include "server/committer.h"
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
#include "server/event_log.h"
#include "server/live.h"
#include "server/loop.h"
#include "server/loop_thread.h"
#include "server/metrics.h"
#include "server/queue_conditions.h"
#include "server/reload.h"
#include "server/services/acceptor.h"
#include "server/services/agent_service.h"
#include "server/services/cluster_service.h"
#include "server/services/explain_service.h"
#include "server/services/hyper_node_service.h"
#include "server/services/job_service.h"
#include "server/services/node_service.h"
#include "server/services/queue_service.h"
#include "server/services/watch_service.h"
#include "server/watch_hub.h"
#include "storage/preserved.h"
#include "storage/store_health.h"
#include "support/http/http_server.h"

namespace berth {

using StoreOpener = std::function<absl::StatusOr<std::unique_ptr<Store>>()>;

class App {
 public:
  // `config` is completed (CompleteConfig). The health pages answer from the beginning, "loading"
  // until the store is open and loaded. Returns when calls are taken.
  // `reread` reads and completes the configuration anew, for Reload; null: it cannot. `health` is
  // the store's; null: it has none.
  static absl::StatusOr<std::unique_ptr<App>> Start(const config::v1::Server& config,
                                                    const StoreOpener& open_store,
                                                    Reloader::Read reread = nullptr,
                                                    std::shared_ptr<StoreHealth> health = nullptr);
  // Stop().
  ~App();

  // Before a planned stop: agents get a longer lease, so that their tasks outlast it. A fraction of
  // a second; a few seconds if an agent or the disk does not answer.
  void GrantStopLease() { maintenance_->GrantStopLease(); }
  // Closes the streams of agents and watchers, answers the calls in progress once the disk has what
  // they wait for (for up to kStopPatience), takes no more, writes what is pending, and closes the
  // store. A fraction of a second, unless the disk is slow or full. Idempotent.
  void Stop();
  static constexpr absl::Duration kStopPatience = absl::Seconds(5);

  // server/reload.h. Thread-safe.
  absl::StatusOr<std::vector<ConfigChange>> Reload() { return reloader_.Reload(false); }

  int port() const { return port_; }
  int http_port() const { return http_ != nullptr ? http_->port() : 0; }
  Loop& loop() { return *loop_; }
  WatchHub& watch_hub() { return *watches_; }

 private:
  App(const config::v1::Server& config, Reloader::Read reread, std::shared_ptr<StoreHealth> health);
  // Refuses what the store cannot hold yet.
  Reloader::Read Holdable(Reloader::Read reread) const;

  absl::Status StartHttp();
  absl::Status Load(const StoreOpener& open_store);
  void Wire();
  void WireServices();
  void Adopt(const config::v1::Server& config);
  void KeepLog();
  absl::Status Listen();
  void RunLoop();
  HttpAnswer Health() const;
  HttpAnswer Readiness() const;
  void Housekeeping();
  void TendReserve();
  void StopCalls();
  bool AwaitAnswers();

  // In order of need: what comes later uses what comes earlier.
  const config::v1::Server config_;  // at the start
  Live<JobDefaults> job_defaults_;
  Live<absl::Duration> history_;
  Reloader reloader_;
  Time start_ = SystemClock().Now();
  std::atomic<bool> ready_{false};
  std::atomic<int64_t> loop_seen_nanos_{0};  // steady time of the loop's last sign of life
  std::unique_ptr<HttpServer> http_;
  const std::shared_ptr<StoreHealth> health_;  // may be null
  std::unique_ptr<Store> store_;
  Preserved preserved_;
  GrantedLease granted_lease_;  // by earlier processes; LeaseOptions::granted_before
  RequestTable requests_;
  TurnEdits edits_;
  Policies policies_, held_policies_;
  std::unique_ptr<GroupCommitter> committer_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<LeaseKeeper> leases_;
  std::unique_ptr<ThreadExecutor> dispatch_executor_, watch_executor_, read_executor_,
      log_executor_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<MigKeeper> migs_;
  std::unique_ptr<EndedKeeper> ended_;
  std::unique_ptr<MixKeeper> mixes_;
  std::unique_ptr<ThreadExecutor> price_executor_;  // after mixes_: it runs for it
  std::unique_ptr<AgentGateway> gateway_;
  std::unique_ptr<Maintenance> maintenance_;
  std::unique_ptr<LogRelay> logs_;
  std::unique_ptr<ExecRelay> execs_;
  std::unique_ptr<WatchHub> watches_;
  ProgressCounter progress_;
  RestartWatch restarts_;
  RefusedStarts refused_starts_;
  EventLog event_log_;
  std::unique_ptr<Metrics> metrics_;
  ServiceContext context_;
  std::unique_ptr<JobService> job_service_;
  std::unique_ptr<QueueService> queue_service_;
  std::unique_ptr<NodeService> node_service_;
  std::unique_ptr<WatchService> watch_service_;
  std::unique_ptr<ClusterService> cluster_service_;
  std::unique_ptr<AgentService> agent_service_;
  std::unique_ptr<ExplainService> explain_service_;
  std::unique_ptr<HyperNodeService> hyper_node_service_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<LoopThread> loop_thread_;
  int port_ = 0;
  std::atomic<bool> stopped_{false};
  bool told_paused_ = false;
  std::atomic<bool> tending_{false};
};

}  // namespace berth

#endif  // BERTH_SERVER_APP_H_
