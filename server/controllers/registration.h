// The effect of a Hello on the state: the node gets its next epoch, and the agent's tasks are
// reconciled with the state.
//
//   in the state and at the agent        the agent's report counts, if it is new
//   only in the state                    Bound, and to this very agent: the Prepare got lost and is
//                                        sent again (that agent's journal would show a start);
//                                        otherwise the task is missing
//   only at the agent                    forget: the agent kills and drops it
//   at the agent, of another             the same, and the task with the same numbers in the state
//   incarnation of the store             is missing: only attempts of this incarnation count
//
// Then all orders that the agent should be following are repeated: Prepare, Start, Kill.
//
// A Hello may be stale: it was delayed in the network while its agent gave up on it, connected
// again and got more tasks. So a missing task counts as gone only once the agent has sent a message
// with the epoch that answered this Hello (ProcessMissing). An agent that has given up never will.
#ifndef BERTH_SERVER_CONTROLLERS_REGISTRATION_H_
#define BERTH_SERVER_CONTROLLERS_REGISTRATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/v1/agent.pb.h"
#include "server/controllers/launch.h"
#include "server/loop/turn.h"

namespace berth {

struct MissingTask {
  TaskKey task;
  uint32_t attempt = 0;
  ExitCause cause = ExitCause::kGone;
};

// What to send to the agent once it is durable.
struct Registration {
  std::string changed;  // differences from the node's previous registration; "" if there are none
  NodeId node;
  std::string name;  // of the node
  uint64_t epoch = 0;
  std::vector<MissingTask> missing;  // according to the Hello
  std::vector<v1::TaskKey> forget;
  std::vector<uint64_t> acks;  // report ids of the Hello's tasks
  std::vector<LaunchOrder> orders;
};

// Identifies the store (Store::ClusterId, Store::Incarnation).
struct StoreIdentity {
  std::string cluster_id = {};
  uint64_t incarnation = 0;
};

// The server's knowledge when a Hello comes.
struct Expectation {
  // The agent cannot have seen this job uid or greater ones yet, in this incarnation of the store.
  JobId first_unknown;
  // The store was restored and places nothing yet: tasks that are bound were bound by the previous
  // store, which may have moved them since. They are missing, and are bound again.
  bool restored = false;
  ImageBook* images = nullptr;  // null: images are not compared
};

// Emits NodeRegistered and the reports that follow. `hello` has passed ValidateHello.
// ALREADY_EXISTS: another agent holds the name, and its node is not lost. FAILED_PRECONDITION: the
// agent cannot distinguish incarnations, or has seen a later state of this store, which was put
// back without `--restore`. Other errors: the state cannot accept this node. On an error nothing
// has changed.
absl::StatusOr<Registration> RegisterNode(Turn& turn, const v1::Hello& hello,
                                          const StoreIdentity& store, const Expectation& expected);

// The agent that registered with `epoch` sent a message: tasks missing from its Hello are gone,
// unless the state has changed in the meantime.
void ProcessMissing(Turn& turn, NodeId node, uint64_t epoch,
                    const std::vector<MissingTask>& missing);

// The meaning of a report, given the state.
enum class ReportVerdict : uint8_t {
  kNews,        // becomes an event
  kKnown,       // nothing new: already reported, or overtaken
  kSuperseded,  // of an attempt that is over: the agent may drop it
  kUnknown,     // the node never had this task or attempt
};
// `freeze_request`: of a report that the task is paused; counts only if it is of the job's pause.
ReportVerdict JudgeReport(const ClusterState& state, NodeId node, const TaskReported& report,
                          int64_t freeze_request = 0);

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_REGISTRATION_H_
