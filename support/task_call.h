// Calls that a task makes through the socket of its node's agent. The agent forwards them to berthd
// over its own connection, with the task and the key of its registration in their metadata.
#ifndef BERTH_SUPPORT_TASK_CALL_H_
#define BERTH_SUPPORT_TASK_CALL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace berth {

inline constexpr char kTaskMetadata[] = "berth-task";

// Which task calls, and which registration of its agent vouches for it (Welcome).
struct TaskCall {
  uint64_t job_uid = 0;
  uint32_t task = 0;
  uint32_t attempt = 0;
  uint32_t node_id = 0;
  uint64_t epoch = 0;
  std::string key;   // Welcome.task_key
  std::string node;  // its name
  bool operator==(const TaskCall&) const = default;
};

// "12 0 1 7 3 KEY n1": the numbers in the order of the fields.
std::string EncodeTaskCall(const TaskCall& call);
// Nothing if the text is of another form.
std::optional<TaskCall> ParseTaskCall(absl::string_view text);

// Whether tasks may call the method, about their own job: "JobService.GetJob". All others are
// refused by the agent, and by berthd.
bool IsTaskMethod(absl::string_view method);

}  // namespace berth

#endif  // BERTH_SUPPORT_TASK_CALL_H_
