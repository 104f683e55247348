// The plug points of planning, and the configured set of them.
//
// Each plug point is one narrow interface with a name and a prepare step that returns a cheap
// callable: what depends only on the request is worked out once per task shape and cycle, what
// depends on the node is asked per node.
//
//   NodeFilter  may a task of this shape go there?      resources/devices, node_selector, taints
//   NodeScore   which of the nodes that may is best?    best_fit
//   JobOrder    which of two waiting jobs goes first?   priority_then_submit, shortest_first,
//                                                       shortest_remaining, smallest_area,
//                                                       least_attained
//   Action      one stage of a cycle, in order          allocate, backfill, consolidate, reclaim,
//                                                       preempt, rotate, expire_gangs
//
// The only list of what is built in is core/policies/registry.cc.
//
// Policies hold no state of their own between calls and may be used by one cycle at a time.
#ifndef BERTH_CORE_ENGINE_POLICIES_H_
#define BERTH_CORE_ENGINE_POLICIES_H_

#include <cstdint>
#include <functional>
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

// What a node has to give: as it is now, or as it would have if nothing ran there. A view.
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

// Asked only about nodes that take new tasks (FreeIndex), and, of all nodes as if they were empty,
// when a job that waits is told why.
class NodeFilter {
 public:
  virtual ~NodeFilter() = default;
  virtual absl::string_view name() const = 0;
  // An empty function when every node passes. The request outlives it.
  virtual NodeTest Prepare(const ShapeRequest& request) const = 0;
  // What its tests say follows from the node's specification and the shape's models, labels,
  // excluded nodes and tolerations alone: not from what is free or in use, nor from how much is
  // asked for. The answer is then remembered until the node's specification changes.
  virtual bool OfNodeAlone() const { return false; }
};

// Lower is better. Several scores are levels: the second decides where the first is equal, and the
// order of FreeIndex (free devices, free cpu, id) decides at last.
using NodeRank = std::function<int64_t(const Offer&)>;

class NodeScore {
 public:
  virtual ~NodeScore() = default;
  virtual absl::string_view name() const = 0;
  // An empty function when this score is the order of FreeIndex itself: levels after it have no
  // say, and without one before it the first node that fits is the best. Otherwise every node that
  // has enough free is ranked.
  virtual NodeRank Prepare(const ShapeRequest& request) const = 0;
};

// Negative: `a` goes before `b`; 0: as it may. For waiting jobs of one queue; which queue is next
// is said by core/engine/service_order.h. Several orders are levels; the order of that header
// decides at last. Jobs of one class (core/model/pending_index.h) are served by priority, deadline
// and id, whatever the order says between classes.
using JobCompare = std::function<int(const Job& a, const Job& b)>;

// Lower goes first among jobs of one queue, priority and deadline; the older of equal ones. Of
// facts of the job that change only with JobStatus::attained, and of the time where
// JobOrder::RanksAgain says so. From the least of int64 + kRankRoom on.
using JobRank = std::function<int64_t(const Job& job, Time now)>;
// Of an order that ages (below), ranks are logarithms: so much more is twice as long.
inline constexpr int64_t kRankOctave = 1000 * (int64_t{1} << 16);
inline constexpr int64_t kRankRoom = 64 * kRankOctave;

// How much room a job is entitled to beside others of its queue: waiting or running, less is more.
struct Standing {
  int64_t value = 0;
  Time until = absl::InfiniteFuture();  // if it runs on, the value may be greater from then on
};
using JobStanding = std::function<Standing(const ClusterState& state, const Job& job, Time now)>;

class JobOrder {
 public:
  virtual ~JobOrder() = default;
  virtual absl::string_view name() const = 0;
  // An empty function when this order is that of ServiceOrder itself: levels after it have no say,
  // and without one before it the next job is found at once. Otherwise the heads of all classes of
  // the queue are compared for each.
  virtual JobCompare Prepare(const ClusterState& state, Time now) const = 0;
  // An order that is that of ServiceOrder itself says here which rank takes the place of age in it,
  // among all jobs, those of one class included; an empty function when none does. Each job is
  // asked about once, so that it costs no more than age. nullopt: it says nothing about that, the
  // next order may.
  virtual std::optional<JobRank> PrepareRank(const Policies& policies,
                                             const ClusterState& state) const;
  // When the rank of that job, which waits, will be another; later than now.
  virtual Time RanksAgain(const Policies& policies, const Job& job, Time now) const;
  // Ranks are logarithms of lengths, and fall as the job is overtaken (core/engine/line_levels.h).
  virtual bool Ages() const { return false; }
  // For `rotate`: a job may take the room of another one whose value is greater by
  // at least StandingGap(). An empty function: none may.
  virtual JobStanding PrepareStanding(const Policies& policies) const;
  virtual int64_t StandingGap() const { return 1; }
};

// For which jobs an action is there.
enum class ActionRole : uint8_t {
  kServes,     // those that wait: it finds out who lacks room
  kMakesRoom,  // those that an action before it in the cycle found to lack room, and no others
  kOther       // those that run
};

// One stage of a cycle. Leaves the transaction with whole decisions only, and asks the budget
// between jobs.
class Action {
 public:
  virtual ~Action() = default;
  virtual absl::string_view name() const = 0;
  // One that makes room does nothing before one that serves: Policies::Create refuses such an
  // order.
  virtual ActionRole role() const { return ActionRole::kServes; }
  virtual void Run(Cycle& cycle) const = 0;
  // Makes room for that waiting job by stopping or moving others, as Run would in its turn. False:
  // it decided nothing. backfill asks those that come after it in the cycle, before it lets others
  // go around the job.
  virtual bool MakeRoomFor(Cycle& cycle, const Job& job, const JobNeeds& needs) const;
};

// Names, in order. A name that the registry does not have is an error of Policies::Create.
struct PolicyConfig {
  PolicyConfig();
  PolicyConfig(const PolicyConfig&);
  PolicyConfig(PolicyConfig&&) noexcept;
  PolicyConfig& operator=(const PolicyConfig&);
  PolicyConfig& operator=(PolicyConfig&&) noexcept;
  ~PolicyConfig();

  std::vector<std::string> actions = {"allocate", "backfill", "consolidate",
                                      "reclaim",  "preempt",  "expire_gangs"};
  std::vector<std::string> filters = {"resources/devices", "node_selector", "taints"};
  std::vector<std::string> scores = {"best_fit"};
  std::vector<std::string> job_orders = {"priority_then_submit"};
  LifecycleParameters lifecycle;
  FairShareParameters fair_share;
  BackfillParameters backfill;
  PredictionParameters prediction;
  ShortestFirstParameters shortest_first;
  LeastAttainedParameters least_attained;
  EvictionParameters eviction;
  TopologyParameters topology;
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
  // INVALID_ARGUMENT naming every name that is unknown or given twice, and every action that would
  // never do anything where it stands.
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

// Adds a policy from outside the tree, to be named in a PolicyConfig. Before the first
// Policies::Create, from one thread (a program's main). ALREADY_EXISTS if the plug point has one of
// that name.
absl::Status RegisterPolicy(absl::string_view name, PolicyFactory factory);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_POLICIES_H_
