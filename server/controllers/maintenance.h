// Maintenance: announces planned absences of the control plane to agents.
//
//   berth cluster pause --for 30m        SIGTERM
//         |                                 |
//         '--> the longer lease is recorded, durable --> agents are granted it --> they confirm
//
// An agent that was not reached keeps the usual lease and kills its strict tasks when that expires.
// The next server waits for the longest lease in any case (LeaseKeeper).
#ifndef BERTH_SERVER_CONTROLLERS_MAINTENANCE_H_
#define BERTH_SERVER_CONTROLLERS_MAINTENANCE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/v1/cluster.pb.h"
#include "server/controllers/agent_gateway.h"
#include "server/controllers/lease_keeper.h"
#include "server/loop/loop.h"

namespace berth {

struct MaintenanceOptions {
  absl::Duration stop_lease = absl::Minutes(5);
  absl::Duration longest = absl::Hours(1);
};

class Maintenance {
 public:
  static constexpr absl::Duration kUsual = absl::Minutes(30);  // of a pause without a length
  static constexpr size_t kNamed = 20;  // nodes named in responses and the log

  // All outlive it.
  Maintenance(Loop* loop, LeaseKeeper* leases, AgentGateway* gateway, MaintenanceOptions options)
      : loop_(loop), leases_(leases), gateway_(gateway), options_(options) {}

  // The length of a pause that does not specify one.
  absl::Duration DefaultLength() const { return std::min(kUsual, options_.longest); }
  // INVALID_ARGUMENT unless it is longer than the lease and at most the configured maximum.
  absl::Status Check(absl::Duration how_long) const;
  // On the loop thread: agents are notified once the turn is durable.
  void Begin(Turn& turn, absl::Duration how_long);
  void End() { leases_->EndPause(); }
  // Leaves `pause` unchanged and returns false if nothing is paused. Not on the loop thread.
  bool Describe(absl::Time now, v1::ClusterPause* pause) const;
  // "no job is placed yet after the restore: ..."; otherwise "". Not on the loop thread, nor while
  // the loop's state is being read.
  std::string RestoreHoldText() const;

  // Before a planned stop, with everything still running: grants the stop lease, waits up to
  // kDurableWithin + kConfirmWithin until the connected agents have it, and logs which have not.
  void GrantStopLease();
  static constexpr absl::Duration kDurableWithin = absl::Seconds(2);
  static constexpr absl::Duration kConfirmWithin = absl::Seconds(3);

 private:
  std::vector<std::string> NamesOf(const std::vector<NodeId>& nodes) const;
  bool AllConnectedHold() const;

  Loop* const loop_;
  LeaseKeeper* const leases_;
  AgentGateway* const gateway_;
  const MaintenanceOptions options_;
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_MAINTENANCE_H_
