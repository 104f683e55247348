// NodeImageKeeper: makes facts of what agents report about the images of their nodes
// (NodeImagesChanged). One event says what is different from the facts, so an agent that repeats
// its report, after a restart of either side, causes none. A node has at most one such event every
// kInterval, however often its agent reports: what comes earlier waits, and only the latest counts.
//
//   0 s  reports {a}     -> gained a        recorded at once
//   5 s  reports {a b}                      waits
//  10 s  reports {b}                        replaces it
//  30 s  heartbeat       -> gained b, lost a
#ifndef BERTH_SERVER_CONTROLLERS_NODE_IMAGE_KEEPER_H_
#define BERTH_SERVER_CONTROLLERS_NODE_IMAGE_KEEPER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/v1/agent.pb.h"
#include "core/model/ids.h"
#include "server/loop/turn.h"

namespace berth {

class NodeImageKeeper {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(30);

  // Any thread. The latest report of the agent that registered with that epoch.
  void Note(NodeId node, uint64_t epoch, const v1::NodeImages& images) ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread. The session with that epoch has ended: what it reported last is not recorded.
  void Forget(NodeId node, uint64_t epoch) ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread. A report waits, and the node may have an event. `now`: of the steady clock.
  bool Due(NodeId node, absl::Duration now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Loop thread. Records how that report differs from the facts.
  void Record(Turn& turn, NodeId node, absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Report {
    uint64_t epoch = 0;
    bool waits = false;
    std::vector<ImageId> images = {};  // ascending
    absl::Duration next = -absl::InfiniteDuration();
  };

  mutable absl::Mutex mutex_;
  std::map<NodeId, Report> reports_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_NODE_IMAGE_KEEPER_H_
