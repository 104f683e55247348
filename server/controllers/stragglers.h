// Nodes on which the steps of a job take much longer than on its other nodes
// (docs/developers/progress.md, "Slow nodes"). After ByteRobust (arXiv 2509.16293): several rounds,
// and the nodes that are flagged in most of them.
#ifndef BERTH_SERVER_CONTROLLERS_STRAGGLERS_H_
#define BERTH_SERVER_CONTROLLERS_STRAGGLERS_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/model/ids.h"

namespace berth {

// Of at least one value; the upper one of an even number.
int64_t MedianOf(std::vector<int64_t> values);

// Of one job.
class Stragglers {
 public:
  static constexpr Duration kRound = absl::Seconds(10);
  static constexpr double kSlower = 1.3;  // times the median of the group's nodes
  static constexpr int kRounds = 5, kFlagged = 4;
  static constexpr size_t kLeastNodes = 3;

  // A task of the group on that node told how long its steps take, now.
  void Note(uint32_t group, NodeId node, int64_t step_time_us, Time now);
  // Ascending. Nodes that no longer tell anything drop out.
  std::vector<NodeId> Slow() const;

 private:
  struct OfNode {
    std::vector<int64_t> times;  // told in this round
    uint8_t flags = 0;           // bit 0: slow in the latest round
    bool operator==(const OfNode&) const = default;
  };
  using Nodes = std::map<NodeId, OfNode>;
  void EndRound();
  static void EndRound(Nodes& nodes);

  std::map<uint32_t, Nodes> groups_;
  Time round_ends_ = absl::InfinitePast();
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_STRAGGLERS_H_
