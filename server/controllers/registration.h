// What a Hello does to the state: the node gets its next epoch, and what the agent still holds is
// brought together with what the state believes.
//
//   the state has it, the agent too      the agent's report counts, if it says something new
//   the state has it, the agent not      Bound, and the agent is the one it was bound to: the
//                                        Prepare got lost, and is sent again (the journal of that
//                                        agent would know of a start); else it is missing
//   the agent has it, the state not      forget: the agent kills and drops it
//   the agent has it, of another         likewise, and what the state has under the same numbers is
//   incarnation of the store             missing: only its own attempts count
//
// Then everything that the agent should be doing is said again: Prepare, Start, Kill.
//
// A Hello may be old: it lay in the network while its agent gave up on it, connected again and was
// given more to do. So what is missing counts as gone only once the agent has said something with
// the epoch that this Hello was answered with (TakeMissing). An agent that has given up never will.
#ifndef BERTH_SERVER_CONTROLLERS_REGISTRATION_H_
#define BERTH_SERVER_CONTROLLERS_REGISTRATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/v1/agent.pb.h"
#include "server/controllers/launch.h"
#include "server/turn.h"

namespace berth {

struct MissingTask {
  TaskKey task;
  uint32_t attempt = 0;
  ExitCause cause = ExitCause::kGone;
};

// What to tell the agent once it is durable.
struct Registration {
  std::string changed;  // in what the node differs from what it registered before; "" if in nothing
  NodeId node;
  uint64_t epoch = 0;
  std::vector<MissingTask> missing;  // by the Hello
  std::vector<v1::TaskKey> forget;
  std::vector<uint64_t> acks;  // report ids of the Hello's tasks
  std::vector<LaunchOrder> orders;
};

// Which store this is (Store::ClusterId, Store::Incarnation).
struct StoreIdentity {
  std::string cluster_id = {};
  uint64_t incarnation = 0;
};

// What the server knows when a Hello comes.
struct Expectation {
  // The agent cannot have heard of this job uid or greater ones yet, in this life of the store.
  JobId first_unknown;
  // The store was restored, and places nothing yet: what is bound was bound by the store before,
  // which may have moved it since. It is missing, and is bound anew.
  bool restored = false;
};

// Emits NodeRegistered and the reports that follow. `hello` has passed ValidateHello.
// ALREADY_EXISTS: another agent holds the name, and its node is not lost. Other errors: the state
// cannot take this node. FAILED_PRECONDITION: the agent cannot keep incarnations apart, or has seen
// a later state of this very store, which was put back without `--restore`. On an error nothing has
// changed.
absl::StatusOr<Registration> RegisterNode(Turn& turn, const v1::Hello& hello,
                                          const StoreIdentity& store, const Expectation& expected);

// The agent that registered with `epoch` speaks: what its Hello missed is gone, unless the state
// has gone on meanwhile.
void TakeMissing(Turn& turn, NodeId node, uint64_t epoch, const std::vector<MissingTask>& missing);

// What a report means, given the state.
enum class ReportVerdict : uint8_t {
  kNews,        // becomes an event
  kKnown,       // says nothing new: said before, or overtaken
  kSuperseded,  // of an attempt that is over: the agent may drop it
  kUnknown,     // the node never had this task or attempt
};
ReportVerdict JudgeReport(const ClusterState& state, NodeId node, const TaskReported& report);

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_REGISTRATION_H_
