// Finds the best node for one task.
#ifndef BERTH_CORE_ENGINE_SEARCH_NODE_SEARCH_H_
#define BERTH_CORE_ENGINE_SEARCH_NODE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/engine/policies.h"
#include "core/engine/search/device_board.h"
#include "core/engine/search/device_choice.h"
#include "core/engine/search/job_affinity.h"
#include "core/engine/search/node_marks.h"
#include "core/engine/search/reservations.h"
#include "core/engine/search/spread.h"
#include "core/engine/search/vain_searches.h"
#include "core/model/cluster_state.h"
#include "core/topology/tree.h"

namespace berth {

struct Found {
  NodeId node;
  DeviceSet devices;
};

// A task that needs a place, and what the search must know about it.
struct Seeker {
  const Job& job;
  uint32_t group = 0;
  Window window;                     // when it would run there
  int32_t rest = 1;                  // tasks of the group still to be placed, including this one
  NodeId last;                       // where the previous one went; 0 = this is the first
  bool ignore_reservations = false;  // to find out whether reservations block it
  DeviceSet here = {};               // what earlier tasks got on `last`
  DeviceSet before = {};             // and on the node before that

  // A task was placed, and the next one follows.
  void Placed(NodeId node, const DeviceSet& devices) {
    if (node != last) before = std::exchange(here, DeviceSet{});
    here |= devices;
    last = node;
  }
  // What the gang already has on another node.
  const DeviceSet& RailsFor(NodeId node) const { return node == last ? before : here; }
};

// How much of a demand the nodes could hold if all of them were empty.
struct EmptyFit {
  bool any_node = false;  // some node could hold a task
  int64_t tasks = 0;      // how many all nodes could hold, up to the requested bound
};

// The group's tasks have anti-affinity to each other: one per node. `index`: of the group.
bool KeepsApart(const Group& group, uint32_t index);

// How many times the request fits into the amounts, at most `bound`.
int64_t TimesIn(const Resources& request, const Resources& amounts, int64_t bound);

// For one cycle: caches what policies prepare for a shape. Each call uses the current state.
class NodeSearch {
 public:
  // Without `reservations`, nothing is reserved. Without `editor` (of the state), nothing is
  // remembered about nodes.
  NodeSearch(const ClusterState& state, const Policies& policies,
             Reservations* reservations = nullptr, StateEditor* editor = nullptr);

  // The best node that passes every filter now. Adds the visited nodes to `work`.
  //
  // FreeIndex lists nodes tightest first, beginning with those that could hold the request. Without
  // other scores the first that passes is the best:
  //   free devices  2 2 4 8 8, request 3 devices -> visits 4, takes it
  // The strategy of the group (or job, or queue) decides the order: `spread` starts at the other
  // end; `colocate` first tries nodes with tasks of the job, then those where most of the rest
  // fits. If some devices of the cluster may be shared, the sharing policy chooses for packed tasks
  // instead (core/engine/search/device_board.h).
  //
  // If nodes that hold the group's image are preferred (ImagePreference), a second search visits
  // only these, up to the last one that would be better than the first search's node.
  std::optional<Found> Best(const Seeker& seeker, uint64_t* work);
  // The same for any task of the shape, ignoring reservations.
  std::optional<Found> Best(ShapeId shape, uint64_t* work);

  // Devices for it on this node, if the node has room and passes every filter.
  std::optional<DeviceSet> On(const Seeker& seeker, NodeId node);

  // The best of these nodes, independent of their order; ignores the strategy.
  std::optional<Found> BestOf(const Seeker& seeker, absl::Span<const NodeId> nodes, uint64_t* work);
  // Scores that need a look at every node apply to the seeker's group.
  bool Scored(const Seeker& seeker) {
    const Scores& scores = ScoresFor(seeker);
    return !scores.ranks.empty() && !scores.preference_only;
  }
  // That nodes which hold the image of the seeker's group are preferred.
  std::optional<ImagePreference> PreferenceFor(const Seeker& seeker) {
    return ScoresFor(seeker).preference;
  }
  // By domain of the tree: how many of its nodes hold the image. Empty if none is preferred.
  // O(nodes that hold it + domains) once per cycle.
  absl::Span<const int32_t> HoldersIn(const TopologyTree& tree, const Seeker& seeker);
  // How the seeker's tasks are distributed over nodes.
  Strategy StrategyFor(const Seeker& seeker) const;

  // A task of the shape fits on this node now. The node must be listed in FreeIndex.
  bool FitsNow(ShapeId shape, NodeId node);

  // Whether a node can hold the seeker's task depends only on the node's fixed part (node_marks.h),
  // on amounts and on the window; and it would go to the tightest such node.
  bool OnlyAmountsMatter(const Seeker& seeker) const;
  // No listed node has the amounts that a task of the shape requests at least.
  bool NoneHasRoom(ShapeId shape) const;

  // How many tasks of the shape fit into the offer, at most `bound`.
  int64_t FitsIn(ShapeId shape, const Offer& offer, int64_t bound);
  // The same for what the node has free (it must be listed), or would have if it were empty.
  int64_t FitsFree(ShapeId shape, NodeId node, int64_t bound);
  int64_t FitsEmpty(ShapeId shape, NodeId node, int64_t bound);

  // Calls visit(NodeId) for nodes whose free amounts may suffice for a task of the shape, tightest
  // first, until it returns false. Skips nodes that the shape may never use.
  void ForEachWithRoom(ShapeId shape, absl::FunctionRef<bool(NodeId)> visit);
  // The same after what is being released has gone, for the nodes where something is.
  void ForEachOnceReleased(ShapeId shape, absl::FunctionRef<bool(NodeId)> visit);

  // Nodes that are backing off and could hold a task of the shape: how many, the first whose
  // back-off ends, and when. Checks at most kMaxBackoffsSeen of the nodes that are backing off.
  struct BackingOff {
    int32_t nodes = 0;
    NodeId first;
    Time until = absl::InfinitePast();
  };
  static constexpr int kMaxBackoffsSeen = 1000;
  BackingOff FindBackingOff(ShapeId shape, uint64_t* work);

  // How many nodes are at their task limit and could otherwise hold a task of the shape. Checks at
  // most kMaxFullSeen.
  static constexpr int kMaxFullSeen = 1000;
  int32_t FullNodes(ShapeId shape, uint64_t* work);

  // Visits the nodes, schedulable or not, until `bound` tasks have room.
  EmptyFit IfEmpty(ShapeId shape, int64_t bound, bool one_per_node, uint64_t* work);

  // The places over which a group with a maximum skew is spread. Visits every node once per cycle.
  const SpreadPlaces& PlacesFor(const Group& group);

  // The capacity of the nodes that could hold a task of any of the shapes if they were empty.
  Resources EmptyCapacity(const std::vector<ShapeId>& shapes, uint64_t* work);

  // The owner of a reservation that blocked a seeker since the last call, if any did.
  std::optional<JobId> TakeBlockedBy() { return std::exchange(blocked_by_, std::nullopt); }
  // Affinity to tasks of other jobs blocked a node for a seeker since the last call.
  bool TakeBarredByAffinity() { return std::exchange(barred_by_affinity_, false); }
  // Whether affinity counts from now on (JobAffinity): to try without it.
  void EnableAffinity(bool heed) { affinity_enabled_ = heed; }
  // Computes what affinity blocks for this job's tasks once, and keeps it. Only valid while nothing
  // but these tasks changes. Adds to `work`.
  void HoldAffinity(const Job& job, uint64_t* work);
  void DropAffinity() { held_.reset(); }

 private:
  // So many nodes that hold an image are looked at one by one: no mark is used for it.
  static constexpr size_t kFewHolders = 256;
  // What scores may depend on, besides the shape and the node.
  struct ScoreKey {
    int32_t tasks = 1;  // of the group
    ImageId image = {};
    bool downward = false;  // with an image
    bool operator==(const ScoreKey&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const ScoreKey& key) {
      return H::combine(std::move(h), key.tasks, key.image, key.downward);
    }
  };
  struct Scores {
    std::vector<NodeRank> ranks;
    std::optional<ImagePreference> preference = {};  // one of them
    bool preference_only = false;                    // there is no other
    // Then the nodes that hold the image: if there are few, all of them, else their test.
    const absl::btree_set<NodeId>* few = nullptr;
    FixedTest* holders = nullptr;  // then: of nodes that hold the image
  };
  struct Prepared {
    Prepared(const Policies& policies, const ShapeRequest& request, FixedTest& test);
    bool Passes(const Offer& offer) const { return fixed.Passes(offer.node) && PassesNow(offer); }
    bool PassesNow(const Offer& offer) const;  // the tests that are not part of `fixed`

    const ShapeEntry& entry;
    FixedTest& fixed;
    std::vector<NodeTest> tests;
    DeviceChoice devices;
    absl::flat_hash_map<ScoreKey, std::unique_ptr<Scores>> scores;
  };
  // The parameters of one search, and the best node so far: among equal ranks the first one
  // visited.
  struct Look;
  using NodeRanks = std::function<void(const Offer&)>;
  Prepared& Prepare(ShapeId shape);
  const Scores& ScoresOf(ShapeId shape, const ScoreKey& key);
  const Scores& ScoresFor(const Seeker& seeker);
  Look LookFor(const Seeker& seeker);
  VainSearches::Request RequestOf(const Seeker& seeker);
  EmptyFit IfEmptyByAmounts(ShapeId shape, int64_t bound, bool one_per_node, uint64_t* work);
  bool IsVain(const Seeker& seeker, uint64_t* work);
  std::unique_ptr<JobAffinity> AffinityOf(const Job& job, uint64_t* work);
  void AddGroupAffinity(Look* look);
  std::optional<DeviceUse> UsedIfRoom(Look* look, const Node& node, int64_t tasks,
                                      const NodeRanks& rank);
  // If the node passes and has room for that many tasks: the devices that they may not use. Then
  // calls `rank` with what the node offers.
  std::optional<DeviceUse> UsedIfSuits(Look* look, NodeId id, int64_t tasks, const NodeRanks& rank);
  void Consider(Look* look, NodeId id, int64_t tasks);
  void Walk(Look* look, Strategy strategy);
  void WalkUp(Look* look, int64_t tasks);
  void WalkDown(Look* look);
  void NoteFailures(Look* look);
  int64_t WalkToColocate(Look* look);
  void WalkFew(Look* look, Strategy strategy, int64_t tasks);
  void PreferHolder(Look* look, Strategy strategy, int64_t tasks);
  bool IsBeyond(const Look& look, NodeId id) const;
  bool GoesByBoard(const Look& look, Strategy strategy) const;
  bool SpreadsOverDevices(const Look& look) const;
  void SearchBoard(Look* look);
  bool BesideOwn(Look* look);
  std::optional<Found> Take(const Look& look);

  const ClusterState& state_;
  const Policies& policies_;
  Reservations* reservations_;
  StateEditor* editor_;
  NodeMarks own_marks_;  // without an editor
  NodeMarks& marks_;
  TopologyTrees own_trees_;  // likewise
  TopologyTrees& trees_;
  DeviceBoard own_board_;  // likewise
  DeviceBoard& board_;
  // Besides the fixed part, a node's amounts and devices decide, and no other filter.
  const bool amounts_decide_;
  VainSearches vain_;
  std::optional<JobId> blocked_by_;
  bool barred_by_affinity_ = false;
  bool affinity_enabled_ = true;
  struct Held {
    JobId job;
    std::unique_ptr<JobAffinity> affinity;  // null: nothing is blocked
  };
  std::optional<Held> held_;
  absl::flat_hash_map<ShapeId, std::unique_ptr<Prepared>> prepared_;
  std::map<std::pair<ShapeId, int32_t>, std::unique_ptr<SpreadPlaces>> places_;  // by tier
  absl::flat_hash_map<std::pair<const TopologyTree*, ImageId>, std::vector<int32_t>> holders_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_NODE_SEARCH_H_
