// HealthBrake: bounds how many nodes the conditions of agents may cordon or drain within kWindow.
// A check that is wrong everywhere, such as after an update of a driver, must not empty the
// cluster.
//
// A condition beyond the bound is held: it is only noted, and tried again with the heartbeats of
// its node (AgentGateway) until there is room. The agent need not send it again.
//
// Example, 100 nodes, at most 10: within a minute 12 agents report a broken GPU. Ten nodes drain;
// the conditions of two are held. Five minutes after the first drain, one of the two drains.
//
// What counts is in memory: after a restart of the server, the window is empty. Operators' cordons
// never count, and neither do those for refused starts.
#ifndef BERTH_SERVER_CONTROLLERS_HEALTH_BRAKE_H_
#define BERTH_SERVER_CONTROLLERS_HEALTH_BRAKE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/v1/agent.pb.h"
#include "core/model/ids.h"
#include "server/loop/turn.h"

namespace berth {

struct HealthBrakeLimits {
  int32_t percent = 10;  // of the nodes
  int32_t least = 3;     // nodes, however few there are
};

class HealthBrake {
 public:
  static constexpr absl::Duration kWindow = absl::Minutes(5);

  explicit HealthBrake(HealthBrakeLimits limits) : limits_(limits) {}

  // Loop thread. Steers the node as its conditions require, or holds them. They replace what is
  // held of the node.
  void Note(Turn& turn, NodeId node, uint64_t epoch, const v1::NodeConditions& conditions)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Loop thread. Tries what is held of the node again.
  void Retry(Turn& turn, NodeId node) ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread. The session with that epoch has ended: its conditions are not known any more.
  void Forget(NodeId node, uint64_t epoch) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Holds(NodeId node) const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t held() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Held {
    uint64_t epoch = 0;  // of the registration
    v1::NodeConditions conditions;
  };

  // False: the bound is reached, and nothing has been done.
  bool Steer(Turn& turn, NodeId node, uint64_t epoch, const v1::NodeConditions& conditions);
  bool HasRoom(size_t nodes, NodeId node, Time now);

  const HealthBrakeLimits limits_;
  std::map<NodeId, Time> steered_;  // within the window, and when; loop thread
  mutable absl::Mutex mutex_;
  std::map<NodeId, Held> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_HEALTH_BRAKE_H_
