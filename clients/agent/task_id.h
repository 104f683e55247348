// One start of one task: the key of everything in the agent.
#ifndef BERTH_CLIENTS_AGENT_TASK_ID_H_
#define BERTH_CLIENTS_AGENT_TASK_ID_H_

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "berth/v1/agent.pb.h"

namespace berth {

struct TaskId {
  uint64_t job_uid = 0;
  uint32_t task = 0;  // index in the job
  uint32_t attempt = 0;
  uint64_t incarnation = 0;  // of the store that started it; 0: its version had none

  // Attempts of one task are adjacent in this order, and so are the tasks of one incarnation.
  auto operator<=>(const TaskId& other) const {
    return std::tie(incarnation, job_uid, task, attempt) <=>
           std::tie(other.incarnation, other.job_uid, other.task, other.attempt);
  }
  bool operator==(const TaskId&) const = default;
};

inline TaskId ToTaskId(const v1::TaskKey& key) {
  return {.job_uid = key.job_uid(),
          .task = key.task(),
          .attempt = key.attempt(),
          .incarnation = key.incarnation()};
}

inline v1::TaskKey ToKey(const TaskId& id) {
  v1::TaskKey key;
  key.set_job_uid(id.job_uid);
  key.set_task(id.task);
  key.set_attempt(id.attempt);
  key.set_incarnation(id.incarnation);
  return key;
}

// "12-0-1.1795575600000", and "12-0-1" for incarnation 0: used in names of the task's directory,
// control groups, image link and container, and as a log field.
inline std::string ToString(const TaskId& id) {
  const std::string name = absl::StrCat(id.job_uid, "-", id.task, "-", id.attempt);
  return id.incarnation == 0 ? name : absl::StrCat(name, ".", id.incarnation);
}

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_ID_H_
