#include "server/validation/graph.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace berth {
namespace {

enum class Mark : uint8_t { kNew, kOpen, kDone };

// Depth first with an explicit stack: (node, next edge to examine). Open nodes are those on the
// stack, so an edge to one of them closes a cycle.
class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph), marks_(graph.size(), Mark::kNew) {
    found_.order.reserve(graph.size());
    for (size_t node = 0; node < graph.size() && found_.cycle.empty(); ++node) {
      if (marks_[node] == Mark::kNew) From(static_cast<int>(node));
    }
  }
  DependencyOrder Take() { return std::move(found_); }

 private:
  void From(int root) {
    Open(root);
    while (!stack_.empty() && found_.cycle.empty()) {
      auto& [node, next] = stack_.back();
      const auto& edges = graph_[static_cast<size_t>(node)];
      if (next == edges.size()) {
        Close(node);
        continue;
      }
      const int target = edges[next++];
      if (MarkOf(target) == Mark::kNew) {
        Open(target);
      } else if (MarkOf(target) == Mark::kOpen) {
        NoteCycle(target);
      }
    }
  }

  void Open(int node) {
    MarkOf(node) = Mark::kOpen;
    stack_.push_back({node, 0});
  }
  void Close(int node) {
    MarkOf(node) = Mark::kDone;
    found_.order.push_back(node);
    stack_.pop_back();
  }
  void NoteCycle(int first) {
    size_t at = stack_.size();
    while (stack_[--at].node != first) {
    }
    for (; at < stack_.size(); ++at) found_.cycle.push_back(stack_[at].node);
  }
  Mark& MarkOf(int node) { return marks_[static_cast<size_t>(node)]; }

  struct Step {
    int node;
    size_t next;
  };
  const Graph& graph_;
  std::vector<Mark> marks_;
  std::vector<Step> stack_;
  DependencyOrder found_;
};

}  // namespace

std::vector<int> FindCycle(const Graph& graph) { return OrderByDependencies(graph).cycle; }

DependencyOrder OrderByDependencies(const Graph& graph) { return Walk(graph).Take(); }

}  // namespace berth
