// Calls of tasks, which their nodes' agents forward (support/task_call.h): who the caller is then.
#ifndef BERTH_SERVER_ACCESS_TASK_CALLER_H_
#define BERTH_SERVER_ACCESS_TASK_CALLER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/access/verbs.h"
#include "core/model/ids.h"
#include "server/access/caller.h"

namespace berth {

// What a task may do with its own job.
inline constexpr VerbSet kTaskVerbs = {Verb::kListJobs, Verb::kReadJob, Verb::kReadLogs,
                                       Verb::kRequeueJob, Verb::kExec};

// Keys of registrations: an agent gets its key in Welcome, and so proves that it registered the
// node, also without an identity in its certificate. Only this process knows how to make them, and
// the next registration of the node makes the key useless (Admit). Thread-safe.
class TaskKeys {
 public:
  TaskKeys();  // with a new secret

  // 64 hexadecimal digits.
  std::string Of(NodeId node, absl::string_view name, uint64_t epoch) const;
  // Takes the same time for every wrong key.
  bool Is(absl::string_view key, NodeId node, absl::string_view name, uint64_t epoch) const;

 private:
  std::string secret_;
};

// The caller of a call with this text in its metadata. It never has rights of `connection`: it is
// either the task, or nobody, whom Admit refuses. `identities`: access.node_identities.
Caller TaskCallerFrom(const Caller& connection, absl::string_view text, bool identities,
                      const TaskKeys& keys);

// "task 0 of job 12 on node "n1""
std::string TextOf(const CallingTask& task, absl::string_view node);

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_TASK_CALLER_H_
