// Replays the past of jobs that are already running when a scenario starts, as events.
#ifndef BERTH_OFFLINE_SIM_JOB_HISTORY_H_
#define BERTH_OFFLINE_SIM_JOB_HISTORY_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "berth/sim/v1/scenario.pb.h"
#include "offline/sim/sim_cluster.h"

namespace berth {

// One task at the start of the scenario. Its index in the job is its position in the list.
struct TaskNow {
  TaskState state = TaskState::kPending;
  std::string node;
  std::vector<std::string> devices;  // empty: any
  Time since;
  bool ends = false;
  std::string moves_to;
  std::vector<std::string> moves_to_devices;
  int32_t exit_code = 0;
};

// A job with an expanded name, before it is submitted.
struct JobNow {
  std::string name;
  std::string path;  // for errors
  const sim::v1::Job* job = nullptr;
  Time submit;
  std::vector<std::string> on;  // of the first tasks
};

// The devices that the scenario assigns to tasks by name. Other tasks cannot get them.
class DeviceBook {
 public:
  void Keep(const std::string& node, const std::vector<std::string>& devices);
  // The devices by name, or (`names` empty) the first ones of the kinds of the shape that are not
  // used, kept or `taken`. `to_wait`: they may be used by others now, but not nominated.
  // INVALID_ARGUMENT if there are too few.
  absl::StatusOr<DeviceSet> Choose(const Node& node, const TaskShape& shape,
                                   const std::vector<std::string>& names, const DeviceUse& taken,
                                   bool to_wait) const;

 private:
  std::map<std::string, std::vector<std::string>> kept_;
};

// The present tasks of a job, by index. `spec` is the spec of the job.
absl::StatusOr<std::vector<TaskNow>> TasksNow(const JobNow& now, const JobSpec& spec, Time start);

// Applies events to a submitted job until it holds its places. Nominations and moves, which wait
// for places of others, come after all jobs hold theirs.
absl::Status ReplayUntilHolding(const JobNow& now, const std::vector<TaskNow>& tasks, JobId id,
                                const DeviceBook& book, SimCluster* cluster);
absl::Status ReplayUntilWaiting(const JobNow& now, const std::vector<TaskNow>& tasks, JobId id,
                                const DeviceBook& book, SimCluster* cluster);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_JOB_HISTORY_H_
