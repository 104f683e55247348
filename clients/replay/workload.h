// A workload: jobs as a log or a generator tells of them, to be run again in simulated time.
#ifndef BERTH_CLIENTS_REPLAY_WORKLOAD_H_
#define BERTH_CLIENTS_REPLAY_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/model/job.h"

namespace berth::replay {

struct TraceJob {
  std::string name;                               // the log's, or its place there: for people
  Duration submit;                                // since the log's own beginning of time
  Duration run;                                   // > 0; of each task, from its start
  Duration requested = absl::InfiniteDuration();  // walltime; at least `run`
  int32_t tasks = 1;                              // a gang, each of this shape
  TaskShape shape;
  std::string user;
  std::string queue;  // empty: not told
  int32_t priority = 0;
  bool preemptible = false;
  std::string training;  // its class in a network model, by name; empty: not told
};

struct Workload {
  std::vector<TraceJob> jobs;               // by submit time, then as in the file
  int64_t processors = 0;                   // of the machine, where the log says so; else 0
  std::map<std::string, int64_t> left_out;  // records that cannot be replayed, by reason
};

// "job-7" for the 7th record.
std::string NameOfRecord(int64_t record);

// Puts the jobs in order.
void SortBySubmit(Workload* workload);

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_WORKLOAD_H_
