// Cycles and orders of a small directed graph, for dependencies.
#ifndef BERTH_SERVER_VALIDATION_GRAPH_H_
#define BERTH_SERVER_VALIDATION_GRAPH_H_

#include <vector>

namespace berth {

// edges[i]: what i depends on. O(nodes + edges), no recursion.
using Graph = std::vector<std::vector<int>>;

// A cycle as a list of nodes, without repeating the first; empty if there is none. Deterministic.
//   {{1}, {2}, {0}} -> {0, 1, 2}
std::vector<int> FindCycle(const Graph& graph);

// An order, if there is no cycle.
struct DependencyOrder {
  std::vector<int> order;  // every node after its dependencies, otherwise in order
  std::vector<int> cycle;  // as from FindCycle; if there is one, `order` is not complete
};
DependencyOrder OrderByDependencies(const Graph& graph);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_GRAPH_H_
