// Runs a workload through the engine in simulated time (docs/replay.md).
#ifndef BERTH_CLIENTS_REPLAY_REPLAY_H_
#define BERTH_CLIENTS_REPLAY_REPLAY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/scenario.pb.h"
#include "clients/replay/amounts.h"
#include "clients/replay/job_template.h"
#include "clients/replay/network_tier.h"
#include "clients/replay/outages.h"
#include "clients/replay/places.h"
#include "clients/replay/progress.h"
#include "clients/replay/record.h"
#include "clients/replay/share_meter.h"
#include "clients/replay/watch.h"
#include "clients/replay/workload.h"

namespace berth::replay {

// What became of one job. Times since the workload's beginning of time.
struct Outcome {
  // When all its tasks first had a place; infinite: never.
  Duration first_start = absl::InfiniteDuration();
  Duration end = absl::InfiniteDuration();
  int32_t tier = kNoTier;     // of its last start, for jobs of several tasks (network_tier.h)
  int32_t preemptions = 0;    // times that it was stopped for the sake of another
  int32_t failures = 0;       // times that a node of it failed
  int64_t evicted_tasks = 0;  // in all preemptions
  bool over = false;          // it has ended, as the meter has seen
  // With ReplayOptions::places: when a task of it last got a place, and the last place of each.
  Duration last_start = absl::InfiniteDuration();
  std::vector<TaskPlace> places = {};
};

// A queue, a user, or all: what their jobs held and lost.
struct OwnerSum {
  std::string name;
  ShareSum share;            // from the first submit to the end of the replay
  Amounts lost;              // of `share.held`: by evicted tasks
  Amounts lost_to_failures;  // likewise, by tasks that were stopped because a node failed
  std::vector<size_t> jobs;  // in Workload::jobs
};

struct ReplayRun {
  std::vector<Outcome> outcomes;       // of Workload::jobs
  std::vector<std::string> resources;  // by kind; the index of Amounts and Resources
  Resources capacity;                  // of all nodes
  OwnerSum total;
  std::vector<OwnerSum> queues, users;                  // by name
  std::optional<double> queue_fairness, user_fairness;  // ShareMeter::Fairness
  std::optional<double> fragmentation;                  // RoomMeter::Fragmentation
  std::map<int32_t, std::string> tiers;                 // names of those in `outcomes`
  bool interrupted = false;  // before its end: only outcomes of jobs that have ended are whole
  int64_t cycles = 0;
  int64_t mixes = 0;  // times that planning was told which requests come (mix_feed.h)
  Record record;      // empty unless asked for
  PlaceNames names;   // likewise
};

// A cluster for `workload`: one node of so many cores.
sim::v1::Scenario OneMachine(int64_t cores);

struct ReplayOptions {
  JobTemplate jobs;              // how they are submitted
  Progress* progress = nullptr;  // null: jobs run as long as the workload says. Outlives the call
  std::vector<Outage> outages;   // by time
  bool record = false;
  bool places = false;  // note where tasks run
  // Null: nobody looks on. If it says stop, the replay ends there (ReplayRun::interrupted).
  // Outlives the call.
  Watch* watch = nullptr;
};

// The cluster: nodes, queues, HyperNodes and configuration of a scenario. INVALID_ARGUMENT if it
// has jobs or steps, for a job whose queue is not declared, for an outage of a node that is not
// there; INTERNAL for a fault of ours.
absl::StatusOr<ReplayRun> Replay(const Workload& workload, const sim::v1::Scenario& cluster,
                                 const ReplayOptions& options = {});

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_REPLAY_H_
