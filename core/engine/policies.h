// The plug points of planning, and the configured set of them.
//
// Each plug point is one narrow interface with a name and a prepare step that returns a cheap
// callable. What depends only on the request is computed once per task shape and cycle; what
// depends on the node is computed per node.
//
//   NodeFilter  may a task of this shape go there?      resources/devices, node_selector, taints
//   NodeScore   which of the allowed nodes is best?     reliable_first, image_locality, best_fit
//   JobOrder    which pending job goes first?           priority_then_submit, shortest_first,
//                                                       shortest_remaining, smallest_area,
//                                                       least_attained
//   Action      one stage of a cycle, in order          allocate, backfill, consolidate, reclaim,
//                                                       preempt, rotate, migrate, expire_gangs
//
// core/policies/registry.cc has the only list of built-in policies.
//
// Policies keep no state between calls. One cycle at a time may use them.
#ifndef BERTH_CORE_ENGINE_POLICIES_H_
#define BERTH_CORE_ENGINE_POLICIES_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/engine/parameters.h"
#include "core/model/cluster_state.h"

namespace berth {

class Cycle;      // core/engine/cycle.h
class Policies;   // below
struct JobNeeds;  // core/model/pending_index.h

// What a node has to offer: as it is now, or as if it were empty. A view.
struct Offer {
  const Node& node;
  const Resources& free;
  DeviceUse used;
};

// One shape, as interned, and the names of resource kinds.
struct ShapeRequest {
  const ShapeEntry& entry;
  const Interner& interner;
};

using NodeTest = std::function<bool(const Offer&)>;

// Called for nodes that take new tasks (FreeIndex), and, to explain a pending job, for all nodes as
// if they were empty.
class NodeFilter {
 public:
  virtual ~NodeFilter() = default;
  virtual absl::string_view name() const = 0;
  // An empty function if every node passes. The request outlives it.
  virtual NodeTest Prepare(const ShapeRequest& request) const = 0;
  // The result depends only on the node's specification and on the shape's models, labels, excluded
  // nodes and tolerations: not on what is free or in use, nor on amounts. The result is then cached
  // until the node's specification changes.
  virtual bool OfNodeAlone() const { return false; }
};

// What a score may depend on, besides the node.
struct ScoreRequest {
  ShapeRequest shape;
  int32_t tasks = 1;  // of the group
  const Policies& policies;
  const ClusterState& state;
  ImageId image = {};  // of the group
  // The search begins with the node that has the most free devices, and not with the tightest one.
  bool downward = false;
};

// A score that prefers nodes that hold an image to others of about the same fit. The search then
// finds the best node without a look at all of them.
//
//   devices 1, tightest first   free devices: n0 2, n1 3 (holds it), n2 4 (holds it) -> n1
//                               free devices: n0 2, n2 4 (holds it)                  -> n0
struct ImagePreference {
  ImageId image = {};
  int32_t devices = 0;  // more free devices that a node which holds it may have
  bool downward = false;

  // Lower is better. `room`: FreeIndex::Key::room of the node.
  int64_t LevelOf(const Node& node, uint64_t room) const {
    return HoldsImage(node, image) ? HolderLevel(room) : LevelAt(room);
  }
  int64_t HolderLevel(uint64_t room) const { return LevelAt(room) - 2 * int64_t{devices} - 1; }

 private:
  int64_t LevelAt(uint64_t room) const {
    const int64_t free = FreeIndex::Devices(room);
    return 2 * (downward ? -free : free);
  }
};

// Lower is better. Several scores are levels: the second decides where the first is equal, and
// finally the order of FreeIndex (free devices, free cpu, id). A search ends at a node that has
// kBestRank at all levels.
using NodeRank = std::function<int64_t(const Offer&)>;
inline constexpr int64_t kBestRank = std::numeric_limits<int64_t>::min();

class NodeScore {
 public:
  virtual ~NodeScore() = default;
  virtual absl::string_view name() const = 0;
  // An empty function if this score is the order of FreeIndex itself: later levels are ignored, and
  // without an earlier level the first node that fits is the best. Otherwise nodes with enough free
  // are ranked, all of them unless one has kBestRank. nullopt: no opinion; the next level is used.
  virtual std::optional<NodeRank> Prepare(const ScoreRequest& request) const = 0;
  // If the rank of each node is this preference's LevelOf.
  virtual std::optional<ImagePreference> Prefers(const ScoreRequest&) const { return std::nullopt; }
};

// Negative: `a` goes before `b`; 0: equal. For pending jobs of one queue;
// core/engine/order/service_order.h chooses the next queue. Several orders are levels; finally the
// order of that header decides. Jobs of one class (core/model/pending_index.h) are served by
// priority, deadline and id, whatever the order between classes.
using JobCompare = std::function<int(const Job& a, const Job& b)>;

// Lower goes first among jobs of one queue, priority and deadline; among equals the older. Depends
// only on facts of the job that never change except with JobStatus::attained, and on the time as
// JobOrder::RanksAgain reports. At least the minimum of int64 + kRankRoom.
using JobRank = std::function<int64_t(const Job& job, Time now)>;
// In an order that ages (below), ranks are logarithms: this difference means twice as long.
inline constexpr int64_t kRankOctave = 1000 * (int64_t{1} << 16);
inline constexpr int64_t kRankRoom = 64 * kRankOctave;

// A job's claim to room relative to others of its queue, pending or running: less is stronger.
struct Standing {
  int64_t value = 0;
  Time until = absl::InfiniteFuture();  // if it runs longer, the value may be greater from then on
};
using JobStanding = std::function<Standing(const ClusterState& state, const Job& job, Time now)>;

class JobOrder {
 public:
  virtual ~JobOrder() = default;
  virtual absl::string_view name() const = 0;
  // An empty function if this order is that of ServiceOrder itself: later levels are ignored, and
  // without an earlier level the next job is found at once. Otherwise, for each job, the heads of
  // all classes of the queue are compared.
  virtual JobCompare Prepare(const ClusterState& state, Time now) const = 0;
  // If this order is that of ServiceOrder itself: the rank that replaces age in it, among all jobs,
  // including those of one class; an empty function if age stays. Called once per job, so it costs
  // no more than age. nullopt: no opinion; the next order is used.
  virtual std::optional<JobRank> PrepareRank(const Policies& policies,
                                             const ClusterState& state) const;
  // When the rank of that pending job will change; later than now.
  virtual Time RanksAgain(const Policies& policies, const Job& job, Time now) const;
  // Ranks are logarithms of lengths, and fall as the job is overtaken
  // (core/engine/order/line_levels.h).
  virtual bool Ages() const { return false; }
  // For `rotate`: a job may take the room of another whose value is greater by at least
  // StandingGap(). An empty function: no job may.
  virtual JobStanding PrepareStanding(const Policies& policies) const;
  virtual int64_t StandingGap() const { return 1; }
};

// Which jobs an action works for.
enum class ActionRole : uint8_t {
  kServes,     // pending jobs: it finds those that lack room
  kMakesRoom,  // only jobs that an earlier action in the cycle found to lack room
  kOther       // running jobs
};

// One stage of a cycle. Leaves only complete decisions in the transaction, and checks the budget
// between jobs.
class Action {
 public:
  virtual ~Action() = default;
  virtual absl::string_view name() const = 0;
  // An action that makes room does nothing before one that serves; Policies::Create refuses such an
  // order.
  virtual ActionRole role() const { return ActionRole::kServes; }
  virtual void Run(Cycle& cycle) const = 0;
  // Makes room for that pending job by stopping or moving others, as Run would in its turn. False
  // if it decided nothing. backfill calls the actions after it in the cycle before it lets others
  // overtake the job.
  virtual bool MakeRoomFor(Cycle& cycle, const Job& job, const JobNeeds& needs) const;
};

// Names, in order. Policies::Create reports names that are not in the registry.
struct PolicyConfig {
  PolicyConfig();
  PolicyConfig(const PolicyConfig&);
  PolicyConfig(PolicyConfig&&) noexcept;
  PolicyConfig& operator=(const PolicyConfig&);
  PolicyConfig& operator=(PolicyConfig&&) noexcept;
  ~PolicyConfig();

  std::vector<std::string> actions = {"allocate", "backfill", "consolidate", "reclaim",
                                      "preempt",  "migrate",  "expire_gangs"};
  std::vector<std::string> filters = {"resources/devices", "node_selector", "taints"};
  std::vector<std::string> scores = {"reliable_first", "image_locality", "best_fit"};
  std::vector<std::string> job_orders = {"priority_then_submit"};
  LifecycleParameters lifecycle;
  FairShareParameters fair_share;
  BackfillParameters backfill;
  PredictionParameters prediction;
  ShortestFirstParameters shortest_first;
  LeastAttainedParameters least_attained;
  EvictionParameters eviction;
  TopologyParameters topology;
  MigrationParameters migration;
  ReliableFirstParameters reliable_first;
  ImageLocalityParameters image_locality;
  SharingParameters sharing;
};

// The configured set. Movable; must outlive the cycles that use it.
class Policies {
 public:
  Policies();  // no policy at all
  Policies(Policies&&) noexcept;
  Policies& operator=(Policies&&) noexcept;
  ~Policies();
  static Policies Default();
  // INVALID_ARGUMENT naming every name that is unknown or repeated, and every action that would
  // never do anything at its position.
  static absl::StatusOr<Policies> Create(const PolicyConfig& config);

  const std::vector<std::unique_ptr<Action>>& actions() const { return actions_; }
  bool HasAction(absl::string_view name) const;
  const std::vector<std::unique_ptr<NodeFilter>>& filters() const { return filters_; }
  const std::vector<std::unique_ptr<NodeScore>>& scores() const { return scores_; }
  const std::vector<std::unique_ptr<JobOrder>>& job_orders() const { return job_orders_; }
  const LifecycleParameters& lifecycle() const { return config_.lifecycle; }
  const FairShareParameters& fair_share() const { return config_.fair_share; }
  const BackfillParameters& backfill() const { return config_.backfill; }
  const PredictionParameters& prediction() const { return config_.prediction; }
  const ShortestFirstParameters& shortest_first() const { return config_.shortest_first; }
  const LeastAttainedParameters& least_attained() const { return config_.least_attained; }
  const EvictionParameters& eviction() const { return config_.eviction; }
  const TopologyParameters& topology() const { return config_.topology; }
  const MigrationParameters& migration() const { return config_.migration; }
  const ReliableFirstParameters& reliable_first() const { return config_.reliable_first; }
  const ImageLocalityParameters& image_locality() const { return config_.image_locality; }
  const SharingParameters& sharing() const { return config_.sharing; }
  // As given to Create.
  const PolicyConfig& config() const { return config_; }

 private:
  std::vector<std::unique_ptr<Action>> actions_;
  std::vector<std::unique_ptr<NodeFilter>> filters_;
  std::vector<std::unique_ptr<NodeScore>> scores_;
  std::vector<std::unique_ptr<JobOrder>> job_orders_;
  PolicyConfig config_;
};

using PolicyFactory =
    std::variant<std::unique_ptr<Action> (*)(), std::unique_ptr<NodeFilter> (*)(),
                 std::unique_ptr<NodeScore> (*)(), std::unique_ptr<JobOrder> (*)()>;

// Adds a policy from outside the source tree, so that a PolicyConfig can name it. Call it before
// the first Policies::Create, from one thread (a program's main). ALREADY_EXISTS if the plug point
// has a policy of that name.
absl::Status RegisterPolicy(absl::string_view name, PolicyFactory factory);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_POLICIES_H_
