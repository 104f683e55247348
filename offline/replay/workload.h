// A workload: jobs from a log or a generator, to be run again in simulated time.
#ifndef BERTH_OFFLINE_REPLAY_WORKLOAD_H_
#define BERTH_OFFLINE_REPLAY_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/model/job.h"

namespace berth::replay {

// How a job ended in the workload. It is replayed as long as it ran, however it ended.
enum class TraceEnd : uint8_t { kCompleted, kFailed, kCancelled };

struct TraceGroup {
  std::string name;
  int32_t tasks = 1;
  TaskShape shape;
};

// What its checkpoints and restarts cost (training_costs.h), as far as the log says.
struct TraceCosts {
  std::optional<Duration> interval = std::nullopt, checkpoint = std::nullopt,
                          restart = std::nullopt;
};

struct TraceJob {
  std::string name;                               // from the log, or its number there: for people
  Duration submit;                                // since the time origin of the log
  Duration run;                                   // > 0; of each task, from its start
  Duration requested = absl::InfiniteDuration();  // walltime; at least `run`
  int32_t tasks = 1;                              // a gang, each of this shape
  TaskShape shape;
  std::vector<TraceGroup> more = {};  // further groups of the same gang, of other shapes
  std::string user;
  std::string queue;  // empty: unknown
  int32_t priority = 0;
  bool preemptible = false;
  TraceEnd ended = TraceEnd::kCompleted;
  // Other known fields: placement, topology, deadline, ... Name, queue, dependencies and the fields
  // above are not read from it. Times are real times. Null: none.
  std::shared_ptr<const JobSpec> spec = nullptr;
  bool overran = false;  // it ran longer than requested: `run` is the requested time
  std::string training;  // name of its class in a network model, or of costs; empty: unknown
  TraceCosts costs = {};
};

struct Workload {
  std::vector<TraceJob> jobs;               // by submit time, then as in the file
  int64_t processors = 0;                   // of the machine, if known from the log; otherwise 0
  std::map<std::string, int64_t> left_out;  // records that cannot be replayed, by reason
};

// "job-7" for the 7th record.
std::string NameOfRecord(int64_t record);

// Limits the run time of a job to its requested time.
void CapAtRequestedTime(TraceJob* job);

// Over all groups.
int32_t TasksOf(const TraceJob& job);
// GPUs of all its tasks. A share counts as its part of a GPU.
double GpusOf(const TraceJob& job);

// Makes jobs arrive `load` (> 0) times as fast: divides submit times, in whole seconds.
void SetLoad(double load, Workload* workload);

// Sorts the jobs.
void SortBySubmit(Workload* workload);

// INVALID_ARGUMENT, with the reasons, if there is nothing to replay: the file has no record, or all
// are left out.
absl::Status CheckAnyJob(const Workload& workload, const std::string& file);

// Numbers of jobs with properties that the replay ignores, by property.
std::map<std::string, int64_t> CountsOf(const Workload& workload);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_WORKLOAD_H_
