// Lists of hosts in Slurm's notation, in the order of their nodes' numbers.
#ifndef BERTH_CLIENTS_SLURM_HOSTS_H_
#define BERTH_CLIENTS_SLURM_HOSTS_H_

#include <string>
#include <vector>

namespace berth {

// "n1 n2 n3 x n7" -> "n[1-3],x,n7". The order stays, so that the place of a name is the number of
// its node; NameLists::Expand (cli/topology/node_names.h) gives the same names in the same order.
std::string CompressHosts(const std::vector<std::string>& names);

// Counts of nodes in their order: 2 2 2 1 -> "2(x3),1".
std::string CompressCounts(const std::vector<int>& counts);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_HOSTS_H_
