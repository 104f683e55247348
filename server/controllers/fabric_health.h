// FabricHealth: from what agents tell about the links of their nodes to the health of HyperNodes.
// One node with link errors has a bad cable or a bad card. If several nodes of one switch have
// them, the switch is to blame (after ByteRobust, arXiv 2509.16293): jobs then avoid it, and those
// that may migrate leave it (core/actions/migrate.cc).
//
//   the condition "infiniband" of agents: a port is down, or has errors
//      -> a HyperNode of which nodes are direct members, of the network tree:
//           DEGRADED   when at least two, and a fifth, of its nodes had one within kWindow
//           OK         when none has had one for kQuiet
//
// Sets DEGRADED only on a HyperNode that is OK, and OK only what it set itself (the reason begins
// with kTelemetry): a mark of an operator or importer stays as it is.
//
// Example, a leaf switch of 8 nodes: n1 has link errors at 10:00, n2 at 10:03 -> DEGRADED. The
// errors end at 10:20 -> OK at 10:50. They come and go every ten minutes: it stays DEGRADED.
//
// What was told is in memory: after a restart agents tell it again, and what is marked stays so for
// at least kQuiet.
#ifndef BERTH_SERVER_CONTROLLERS_FABRIC_HEALTH_H_
#define BERTH_SERVER_CONTROLLERS_FABRIC_HEALTH_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "berth/v1/agent.pb.h"
#include "core/model/ids.h"
#include "server/loop/turn.h"

namespace berth {

inline constexpr char kTelemetry[] = "telemetry: ";

class FabricHealth {
 public:
  static constexpr absl::Duration kWindow = absl::Minutes(5);
  static constexpr absl::Duration kQuiet = absl::Minutes(30);
  static constexpr absl::Duration kEvery = absl::Seconds(30);
  static constexpr size_t kLeastNodes = 2;
  static constexpr size_t kPercent = 20;

  // Disabled: it never changes the health of a HyperNode.
  explicit FabricHealth(bool enabled) : enabled_(enabled) {}

  // Loop thread. All conditions that hold on the node now.
  void Note(Turn& turn, NodeId node, const v1::NodeConditions& conditions);
  // Any thread. True once every kEvery, by the steady clock.
  bool Due(absl::Duration steady);
  // Loop thread. Judges all HyperNodes.
  void Check(Turn& turn);

 private:
  struct Trouble {
    bool now = false;
    Time last = absl::InfinitePast();
  };
  struct Count {
    size_t lately = 0;  // nodes with errors within kWindow
    bool quiet = true;  // none within kQuiet
    std::string names;  // of the first of `lately`
  };

  std::map<HyperNodeId, Count> CountTroubles(const ClusterState& state, Time now);
  void Judge(Turn& turn, const HyperNode& domain, const Count& count);
  void Set(Turn& turn, const HyperNode& domain, bool degraded, std::string reason);

  const bool enabled_;
  Time began_ = absl::InfinitePast();  // the first check
  std::map<NodeId, Trouble> troubles_;
  std::atomic<int64_t> due_{INT64_MIN};  // in ms of the steady clock
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_FABRIC_HEALTH_H_
