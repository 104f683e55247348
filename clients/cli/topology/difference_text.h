// Formats a difference for people, similar to diff:
//
//   + leaf-0002c903000000a1  network tier 1 leaf, 11 nodes, 400 Gb/s
//       + node n[01-04], n[07-13]
//   ~ s1  network tier 1 leaf; tier 1 -> 2
//       + node dev[6-7]
//       - node dev3
//   - old  network tier 1 leaf, 4 nodes
//   import/slurm-conf: 1 to create, 1 to change, 1 to delete, 7 unchanged
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_DIFFERENCE_TEXT_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_DIFFERENCE_TEXT_H_

#include <string>

#include "berth/cli/v1/topology.pb.h"

namespace berth {

inline constexpr size_t kMaxNamesTold = 8;  // of gained or lost members, after folding them

// Ends with a newline. The last line has the counts; it is the only one if nothing differs.
std::string DifferenceText(const cli::v1::TopologyDifference& difference);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_DIFFERENCE_TEXT_H_
