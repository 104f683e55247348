// What a cluster is to be like instead.
#ifndef BERTH_CLIENTS_WHATIF_CHANGES_H_
#define BERTH_CLIENTS_WHATIF_CHANGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/sim/sim_cluster.h"

namespace berth {

// Files are scenarios (docs/scenarios.md) of which only the part named is taken.
struct Changes {
  std::string nodes;   // file: `nodes`; new ones, and known ones with another inventory
  std::string queues;  // file: `queues`; the whole new value of those that are known
  std::string config;  // file: `config`, whole: what it leaves out is as in a fresh berthd
  // "NAME=COUNT": so many more like the node of that name; with its labels, so that HyperNodes that
  // go by labels hold them.
  std::vector<std::string> add_nodes;
  // Names, "n[0-3]" for several. Drained: as an operator does it. Lost: as if they were fenced;
  // what ran there, and may start again, waits with the rest.
  std::vector<std::string> drain, lose;
  bool Any() const {
    return !nodes.empty() || !queues.empty() || !config.empty() || !add_nodes.empty() ||
           !drain.empty() || !lose.empty();
  }
};

inline constexpr int64_t kMaxAddedNodes = 100'000;

// One line for each, for people. The errors of reading, with file and place; NOT_FOUND for a node
// that there is not; those of Apply for what the state refuses.
absl::StatusOr<std::vector<std::string>> ApplyChanges(const Changes& changes, SimCluster* cluster);

}  // namespace berth

#endif  // BERTH_CLIENTS_WHATIF_CHANGES_H_
