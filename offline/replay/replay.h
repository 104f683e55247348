// Runs a workload through the engine in simulated time (docs/developers/replay.md).
#ifndef BERTH_OFFLINE_REPLAY_REPLAY_H_
#define BERTH_OFFLINE_REPLAY_REPLAY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/scenario.pb.h"
#include "offline/replay/amounts.h"
#include "offline/replay/fault_file.h"
#include "offline/replay/job_template.h"
#include "offline/replay/network_tier.h"
#include "offline/replay/outages.h"
#include "offline/replay/places.h"
#include "offline/replay/progress.h"
#include "offline/replay/record.h"
#include "offline/replay/share_meter.h"
#include "offline/replay/watch.h"
#include "offline/replay/workload.h"

namespace berth::replay {

// The outcome of one job. Times since the beginning of the workload.
struct Outcome {
  // The first time that all its tasks had a place; infinite: never.
  Duration first_start = absl::InfiniteDuration();
  Duration end = absl::InfiniteDuration();
  int32_t tier = kNoTier;     // of its last start, for jobs of several tasks (network_tier.h)
  int32_t preemptions = 0;    // times that it was stopped for another job
  int32_t failures = 0;       // times that one of its nodes failed
  int64_t evicted_tasks = 0;  // in all preemptions
  bool over = false;          // it has ended, and the meter has counted it
  // With ReplayOptions::places: when a task last got a place, and the last place of each task.
  Duration last_start = absl::InfiniteDuration();
  std::vector<TaskPlace> places = {};
};

// A queue, a user, or all: the resources that their jobs held and lost.
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
  std::optional<double> fragmentation;                  // FragmentationMeter::Fragmentation
  std::map<int32_t, std::string> tiers;                 // names of those in `outcomes`
  int64_t strikes = 0;                                  // faults, with ReplayOptions::faults
  std::map<std::string, int64_t> interruptions;  // of these, those that stopped a job, by cause
  bool interrupted = false;  // before its end: only outcomes of ended jobs are complete
  int64_t cycles = 0;
  int64_t mixes = 0;  // reports of the request mix to planning (mix_feed.h)
  Record record;      // empty unless requested
  PlaceNames names;   // likewise
};

// A cluster of one node with this many cores.
sim::v1::Scenario OneMachine(int64_t cores);

struct ReplayOptions {
  JobTemplate jobs;              // how they are submitted
  Progress* progress = nullptr;  // null: run times of the workload. Must outlive the call
  std::vector<Outage> outages;   // by time
  // Null: none. Needs a `progress` that models them, and no outages. Must outlive the call.
  const FaultModel* faults = nullptr;
  uint64_t fault_seed = 1;
  bool record = false;
  bool places = false;  // note where tasks run
  // Null: no watch. If it is stopped, the replay ends (ReplayRun::interrupted). Must outlive the
  // call.
  Watch* watch = nullptr;
};

// The cluster: nodes, queues, HyperNodes and configuration of a scenario. INVALID_ARGUMENT if it
// has jobs or steps, for a job with an undeclared queue, for an outage of an unknown node, or for
// faults that are too frequent;
// INTERNAL for a bug of Berth.
absl::StatusOr<ReplayRun> Replay(const Workload& workload, const sim::v1::Scenario& cluster,
                                 const ReplayOptions& options = {});

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_REPLAY_H_
