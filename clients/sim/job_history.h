// Jobs that a scenario finds in the middle of their lives: how they came there, as events.
#ifndef BERTH_CLIENTS_SIM_JOB_HISTORY_H_
#define BERTH_CLIENTS_SIM_JOB_HISTORY_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "berth/sim/v1/scenario.pb.h"
#include "clients/sim/sim_cluster.h"

namespace berth {

// One task as the scenario finds it. The task's index in its job is its place in the list.
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

// A job with its own name, before it is submitted.
struct JobNow {
  std::string name;
  std::string path;  // for errors
  const sim::v1::Job* job = nullptr;
  Time submit;
  std::vector<std::string> on;  // of the first tasks
};

// Which devices tasks have that the scenario names: not to be given to others.
class DeviceBook {
 public:
  void Keep(const std::string& node, const std::vector<std::string>& devices);
  // The devices by name, or (`names` empty) the first of the shape's kinds that are neither used,
  // kept nor `taken`. `to_wait`: others may still use them, but not be nominated.
  // INVALID_ARGUMENT if there are too few.
  absl::StatusOr<DeviceSet> Choose(const Node& node, const TaskShape& shape,
                                   const std::vector<std::string>& names, const DeviceUse& taken,
                                   bool to_wait) const;

 private:
  std::map<std::string, std::vector<std::string>> kept_;
};

// What the tasks of a job are now, by task index. `spec` is the job's.
absl::StatusOr<std::vector<TaskNow>> TasksNow(const JobNow& now, const JobSpec& spec, Time start);

// Brings a job that was just submitted to where it holds what it holds. What waits for the places
// of others (nominations, moves) comes after all jobs hold theirs.
absl::Status LiveToHolding(const JobNow& now, const std::vector<TaskNow>& tasks, JobId id,
                           const DeviceBook& book, SimCluster* cluster);
absl::Status LiveToWaiting(const JobNow& now, const std::vector<TaskNow>& tasks, JobId id,
                           const DeviceBook& book, SimCluster* cluster);

}  // namespace berth

#endif  // BERTH_CLIENTS_SIM_JOB_HISTORY_H_
