#include "core/engine/search/node_search.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/engine/engine_cache.h"
#include "core/engine/search/neighbours.h"
#include "core/model/taints.h"

namespace berth {
namespace {

// Other groups must be near it, so it should go where there is much room.
bool IsAnchor(const Job& job, uint32_t group) {
  return std::any_of(job.groups.begin(), job.groups.end(), [&](const Group& other) {
    return &other != &job.groups[group] && Names(other.near_groups, group);
  });
}

constexpr uint64_t kScannedForALook = 64;  // nodes of the board
constexpr int64_t kTries = 8;              // nodes that do not pass before marks are used

// Uses the mark if there is one.
bool PassesFixed(const ClusterState& state, const FixedTest& fixed, const Node& node) {
  const FreeIndex::Marks mark = fixed.mark();
  return mark != 0 ? (state.free().MarksOf(node.id) & mark) != 0 : fixed.Passes(node);
}

bool AmountsDecide(const Policies& policies) {
  return std::all_of(policies.filters().begin(), policies.filters().end(), [](const auto& filter) {
    return filter->OfNodeAlone() || filter->name() == "resources/devices";
  });
}

}  // namespace

bool KeepsApart(const Group& group, uint32_t index) { return Names(group.apart_from, index); }

int64_t TimesIn(const Resources& request, const Resources& amounts, int64_t bound) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] > 0) bound = std::min(bound, amounts.amount[i] / request.amount[i]);
  }
  return bound;
}

NodeSearch::NodeSearch(const ClusterState& state, const Policies& policies,
                       Reservations* reservations, StateEditor* editor)
    : state_(state),
      policies_(policies),
      reservations_(reservations),
      editor_(editor),
      marks_(editor == nullptr ? own_marks_ : CacheOf(*editor).marks),
      trees_(editor == nullptr ? own_trees_ : CacheOf(*editor).trees),
      board_(editor == nullptr ? own_board_ : CacheOf(*editor).board),
      amounts_decide_(AmountsDecide(policies)) {
  if (editor != nullptr) marks_.Follow(*editor, state);
}

NodeSearch::Prepared::Prepared(const Policies& policies, const ShapeRequest& request,
                               FixedTest& test)
    : entry(request.entry), fixed(test), devices(request) {
  for (const auto& filter : policies.filters()) {
    if (filter->OfNodeAlone()) continue;
    NodeTest test_now = filter->Prepare(request);
    if (test_now != nullptr) tests.push_back(std::move(test_now));
  }
}

bool NodeSearch::Prepared::PassesNow(const Offer& offer) const {
  for (const NodeTest& test : tests) {
    if (!test(offer)) return false;
  }
  return true;
}

NodeSearch::Prepared& NodeSearch::Prepare(ShapeId shape) {
  std::unique_ptr<Prepared>& slot = prepared_[shape];
  if (slot == nullptr) {
    const Interner& interner = state_.interner();
    const ShapeEntry& entry = interner.Shape(shape);
    FixedTest& fixed = marks_.TestOf(policies_, shape, interner);
    slot = std::make_unique<Prepared>(policies_, ShapeRequest{entry, interner}, fixed);
  }
  return *slot;
}

struct NodeSearch::Look {
  Prepared& prepared;
  FixedTest* fixed = &prepared.fixed;
  const Scores* scores = nullptr;
  bool ranked = false;  // nodes are compared by scores->ranks
  const Seeker* seeker = nullptr;
  bool layout = false;                             // the job's groups have affinity
  bool heeds = false;                              // respects reservations of others
  VainSearches::Visited* visited = nullptr;        // receives nodes that pass the fixed part
  bool marked = false;                             // visits only nodes that pass the fixed part
  std::optional<SpreadCount> spread = {};          // of its group
  const JobAffinity* affinity = nullptr;           // null: it blocks nothing
  std::unique_ptr<JobAffinity> own_affinity = {};  // if none is held
  int64_t in_vain = 0;                             // visited nodes that do not pass
  uint64_t work = 0;                               // visited nodes that pass
  std::optional<NodeId> best = {};
  std::vector<int64_t> best_ranks = {};
  DeviceUse used = {};                  // of the best node
  int64_t left = 0;                     // of the device that a share should use; 0: no wish
  std::optional<int64_t> cost = {};     // of the best place, if the sharing policy chose it
  std::optional<int64_t> to_beat = {};  // only nodes whose HolderLevel is lower matter
  // None of those not yet visited is better.
  bool Done() const {
    const auto is_best = [](int64_t rank) { return rank == kBestRank; };
    return best.has_value() && std::all_of(best_ranks.begin(), best_ranks.end(), is_best);
  }
};

NodeSearch::Look NodeSearch::LookFor(const Seeker& seeker) {
  const Group& group = seeker.job.groups[seeker.group];
  Prepared& prepared = Prepare(group.shape);
  const bool kept = reservations_ != nullptr && reservations_->any();
  const Scores& scores = ScoresFor(seeker);
  Look look{.prepared = prepared,
            .scores = &scores,
            .ranked = !scores.ranks.empty(),
            .seeker = &seeker,
            .layout = HasNearOrApartGroups(seeker.job),
            .heeds = kept && !seeker.ignore_reservations && !prepared.entry.resources.IsZero()};
  if (group.spread.Any()) look.spread.emplace(PlacesFor(group), seeker.job, seeker.group);
  if (state_.affinity().any()) AddGroupAffinity(&look);
  return look;
}

// Null: nothing blocks the job.
std::unique_ptr<JobAffinity> NodeSearch::AffinityOf(const Job& job, uint64_t* work) {
  if (!affinity_enabled_ || !state_.affinity().Concerns(job)) return nullptr;
  auto affinity = std::make_unique<JobAffinity>(state_, trees_, job);
  *work += affinity->work();
  return affinity->empty() ? nullptr : std::move(affinity);
}

void NodeSearch::HoldAffinity(const Job& job, uint64_t* work) {
  if (state_.affinity().any()) held_ = Held{job.id, AffinityOf(job, work)};
}

void NodeSearch::AddGroupAffinity(Look* look) {
  const Job& job = look->seeker->job;
  const bool held = held_.has_value() && held_->job == job.id;
  if (!held) look->own_affinity = AffinityOf(job, &look->work);
  look->affinity = held ? held_->affinity.get() : look->own_affinity.get();
}

const SpreadPlaces& NodeSearch::PlacesFor(const Group& group) {
  std::unique_ptr<SpreadPlaces>& places = places_[{group.shape, group.spread.tier}];
  if (places == nullptr) {
    const int32_t tier = group.spread.tier;
    const TopologyTree* tree = tier == 0 ? nullptr : trees_.Of(state_, kNetworkKind);
    places = std::make_unique<SpreadPlaces>(state_, tree, tier, [&](NodeId node) {
      return FitsEmpty(group.shape, node, kMaxTasksPerJob);
    });
  }
  return *places;
}

std::optional<DeviceUse> NodeSearch::UsedIfSuits(Look* look, NodeId id, int64_t tasks,
                                                 const NodeRanks& rank) {
  const ShapeEntry& entry = look->prepared.entry;
  const Node& node = state_.nodes().At(id);
  if (tasks > 1 && tasks > TaskRoom(node)) return std::nullopt;
  if (!look->marked && !PassesFixed(state_, *look->fixed, node)) {
    ++look->in_vain;
    return std::nullopt;
  }
  ++look->work;
  if (look->visited != nullptr) look->visited->push_back(state_.free().KeyOf(id));
  const Resources& free = state_.free().FreeOf(id);
  if (!(tasks == 1 ? entry.least : entry.least.Times(tasks)).FitsIn(free)) {
    return std::nullopt;
  }
  if (look->seeker != nullptr && IsKeptOut(look->seeker->job.status, id)) return std::nullopt;
  if (look->layout && !AffinityAllows(state_, trees_, look->seeker->job, look->seeker->group, node))
    return std::nullopt;
  if (look->spread.has_value() && !look->spread->May(id)) return std::nullopt;
  if (look->affinity == nullptr || look->affinity->May(id)) {
    return UsedIfRoom(look, node, tasks, rank);
  }
  barred_by_affinity_ = barred_by_affinity_ || UsedIfRoom(look, node, tasks, nullptr).has_value();
  return std::nullopt;
}

std::optional<DeviceUse> NodeSearch::UsedIfRoom(Look* look, const Node& node, int64_t tasks,
                                                const NodeRanks& rank) {
  const ShapeEntry& entry = look->prepared.entry;
  const Resources& free = state_.free().FreeOf(node.id);
  const auto passes = [&](const Offer& offer) {
    if (!look->prepared.PassesNow(offer)) return false;
    if (tasks > 1 && look->prepared.devices.SetsIn(offer, tasks) < tasks) return false;
    if (rank != nullptr) rank(offer);
    return true;
  };
  DeviceUse used = TakenDevices(node);
  if (!look->heeds) return passes({node, free, used}) ? std::optional(used) : std::nullopt;
  Resources left = free;
  const Seeker& seeker = *look->seeker;
  const std::optional<JobId> kept_for =
      reservations_->Withhold(node, seeker.job, seeker.window, &left, &used);
  if (TimesIn(entry.least, left, tasks) == tasks && passes({node, left, used})) return used;
  if (kept_for.has_value()) blocked_by_ = kept_for;
  return std::nullopt;
}

void NodeSearch::Consider(Look* look, NodeId id, int64_t tasks) {
  std::vector<int64_t> ranks;
  const auto rank = [&](const Offer& offer) {
    for (const NodeRank& one : look->scores->ranks) ranks.push_back(one(offer));
  };
  const bool ranked = look->ranked;
  const auto used = UsedIfSuits(look, id, tasks, ranked ? NodeRanks(rank) : NodeRanks());
  if (!used.has_value()) return;
  if (ranked && look->best.has_value() && ranks >= look->best_ranks) return;
  look->best = id;
  look->best_ranks = std::move(ranks);
  look->used = *used;
}

// No later node of the walk matters: none is better, whether it holds the image or not.
bool NodeSearch::IsBeyond(const Look& look, NodeId id) const {
  if (!look.to_beat.has_value()) return false;
  return look.scores->preference->HolderLevel(state_.free().KeyOf(id).room) >= *look.to_beat;
}

// Other scores come first; `spread` and `colocate` define what is best themselves.
bool NodeSearch::GoesByBoard(const Look& look, Strategy strategy) const {
  return state_.shareable_nodes() > 0 && strategy == Strategy::kBinpack &&
         !SpreadsOverDevices(look) && !look.ranked;
}

// Spreading also decides what is best on a node.
bool NodeSearch::SpreadsOverDevices(const Look& look) const {
  if (look.seeker == nullptr) return false;
  const Job& job = look.seeker->job;
  const Queue& queue = state_.queues().At(job.queue);
  return DeviceStrategyOf(job, job.groups[look.seeker->group], queue.spec.device_strategy,
                          StrategyFor(*look.seeker)) == Strategy::kSpread;
}

void NodeSearch::SearchBoard(Look* look) {
  board_.Follow(editor_, state_, policies_.sharing().policy);
  look->work += state_.nodes().size() / kScannedForALook;
  const auto may_have = [&](NodeId id) {
    const bool any = !look->to_beat.has_value();
    if (!any && !HoldsImage(state_.nodes().At(id), look->scores->preference->image)) return false;
    return state_.free().Has(id) && UsedIfSuits(look, id, 1, nullptr).has_value();
  };
  const auto place = board_.Best(look->prepared.entry.shape, may_have);
  NoteFailures(look);
  if (!place.has_value()) return;
  look->best = place->node;
  look->left = place->left;
  look->cost = place->cost;
  look->used = *UsedIfSuits(look, place->node, 1, nullptr);
}

void NodeSearch::Walk(Look* look, Strategy strategy) {
  if (GoesByBoard(*look, strategy)) {
    SearchBoard(look);
    // The board assumes one model per node and at most 128 devices: it may miss a place.
    if (look->best.has_value()) return;
  }
  return strategy == Strategy::kSpread ? WalkDown(look) : WalkUp(look, 1);
}

// Most free first; otherwise like WalkUp.
void NodeSearch::WalkDown(Look* look) {
  const ShapeEntry& entry = look->prepared.entry;
  const int64_t cpu_millis = entry.resources[kCpu];
  const FreeIndex& free = state_.free();
  const FreeIndex::Marks mark = look->fixed->mark();
  std::optional<FreeIndex::Key> last;
  const auto devices = static_cast<int>(entry.DevicesFor(1));
  free.ForEachFromTop(devices, cpu_millis, [&](NodeId id) {
    if (IsBeyond(*look, id)) return false;
    Consider(look, id, 1);
    if (mark != 0 && look->in_vain >= kTries) last = free.KeyOf(id);
    return !look->Done() && !last.has_value();
  });
  if (!look->Done() && last.has_value()) {
    editor_->SyncMarks();
    look->marked = true;
    free.ForEachMarkedFromTop(mark, *last, devices, cpu_millis, [&](NodeId id) {
      if (IsBeyond(*look, id)) return false;
      Consider(look, id, 1);
      return !look->Done();
    });
    look->marked = false;
  }
  NoteFailures(look);
}

// Tightest first, nodes that could have room for that many tasks. Usually one of the first matches.
// Only if not is it worth restricting the search to nodes that pass the fixed part.
void NodeSearch::WalkUp(Look* look, int64_t tasks) {
  const ShapeEntry& entry = look->prepared.entry;
  const auto devices = static_cast<int>(entry.DevicesFor(tasks));
  const int64_t cpu_millis = entry.resources[kCpu] * tasks;
  const FreeIndex& free = state_.free();
  const FreeIndex::Marks mark = look->fixed->mark();
  std::optional<FreeIndex::Key> last;
  free.ForEach(devices, cpu_millis, [&](NodeId id, const Resources&) {
    if (IsBeyond(*look, id)) return false;
    Consider(look, id, tasks);
    if (mark != 0 && look->in_vain >= kTries) last = free.KeyOf(id);
    return !look->Done() && !last.has_value();
  });
  if (!look->Done() && last.has_value()) {
    editor_->SyncMarks();
    look->marked = true;
    free.ForEachMarked(mark, *last, cpu_millis, [&](NodeId id, const Resources&) {
      if (IsBeyond(*look, id)) return false;
      Consider(look, id, tasks);
      return !look->Done();
    });
    look->marked = false;
  }
  NoteFailures(look);
}

void NodeSearch::NoteFailures(Look* look) {
  const int64_t in_vain = std::exchange(look->in_vain, 0);
  if (in_vain == 0 || editor_ == nullptr) return;
  marks_.FailedVisits(*editor_, state_, *look->fixed, in_vain);
}

// A node that already has tasks of the job. While tasks are placed one after the other, a node that
// had no room for the previous one has none for this one.
bool NodeSearch::BesideOwn(Look* look) {
  const Seeker& seeker = *look->seeker;
  const auto consider = [&](NodeId id) {
    if (state_.free().Has(id)) Consider(look, id, 1);
    return look->best.has_value();
  };
  if (seeker.last != NodeId{}) return consider(seeker.last);
  std::vector<NodeId> own;
  for (const Task& task : seeker.job.tasks) {
    if (Occupies(task.state) || Reserves(task.state)) own.push_back(task.node);
  }
  std::sort(own.begin(), own.end());
  own.erase(std::unique(own.begin(), own.end()), own.end());
  return std::any_of(own.begin(), own.end(), consider);
}

// The tightest of the nodes where most of the rest fits. A node with room for k tasks has room for
// fewer, so binary search finds the most. Returns how many.
int64_t NodeSearch::WalkToColocate(Look* look) {
  const ShapeEntry& entry = look->prepared.entry;
  const auto search = [&](int64_t tasks) {
    if (entry.DevicesFor(tasks) > static_cast<int64_t>(kMaxDevicesPerNode)) return;
    WalkUp(look, tasks);
  };
  const int64_t rest = std::max(look->seeker->rest, 1);
  search(rest);  // usually all of them fit on one
  if (look->best.has_value()) return rest;
  std::optional<NodeId> best;
  DeviceUse used;
  int64_t most = 0;
  for (int64_t fits = 0, fits_not = rest; fits_not - fits > 1;) {
    const int64_t tasks = fits + (fits_not - fits) / 2;
    look->best.reset();
    search(tasks);
    (look->best.has_value() ? fits : fits_not) = tasks;
    if (!look->best.has_value()) continue;
    best = look->best;
    used = look->used;
    most = tasks;
  }
  look->best = best;
  look->used = used;
  return most;
}

// The nodes that hold the image, in the order in which WalkUp and WalkDown would visit them.
void NodeSearch::WalkFew(Look* look, Strategy strategy, int64_t tasks) {
  const ShapeEntry& entry = look->prepared.entry;
  const int64_t devices = entry.DevicesFor(tasks), cpu_millis = entry.resources[kCpu] * tasks;
  absl::InlinedVector<FreeIndex::Key, 16> order;
  for (NodeId id : *look->scores->few) {
    if (!state_.free().Has(id) || IsBeyond(*look, id)) continue;
    const FreeIndex::Key key = state_.free().KeyOf(id);
    const bool enough =
        FreeIndex::Devices(key.room) >= devices && FreeIndex::CpuMillis(key.room) >= cpu_millis;
    if (enough) order.push_back(key);
  }
  const auto rank = [&](const FreeIndex::Key& key) {
    const int free = FreeIndex::Devices(key.room);
    const int64_t cpu = FreeIndex::CpuMillis(key.room);
    if (strategy != Strategy::kSpread) return std::tuple(free, cpu, key.node);
    return std::tuple(devices > 0 ? -free : free, -cpu, key.node);
  };
  std::sort(order.begin(), order.end(),
            [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  for (size_t i = 0; i < order.size() && !look->best.has_value(); ++i) {
    Consider(look, order[i].node, tasks);
  }
  NoteFailures(look);
}

// The best node that holds the image, if it is preferred to the best of all nodes. Where the
// sharing policy chooses, a place must cost the same.
void NodeSearch::PreferHolder(Look* look, Strategy strategy, int64_t tasks) {
  if (!look->best.has_value()) return;
  const ImagePreference& preference = *look->scores->preference;
  const NodeId first = *look->best;
  const Node& node = state_.nodes().At(first);
  if (HoldsImage(node, preference.image)) return;
  const DeviceUse used = look->used;
  const int64_t left = look->left;
  const std::optional<int64_t> cost = look->cost;
  look->to_beat = preference.LevelOf(node, state_.free().KeyOf(first).room);
  look->best.reset();
  if (cost.has_value()) {
    SearchBoard(look);
    if (look->best.has_value() && look->cost != cost) look->best.reset();
  } else if (look->scores->few != nullptr) {
    WalkFew(look, strategy, tasks);
  } else {
    look->fixed = look->scores->holders;
    strategy == Strategy::kSpread ? WalkDown(look) : WalkUp(look, tasks);
  }
  if (look->best.has_value()) return;
  look->best = first;
  look->used = used;
  look->left = left;
}

std::optional<Found> NodeSearch::Take(const Look& look) {
  if (!look.best.has_value()) return std::nullopt;
  const Offer offer{state_.nodes().At(*look.best), state_.free().FreeOf(*look.best), look.used};
  const bool minds_rails = look.seeker != nullptr && look.prepared.devices.minds_rails();
  std::optional<DeviceSet> devices = look.prepared.devices.Choose(
      offer, minds_rails ? look.seeker->RailsFor(*look.best) : DeviceSet{},
      {.left = look.left, .spread = SpreadsOverDevices(look)});
  if (!devices.has_value()) return std::nullopt;
  return Found{*look.best, *devices};
}

std::optional<Found> NodeSearch::Best(const Seeker& seeker, uint64_t* work) {
  const Strategy strategy = StrategyFor(seeker);
  const bool by_amounts = reservations_ != nullptr && OnlyAmountsMatter(seeker);
  if (by_amounts && IsVain(seeker, work)) return std::nullopt;
  Look look = LookFor(seeker);
  VainSearches::Visited visited;
  if (by_amounts) look.visited = &visited;
  const bool prefers = look.scores->preference_only;
  if (prefers) look.ranked = false;
  if (strategy != Strategy::kColocate) {
    Walk(&look, strategy);
    if (prefers) PreferHolder(&look, strategy, 1);
  } else if (!BesideOwn(&look)) {
    const int64_t tasks = WalkToColocate(&look);
    if (prefers) PreferHolder(&look, strategy, tasks);
  }
  *work += look.work;
  if (by_amounts && !look.best.has_value()) {
    vain_.Add(reservations_->version(), RequestOf(seeker), std::move(visited));
  }
  return Take(look);
}

std::optional<Found> NodeSearch::Best(ShapeId shape, uint64_t* work) {
  const Scores& scores = ScoresOf(shape, {});
  Look look{.prepared = Prepare(shape), .scores = &scores, .ranked = !scores.ranks.empty()};
  Walk(&look, Strategy::kBinpack);
  *work += look.work;
  return Take(look);
}

Strategy NodeSearch::StrategyFor(const Seeker& seeker) const {
  const Job& job = seeker.job;
  if (HasNearOrApartGroups(job) && IsAnchor(job, seeker.group)) return Strategy::kSpread;
  return StrategyOf(job, job.groups[seeker.group], state_.queues().At(job.queue).spec.strategy);
}

std::optional<Found> NodeSearch::BestOf(const Seeker& seeker, absl::Span<const NodeId> nodes,
                                        uint64_t* work) {
  Look look = LookFor(seeker);
  std::vector<FreeIndex::Key> order;  // among equal ranks the first in FreeIndex order wins
  for (NodeId node : nodes) {
    if (state_.free().Has(node)) order.push_back(state_.free().KeyOf(node));
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size() && !look.Done(); ++i) Consider(&look, order[i].node, 1);
  *work += look.work;
  return Take(look);
}

std::optional<DeviceSet> NodeSearch::On(const Seeker& seeker, NodeId node) {
  if (!state_.free().Has(node)) return std::nullopt;
  Look look = LookFor(seeker);
  Consider(&look, node, 1);
  const std::optional<Found> found = Take(look);
  return found.has_value() ? std::optional(found->devices) : std::nullopt;
}

int64_t NodeSearch::FitsIn(ShapeId shape, const Offer& offer, int64_t bound) {
  const Prepared& prepared = Prepare(shape);
  const int64_t times = TimesIn(prepared.entry.least, offer.free, bound);
  if (times == 0 || !prepared.Passes(offer)) return 0;
  return prepared.devices.SetsIn(offer, times);
}

int64_t NodeSearch::FitsFree(ShapeId shape, NodeId id, int64_t bound) {
  const Node& node = state_.nodes().At(id);
  const Offer offer{node, state_.free().FreeOf(id), TakenDevices(node)};
  return FitsIn(shape, offer, std::min(bound, TaskRoom(node)));
}

bool NodeSearch::FitsNow(ShapeId shape, NodeId id) {
  const ShapeEntry& entry = state_.interner().Shape(shape);
  const Resources& free = state_.free().FreeOf(id);
  if (!entry.least.FitsIn(free)) return false;
  const Node& node = state_.nodes().At(id);
  const Offer offer{node, free, TakenDevices(node)};
  if (amounts_decide_ && offer.used.shared.empty() && AnyDevicesDo(entry.shape)) {
    return PassesFixed(state_, marks_.TestOf(policies_, shape, state_.interner()), node);
  }
  return Prepare(shape).Passes(offer);
}

void NodeSearch::ForEachWithRoom(ShapeId shape, absl::FunctionRef<bool(NodeId)> visit) {
  Look look{.prepared = Prepare(shape)};
  const ShapeEntry& entry = look.prepared.entry;
  const FreeIndex::Marks mark = look.prepared.fixed.mark();
  const auto consider = [&](NodeId id, const Resources& free) {
    if (!entry.least.FitsIn(free)) return true;
    if (mark != 0 || look.prepared.fixed.Passes(state_.nodes().At(id))) return visit(id);
    ++look.in_vain;
    return true;
  };
  const int64_t cpu_millis = entry.resources[kCpu];
  const auto devices = static_cast<int>(entry.DevicesFor(1));
  if (mark == 0) {
    state_.free().ForEach(devices, cpu_millis, consider);
    return NoteFailures(&look);
  }
  editor_->SyncMarks();
  const FreeIndex::Key before{FreeIndex::Room(devices, cpu_millis), NodeId{}};
  state_.free().ForEachMarked(mark, before, cpu_millis, consider);
}

void NodeSearch::ForEachOnceReleased(ShapeId shape, absl::FunctionRef<bool(NodeId)> visit) {
  Look look{.prepared = Prepare(shape)};
  const ShapeEntry& entry = look.prepared.entry;
  const auto devices = static_cast<int>(entry.DevicesFor(1));
  state_.free().ForEachSoon(devices, entry.resources[kCpu], [&](NodeId id) {
    const bool suits = PassesFixed(state_, look.prepared.fixed, state_.nodes().At(id));
    if (!suits) ++look.in_vain;
    return !suits || visit(id);
  });
  NoteFailures(&look);
}

NodeSearch::BackingOff NodeSearch::FindBackingOff(ShapeId shape, uint64_t* work) {
  BackingOff result;
  int seen = 0;
  for (const auto& [until, id] : state_.backoffs()) {  // earliest end first
    if (seen++ == kMaxBackoffsSeen) break;
    ++*work;
    const Node& node = state_.nodes().At(id);
    const Offer offer{node, berth::FreeOf(node), TakenDevices(node)};
    if (!TakesTasks(node.status) || FitsIn(shape, offer, 1) == 0) continue;
    if (result.nodes++ > 0) continue;
    result.first = id;
    result.until = until;
  }
  return result;
}

int32_t NodeSearch::FullNodes(ShapeId shape, uint64_t* work) {
  int32_t nodes = 0;
  int seen = 0;
  for (const NodeId id : state_.full_nodes()) {
    if (seen++ == kMaxFullSeen) break;
    ++*work;
    const Node& node = state_.nodes().At(id);
    const Offer offer{node, berth::FreeOf(node), TakenDevices(node)};
    if (TakesTasks(node.status) && FitsIn(shape, offer, 1) > 0) ++nodes;
  }
  return nodes;
}

}  // namespace berth
