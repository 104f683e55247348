// One start of one task: what everything in the agent is keyed by.
#ifndef BERTH_CLIENTS_AGENT_TASK_ID_H_
#define BERTH_CLIENTS_AGENT_TASK_ID_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "berth/v1/agent.pb.h"

namespace berth {

struct TaskId {
  uint64_t job_uid = 0;
  uint32_t task = 0;  // index in the job
  uint32_t attempt = 0;

  auto operator<=>(const TaskId&) const = default;
};

inline TaskId ToTaskId(const v1::TaskKey& key) {
  return {.job_uid = key.job_uid(), .task = key.task(), .attempt = key.attempt()};
}

inline v1::TaskKey ToKey(const TaskId& id) {
  v1::TaskKey key;
  key.set_job_uid(id.job_uid);
  key.set_task(id.task);
  key.set_attempt(id.attempt);
  return key;
}

// "12-0-1": directory name and log field.
inline std::string ToString(const TaskId& id) {
  return absl::StrCat(id.job_uid, "-", id.task, "-", id.attempt);
}

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_ID_H_
