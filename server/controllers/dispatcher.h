// Dispatcher: sends decisions to agents. TasksBound -> Prepare, TasksStarted -> Start,
// TasksReleased -> Kill, in the order of the decisions and never before they are durable.
//
// In the turn (TurnObserver) it captures the context of each decision: places, ranks, devices,
// master, and the epoch of each node. When the turn is durable, it builds and sends the messages on
// an executor. There it may read the cold part of the job (command, environment) from the store.
// Cold parts of jobs just submitted are cached, so that a burst reads nothing.
#ifndef BERTH_SERVER_CONTROLLERS_DISPATCHER_H_
#define BERTH_SERVER_CONTROLLERS_DISPATCHER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "berth/v1/job.pb.h"
#include "server/config/live.h"
#include "server/controllers/cold_cache.h"
#include "server/controllers/executor.h"
#include "server/controllers/launch.h"
#include "server/convert/job.h"
#include "server/loop/histogram.h"
#include "server/loop/turn.h"
#include "storage/store.h"
#include "support/clock.h"

namespace berth {

class AgentGateway;

inline constexpr size_t kColdCacheBytes = size_t{64} << 20;

struct DispatchCounters {
  std::atomic<uint64_t> prepares{0}, starts{0}, kills{0}, checkpoints{0}, dumps{0}, store_reads{0},
      unreadable{0}, prefetches{0}, freezes{0};
  Histogram seconds;  // from handover to sent, per Send
};

class Dispatcher final : public TurnObserver {
 public:
  // All outlive the dispatcher; the executor is drained before the gateway goes.
  Dispatcher(const Store* store, Executor* executor, Clock* clock = &SystemClock());
  // Before the first turn.
  void SetGateway(AgentGateway* gateway) { gateway_ = gateway; }
  // Before the first turn; null: any grace with which a job was accepted. Outlives the dispatcher.
  void SetDefaults(const Live<JobDefaults>* defaults) { defaults_ = defaults; }

  // Before the first turn; null: no image is known. Outlives the dispatcher.
  void SetImages(const ImageBook* images) { images_ = images; }

  Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                       const ColdParts& cold) override;

  // Sends orders after all earlier ones. For orders that a registration repeats.
  void Send(std::vector<LaunchOrder> orders);

  const DispatchCounters& counters() const { return counters_; }

 private:
  void SendNow(const LaunchOrder& order);
  // The group has an image, and the node can get it in advance.
  bool WantsPrefetch(const LaunchOrder& order, const v1::JobSpec& cold) const;
  void Count(OrderKind kind);
  // The job's cold part, from memory or the store.
  absl::StatusOr<ColdPart> FindCold(JobId job);
  // The same, parsed; the latest is cached, because a gang's orders are consecutive. Executor only.
  absl::StatusOr<const v1::JobSpec*> ParsedCold(JobId job);

  const Store* const store_;
  Executor* const executor_;
  Clock* const clock_;
  AgentGateway* gateway_ = nullptr;
  const Live<JobDefaults>* defaults_ = nullptr;
  const ImageBook* images_ = nullptr;
  ColdCache cache_;
  JobId parsed_job_;  // both: executor only
  v1::JobSpec parsed_;
  DispatchCounters counters_;
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_DISPATCHER_H_
