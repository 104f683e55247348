// Finds the best node for one task.
#ifndef BERTH_CORE_ENGINE_NODE_SEARCH_H_
#define BERTH_CORE_ENGINE_NODE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/engine/device_board.h"
#include "core/engine/device_choice.h"
#include "core/engine/job_affinity.h"
#include "core/engine/node_marks.h"
#include "core/engine/policies.h"
#include "core/engine/reservations.h"
#include "core/engine/spread.h"
#include "core/model/cluster_state.h"
#include "core/topology/tree.h"

namespace berth {

struct Found {
  NodeId node;
  DeviceSet devices;
};

// A task that seeks a place, and what it brings along.
struct Seeker {
  const Job& job;
  uint32_t group = 0;
  Window window;          // when it would be there
  int32_t rest = 1;       // tasks of the group that seek one after the other, this one included
  NodeId last;            // where the one before went; 0 = this is the first
  bool heedless = false;  // of what is kept for others: to tell whether that is what bars it
  DeviceSet here = {};    // what those before it got on `last`
  DeviceSet before = {};  // and on the node before that

  // One of them was placed, and the next one seeks.
  void Placed(NodeId node, const DeviceSet& devices) {
    if (node != last) before = std::exchange(here, DeviceSet{});
    here |= devices;
    last = node;
  }
  // What the gang has on another node already.
  const DeviceSet& RailsFor(NodeId node) const { return node == last ? before : here; }
};

// How much of a demand the nodes could hold if nothing ran on any of them.
struct EmptyFit {
  bool any_node = false;  // some node could hold a task
  int64_t tasks = 0;      // that all nodes could hold, counted up to the bound asked for
};

// The group's tasks keep apart from each other: each on another node. `index` is its own.
bool KeepsApart(const Group& group, uint32_t index);

// How many times the request fits into the amounts, at most `bound`.
int64_t TimesIn(const Resources& request, const Resources& amounts, int64_t bound);

// For one cycle: what policies prepare for a shape is kept. Sees the state as it is at each call.
class NodeSearch {
 public:
  // Without `reservations` nothing is kept for anyone. Without `editor` (of the state) nothing is
  // remembered of nodes.
  NodeSearch(const ClusterState& state, const Policies& policies,
             Reservations* reservations = nullptr, StateEditor* editor = nullptr);

  // The best node that passes every filter now. Adds the nodes looked at to `work`.
  //
  // FreeIndex lists nodes tightest first, beginning with those that could hold the request. Without
  // other scores the first that passes is the best:
  //   free devices  2 2 4 8 8, request 3 devices -> looks at 4, takes it
  // The strategy of the group (or job, or queue) says in which order to look: `spread` from the
  // other end; `colocate` first where the job has tasks, then where most of the rest fits. Where
  // some devices of the cluster may be shared, tasks that are packed go by the sharing policy
  // instead (core/engine/device_board.h).
  std::optional<Found> Best(const Seeker& seeker, uint64_t* work);
  // The same for any task of the shape, as if nothing were kept for others.
  std::optional<Found> Best(ShapeId shape, uint64_t* work);

  // Devices for it on this node, if that has room for it and passes every filter.
  std::optional<DeviceSet> On(const Seeker& seeker, NodeId node);

  // The best of these nodes, in whatever order they are given; not by strategy.
  std::optional<Found> BestOf(const Seeker& seeker, absl::Span<const NodeId> nodes, uint64_t* work);
  // Scores other than the order of FreeIndex have a say for the shape.
  bool Scored(ShapeId shape) { return !Prepare(shape).ranks.empty(); }
  // How the seeker's tasks are laid out over nodes.
  Strategy StrategyFor(const Seeker& seeker) const;

  // A task of the shape fits on this node now. The node must be listed in FreeIndex.
  bool FitsNow(ShapeId shape, NodeId node);

  // How many tasks of the shape fit into the offer, at most `bound`.
  int64_t FitsIn(ShapeId shape, const Offer& offer, int64_t bound);
  // The same for what the node has free (it must be listed), or would have if nothing ran there.
  int64_t FitsFree(ShapeId shape, NodeId node, int64_t bound);
  int64_t FitsEmpty(ShapeId shape, NodeId node, int64_t bound);

  // Calls visit(NodeId) for nodes that a task of the shape might fit on by what they have free,
  // tightest first, until it returns false; not those that it may never use.
  void ForEachWithRoom(ShapeId shape, absl::FunctionRef<bool(NodeId)> visit);
  // The same once what is being released is gone, of the nodes where something is.
  void ForEachOnceReleased(ShapeId shape, absl::FunctionRef<bool(NodeId)> visit);

  // Of the nodes that back off and could hold a task of the shape: how many, until when the first
  // of them does, and which that is. At most kMaxBackoffsSeen of those that back off are looked at.
  struct BackingOff {
    int32_t nodes = 0;
    NodeId first;
    Time until = absl::InfinitePast();
  };
  static constexpr int kMaxBackoffsSeen = 1000;
  BackingOff WhoBacksOff(ShapeId shape, uint64_t* work);

  // Of the nodes that have as many tasks as they may, and would else hold one of the shape: how
  // many. At most kMaxFullSeen are looked at.
  static constexpr int kMaxFullSeen = 1000;
  int32_t FullNodes(ShapeId shape, uint64_t* work);

  // Walks the nodes, taking or not, until `bound` tasks have room.
  EmptyFit IfEmpty(ShapeId shape, int64_t bound, bool one_per_node, uint64_t* work);

  // The places that a group with a greatest skew is spread over. Looks at every node once a cycle.
  const SpreadPlaces& PlacesFor(const Group& group);

  // What the nodes that could hold a task of any of the shapes have, if nothing ran there.
  Resources EmptyCapacity(const std::vector<ShapeId>& shapes, uint64_t* work);

  // Whose reservation kept something from a seeker since the last call, if any did.
  std::optional<JobId> TakeBarredBy() { return std::exchange(barred_by_, std::nullopt); }
  // Where tasks of other jobs are kept a seeker from a node since the last call.
  bool TakeBarredByAffinity() { return std::exchange(barred_by_affinity_, false); }
  // From now on, whether that counts (JobAffinity): to see what would be without.
  void HeedAffinity(bool heed) { heeds_affinity_ = heed; }
  // What bars this job's tasks is worked out once, and held while nothing but these tasks changes;
  // and no longer. Adds to `work`.
  void HoldAffinity(const Job& job, uint64_t* work);
  void DropAffinity() { held_.reset(); }

 private:
  struct Prepared {
    Prepared(const Policies& policies, const ShapeRequest& request, FixedTest& test);
    bool Passes(const Offer& offer) const { return fixed.Passes(offer.node) && PassesNow(offer); }
    bool PassesFixed(const ClusterState& state, const Node& node) const;
    bool PassesNow(const Offer& offer) const;  // the tests that are not part of `fixed`

    const ShapeEntry& entry;
    FixedTest& fixed;
    std::vector<NodeTest> tests;
    std::vector<NodeRank> ranks;
    DeviceChoice devices;
  };
  // What one search looks for, and the best so far: of equal ranks the node seen first.
  struct Look;
  using NodeRanks = std::function<void(const Offer&)>;
  Prepared& Prepare(ShapeId shape);
  Look LookFor(const Seeker& seeker);
  std::unique_ptr<JobAffinity> AffinityOf(const Job& job, uint64_t* work);
  void HeedNeighbours(Look* look);
  std::optional<DeviceUse> UsedIfRoom(Look* look, const Node& node, int64_t tasks,
                                      const NodeRanks& rank);
  // If the node has room for so many of them and passes: the devices that they may not have. `rank`
  // is then told what it has to give.
  std::optional<DeviceUse> UsedIfSuits(Look* look, NodeId id, int64_t tasks, const NodeRanks& rank);
  void Consider(Look* look, NodeId id, int64_t tasks);
  void Walk(Look* look, Strategy strategy);
  void WalkUp(Look* look, int64_t tasks);
  void WalkDown(Look* look);
  void NoteVain(Look* look);
  void WalkToColocate(Look* look);
  bool GoesByBoard(const Look& look, Strategy strategy) const;
  bool SpreadsOverDevices(const Look& look) const;
  void AskBoard(Look* look);
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
  std::optional<JobId> barred_by_;
  bool barred_by_affinity_ = false;
  bool heeds_affinity_ = true;
  struct Held {
    JobId job;
    std::unique_ptr<JobAffinity> affinity;  // null: nothing bars it
  };
  std::optional<Held> held_;
  absl::flat_hash_map<ShapeId, std::unique_ptr<Prepared>> prepared_;
  std::map<std::pair<ShapeId, int32_t>, std::unique_ptr<SpreadPlaces>> places_;  // by tier
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_NODE_SEARCH_H_
