// A workload: jobs as a log or a generator tells of them, to be run again in simulated time.
#ifndef BERTH_CLIENTS_REPLAY_WORKLOAD_H_
#define BERTH_CLIENTS_REPLAY_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <memory>
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

struct TraceJob {
  std::string name;                               // the log's, or its place there: for people
  Duration submit;                                // since the log's own beginning of time
  Duration run;                                   // > 0; of each task, from its start
  Duration requested = absl::InfiniteDuration();  // walltime; at least `run`
  int32_t tasks = 1;                              // a gang, each of this shape
  TaskShape shape;
  std::vector<TraceGroup> more = {};  // further groups of the same gang, of other shapes
  std::string user;
  std::string queue;  // empty: not told
  int32_t priority = 0;
  bool preemptible = false;
  TraceEnd ended = TraceEnd::kCompleted;
  // What else is known of it: placement, topology, deadline, ... Name, queue, dependencies and what
  // the fields above say are not taken from it. Times as real time. Null: nothing.
  std::shared_ptr<const JobSpec> spec = nullptr;
  bool overran = false;  // it had run longer than requested: `run` is what it had asked for
  std::string training;  // its class in a network model, by name; empty: not told
};

struct Workload {
  std::vector<TraceJob> jobs;               // by submit time, then as in the file
  int64_t processors = 0;                   // of the machine, where the log says so; else 0
  std::map<std::string, int64_t> left_out;  // records that cannot be replayed, by reason
};

// "job-7" for the 7th record.
std::string NameOfRecord(int64_t record);

// A job cannot run longer than it asked for.
void EndAtRequest(TraceJob* job);

// Over all groups.
int32_t TasksOf(const TraceJob& job);
// GPUs of all its tasks, a share as its part of one.
double GpusOf(const TraceJob& job);

// Jobs come `load` (> 0) times as fast: submit times, divided, in whole seconds.
void SetLoad(double load, Workload* workload);

// Puts the jobs in order.
void SortBySubmit(Workload* workload);

// INVALID_ARGUMENT if there is nothing to replay: the file has no record, or each is left out; it
// tells why.
absl::Status CheckAnyJob(const Workload& workload, const std::string& file);

// Jobs of which the workload tells something that the replay passes over, by what it is.
std::map<std::string, int64_t> CountsOf(const Workload& workload);

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_WORKLOAD_H_
