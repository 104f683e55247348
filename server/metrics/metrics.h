// Metrics for Prometheus. Base units (seconds, bytes, cores), prefix "berth_". Sums are computed at
// a scrape, in steps under the reader lock; totals are counted where the events happen.
#ifndef BERTH_SERVER_METRICS_METRICS_H_
#define BERTH_SERVER_METRICS_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "server/controllers/agent_gateway.h"
#include "server/controllers/dispatcher.h"
#include "server/controllers/lease_keeper.h"
#include "server/controllers/log_relay.h"
#include "server/controllers/mig_keeper.h"
#include "server/controllers/progress_book.h"
#include "server/ha/high_availability.h"
#include "server/history/history.h"
#include "server/listeners/job_conditions.h"
#include "server/listeners/job_waits.h"
#include "server/listeners/queue_conditions.h"
#include "server/listeners/watch_hub.h"
#include "server/loop/committer.h"
#include "server/loop/loop.h"
#include "storage/store_health.h"
#include "support/tls.h"

namespace berth {

// The sources of the metrics. All outlive the collector.
struct MetricSources {
  Loop* loop = nullptr;
  const GroupCommitter* committer = nullptr;
  const AgentGateway* gateway = nullptr;
  const Dispatcher* dispatcher = nullptr;
  const LeaseKeeper* leases = nullptr;
  const LogRelay* logs = nullptr;
  const WatchHub* watches = nullptr;
  const MigKeeper* migs = nullptr;
  const StoreHealth* health = nullptr;  // null: the store has none
  Time start;
  const RestartWatch* restarts = nullptr;
  const RefusedStarts* refused_starts = nullptr;
  const ProgressBook* told = nullptr;
  const HighAvailability* ha = nullptr;  // null: this server is alone
  const JobWaits* waits = nullptr;
  const Histogram* submit_seconds = nullptr;
  std::string data_directory;
  TlsFiles tls;
  const History* usage = nullptr;  // null: there is none
};

inline constexpr size_t kReleaseReasons = static_cast<size_t>(ReleaseReason::kGangExpired) + 1;

// Counts jobs and tasks as they become durable.
class ProgressCounter final : public DurableListener {
 public:
  void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                     std::shared_ptr<const std::string> turn) override;

  std::atomic<uint64_t> jobs_submitted{0}, tasks_bound{0}, tasks_started{0}, tasks_exited{0};
  std::atomic<uint64_t> nodes_silenced{0}, nodes_fenced{0};
  std::atomic<uint64_t> refused_by_job{0}, refused_by_node{0}, refused_by_nobody{0};
  std::atomic<uint64_t> pauses_by_user{0}, pauses_by_preemption{0};
  // By outcome: succeeded, failed, cancelled.
  std::array<std::atomic<uint64_t>, 3> jobs_ended{};
  std::array<std::atomic<uint64_t>, kReleaseReasons> tasks_released{};  // by ReleaseReason
};

// Thread-safe.
class Metrics final : public prometheus::Collectable {
 public:
  Metrics(const MetricSources& sources, const ProgressCounter* progress)
      : sources_(sources), progress_(*progress) {}

  std::vector<prometheus::MetricFamily> Collect() const override;
  // In Prometheus' text format.
  std::string Text() const;

 private:
  const MetricSources sources_;
  const ProgressCounter& progress_;
};

}  // namespace berth

#endif  // BERTH_SERVER_METRICS_METRICS_H_
