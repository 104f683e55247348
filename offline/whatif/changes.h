// The changes of a what-if forecast.
#ifndef BERTH_OFFLINE_WHATIF_CHANGES_H_
#define BERTH_OFFLINE_WHATIF_CHANGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "offline/sim/sim_cluster.h"

namespace berth {

// Files are scenarios (docs/developers/scenarios.md) of which only the named part is read.
struct Changes {
  std::string nodes;   // file: `nodes`; new ones, and known ones with another inventory
  std::string queues;  // file: `queues`; for known ones the whole new value
  std::string config;  // file: `config`, complete: missing fields have the defaults of berthd
  // "NAME=COUNT": this many more nodes like NAME, with its labels, so that HyperNodes that select
  // by label include them.
  std::vector<std::string> add_nodes;
  // Names, "n[0-3]" for several. Drained: as by an operator. Lost: as if they were fenced; their
  // tasks that may start again are pending like others.
  std::vector<std::string> drain, lose;
  bool Any() const {
    return !nodes.empty() || !queues.empty() || !config.empty() || !add_nodes.empty() ||
           !drain.empty() || !lose.empty();
  }
};

inline constexpr int64_t kMaxAddedNodes = 100'000;

// Returns one line for each change, for people. Errors: those of reading, with file and position;
// NOT_FOUND for an unknown node; those of Apply for what the state refuses.
absl::StatusOr<std::vector<std::string>> ApplyChanges(const Changes& changes, SimCluster* cluster);

}  // namespace berth

#endif  // BERTH_OFFLINE_WHATIF_CHANGES_H_
