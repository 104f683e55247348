// Reads outages of nodes from CSV with columns node, down and up. Times are as in CSV workloads,
// from the same origin. Without `up` a node stays down.
//
//   node,down,up
//   n17,3600,7200
//   n3,2017-10-03 12:00:00,
#ifndef BERTH_OFFLINE_REPLAY_OUTAGES_H_
#define BERTH_OFFLINE_REPLAY_OUTAGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth::replay {

struct Outage {
  std::string node;
  absl::Duration down;
  absl::Duration up = absl::InfiniteDuration();  // later than `down`
};

// Sorted by `down`. INVALID_ARGUMENT with FILE:LINE for a line that cannot be read, or a node that
// goes down while it is down.
absl::StatusOr<std::vector<Outage>> ReadOutages(absl::string_view text, const std::string& file);

// One node going down or coming back.
struct NodeTurn {
  absl::Duration time;
  std::string node;
  bool up = false;
};
// Sorted by time. At one moment, nodes that come back are first.
std::vector<NodeTurn> TurnsOf(const std::vector<Outage>& outages);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_OUTAGES_H_
