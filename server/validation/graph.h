// Cycles in a small directed graph, for dependencies.
#ifndef BERTH_SERVER_VALIDATION_GRAPH_H_
#define BERTH_SERVER_VALIDATION_GRAPH_H_

#include <vector>

namespace berth {

// edges[i]: what i depends on. O(nodes + edges), no recursion.
using Graph = std::vector<std::vector<int>>;

// A cycle as a list of nodes, without repeating the first; empty if there is none. Deterministic.
//   {{1}, {2}, {0}} -> {0, 1, 2}
std::vector<int> FindCycle(const Graph& graph);

// Every node after its dependencies, otherwise in order. The graph must have no cycle.
std::vector<int> DependencyOrder(const Graph& graph);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_GRAPH_H_
