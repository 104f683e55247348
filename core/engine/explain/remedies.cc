#include "core/engine/explain/remedies.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/base/check.h"

namespace berth {
namespace {

constexpr size_t kMaxQueuesTried = 8;
constexpr size_t kMaxModelsTried = 8;
constexpr size_t kMaxStartsTried = 4;

bool Never(const WaitReason& reason) {
  return reason.code == WaitCode::kNeverFits || reason.code == WaitCode::kNoMatchingNode;
}

// A queue's bound, or what is kept for others, has only `free` left.
bool LacksQuota(const WaitReason& reason) {
  return reason.code == WaitCode::kQueueLimit || reason.code == WaitCode::kNonPreemptibleQuota ||
         reason.code == WaitCode::kGuaranteeKept;
}

int64_t ScratchOf(const TaskShape& shape) {
  for (const NamedAmount& one : shape.extended) {
    if (one.name == kScratchName) return one.amount;
  }
  return 0;
}

// What each task requests of the resource, in its UnitOf.
int64_t AskedOf(const TaskShape& shape, absl::string_view resource) {
  if (resource == "cpu") return shape.cpu_millis;
  if (resource == "memory") return shape.memory_bytes;
  if (resource == kScratchName) return ScratchOf(shape);
  int64_t count = 0;
  for (const DeviceRequest& request : shape.devices) {
    if (request.kind != resource) continue;
    count += request.share > 0 ? request.share : request.count * kWhole;
  }
  return count;
}

class Finder {
 public:
  Finder(ClusterState& state, const Policies& policies, const Job& job, const WaitReason& first,
         Time now)
      : state_(state),
        policies_(policies),
        id_(job.id),
        spec_(SpecOf(state, job)),
        first_(first),
        never_(Never(first)),
        now_(now) {}

  std::vector<Remedy> Find();

 private:
  // The remedy starts the job: at once or, for a job that can never start, at some time.
  bool Helps(Remedy* remedy);
  void Offer(Remedy remedy) {
    if (Helps(&remedy)) found_.push_back(std::move(remedy));
  }
  void ShorterWalltime();
  void Preemptible();
  void OtherQueue();
  void OtherModel(uint32_t group);
  void AnyLinks(uint32_t group);
  void FewerTasks(uint32_t group);
  void SmallerTasks(uint32_t group);
  void TasksWithinQuota(uint32_t group);
  void LooserTopology();
  void LooserTopology(ScopeFit::Level level, uint32_t group, const TopologyConstraint& says);
  std::set<std::string> ModelsOf(const std::string& kind) const;
  Resources LargestNode() const;

  ClusterState& state_;
  const Policies& policies_;
  const JobId id_;
  const JobSpec spec_;
  const WaitReason first_;  // why it is pending
  const bool never_;
  const Time now_;
  int trials_ = 0;
  uint64_t work_ = 0;
  std::vector<Remedy> found_;
};

bool Finder::Helps(Remedy* remedy) {
  if (++trials_ > kMaxTrials || work_ >= kQuestionBudget) return false;
  const auto tried = DryRun(state_, policies_, Applied(*remedy, spec_), now_, id_);
  if (!tried.ok()) return false;
  work_ += tried->work;
  remedy->starts_now = tried->StartsNow();
  if (remedy->starts_now || !never_ || tried->exhausted) return remedy->starts_now;
  return !tried->nominated.empty() || (!tried->blockers.empty() && !Never(tried->blockers.front()));
}

// The longest walltime that ends before another job's reservation starts.
void Finder::ShorterWalltime() {
  std::set<Time> starts;
  for (const auto& [job, reservation] : state_.reservations()) {
    const bool shorter = reservation.start - now_ < spec_.walltime;
    if (job != id_ && reservation.start > now_ && shorter) starts.insert(reservation.start);
  }
  size_t tried = 0;
  for (auto start = starts.rbegin(); start != starts.rend() && tried < kMaxStartsTried; ++start) {
    Remedy remedy;
    remedy.kind = RemedyKind::kShorterWalltime;
    remedy.walltime = *start - now_;
    ++tried;
    if (!Helps(&remedy)) continue;
    found_.push_back(std::move(remedy));
    return;
  }
}

void Finder::Preemptible() {
  Remedy remedy;
  remedy.kind = RemedyKind::kPreemptible;
  if (!spec_.preemptible) Offer(std::move(remedy));
}

void Finder::OtherQueue() {
  std::vector<QueueId> leaves;
  state_.queues().ForEach([&](QueueId id, const Queue& queue) {
    if (queue.children.empty() && id != spec_.queue && state_.Open(id)) leaves.push_back(id);
  });
  if (leaves.size() > kMaxQueuesTried) leaves.resize(kMaxQueuesTried);
  for (QueueId leaf : leaves) {
    Remedy remedy;
    remedy.kind = RemedyKind::kOtherQueue;
    remedy.queue = leaf;
    if (!Helps(&remedy)) continue;
    found_.push_back(std::move(remedy));
    return;
  }
}

std::set<std::string> Finder::ModelsOf(const std::string& kind) const {
  std::set<std::string> models;
  state_.nodes().ForEach([&](NodeId, const Node& node) {
    for (const Device& device : node.spec.devices) {
      if (device.kind == kind && !device.model.empty()) models.insert(device.model);
    }
  });
  return models;
}

void Finder::OtherModel(uint32_t group) {
  for (const DeviceRequest& request : spec_.groups[group].shape.devices) {
    if (request.models.empty()) continue;
    size_t tried = 0;
    for (const std::string& model : ModelsOf(request.kind)) {
      const auto& wanted = request.models;
      if (std::find(wanted.begin(), wanted.end(), model) != wanted.end()) continue;
      if (++tried > kMaxModelsTried) break;
      Remedy remedy;
      remedy.kind = RemedyKind::kDeviceModel;
      remedy.group = group;
      remedy.text = model;
      remedy.device_kind = request.kind;
      if (!Helps(&remedy)) continue;
      found_.push_back(std::move(remedy));
      return;
    }
  }
}

void Finder::AnyLinks(uint32_t group) {
  for (const DeviceRequest& request : spec_.groups[group].shape.devices) {
    if (!request.AsksForLinks()) continue;
    Remedy remedy;
    remedy.kind = RemedyKind::kAnyLinks;
    remedy.group = group;
    remedy.device_kind = request.kind;
    Offer(std::move(remedy));
  }
}

// The most tasks that fit, by binary search: if more tasks fit, fewer do too.
void Finder::FewerTasks(uint32_t group) {
  const GroupSpec& of = spec_.groups[group];
  const int64_t step = std::max(of.partition_size, 1);
  std::optional<Remedy> best;
  for (int64_t low = 0, high = of.min_available / step; high - low > 1;) {
    const int64_t middle = low + (high - low) / 2;
    Remedy remedy;
    remedy.kind = RemedyKind::kFewerTasks;
    remedy.group = group;
    remedy.value = middle * step;
    const bool helps = Helps(&remedy);
    (helps ? low : high) = middle;
    if (helps) best = std::move(remedy);
  }
  if (best.has_value()) found_.push_back(*std::move(best));
}

Resources Finder::LargestNode() const {
  Resources most;
  state_.nodes().ForEach([&](NodeId, const Node& node) {
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      most.amount[i] = std::max(most.amount[i], node.capacity.amount[i]);
    }
  });
  return most;
}

// For a task that is larger than any node: the first resource that is short.
void Finder::SmallerTasks(uint32_t group) {
  const TaskShape& shape = spec_.groups[group].shape;
  const Resources most = LargestNode();
  const auto offer = [&](absl::string_view resource, int64_t asked, ResourceKind kind) {
    if (asked <= most[kind] || most[kind] == 0) return;
    Remedy remedy;
    remedy.kind = RemedyKind::kSmallerTasks;
    remedy.group = group;
    remedy.text = std::string(resource);
    remedy.value = most[kind] / UnitOf(kind);
    Offer(std::move(remedy));
  };
  offer("cpu", shape.cpu_millis, kCpu);
  offer("memory", shape.memory_bytes, kMemory);
  offer(kScratchName, ScratchOf(shape), kScratch);
  for (const DeviceRequest& request : shape.devices) {
    const auto kind = state_.interner().FindKind(request.kind);
    if (kind.has_value()) offer(request.kind, AskedOf(shape, request.kind), *kind);
  }
}

// For a job that exceeds what its queues may still hold: shrinks all of the group's tasks alike, so
// that its minimum fits along with that of the other groups.
//
//   3 GPUs are left of the limit, 2 tasks of 4 GPUs are pending: 1 GPU each
void Finder::TasksWithinQuota(uint32_t group) {
  const GroupSpec& of = spec_.groups[group];
  if (of.min_available == 0) return;
  int64_t left = first_.free;
  for (const GroupSpec& other : spec_.groups) {
    if (&other != &of) left -= other.min_available * AskedOf(other.shape, first_.resource);
  }
  Remedy remedy;
  remedy.kind = RemedyKind::kSmallerTasks;
  remedy.group = group;
  remedy.text = first_.resource;
  remedy.queue = first_.queue;
  remedy.within_quota = true;
  const int64_t unit = UnitOf(first_.resource);
  remedy.value = left / of.min_available / unit;
  const bool smaller = remedy.value * unit < AskedOf(of.shape, first_.resource);
  if (left > 0 && remedy.value > 0 && smaller) Offer(std::move(remedy));
}

// Tries the next tiers up, one by one; if none helps, makes the constraint soft.
void Finder::LooserTopology(ScopeFit::Level level, uint32_t group, const TopologyConstraint& says) {
  if (says.mode != TopologyMode::kHard) return;
  Remedy remedy;
  remedy.kind = RemedyKind::kWiderTier;
  remedy.level = level;
  remedy.group = group;
  const TopologyTree tree(state_, says.kind);
  std::optional<int32_t> now = tree.TierOf(says.highest_tier_name);
  if (says.highest_tier > 0) now = says.highest_tier;
  for (const int32_t tier : tree.tiers()) {
    if (!now.has_value() || tier <= *now) continue;
    remedy.value = tier;
    remedy.text = tree.TierName(tier);
    if (!Helps(&remedy)) continue;
    found_.push_back(std::move(remedy));
    return;
  }
  remedy.kind = RemedyKind::kSoftTopology;
  remedy.value = 0;
  remedy.text.clear();
  Offer(std::move(remedy));
}

void Finder::LooserTopology() {
  LooserTopology(ScopeFit::Level::kJob, 0, spec_.topology);
  for (uint32_t g = 0; g < spec_.groups.size(); ++g) {
    LooserTopology(ScopeFit::Level::kGroup, g, spec_.groups[g].topology);
    LooserTopology(ScopeFit::Level::kPartition, g, spec_.groups[g].partition_topology);
  }
}

std::vector<Remedy> Finder::Find() {
  ShorterWalltime();
  Preemptible();
  OtherQueue();
  LooserTopology();
  for (uint32_t g = 0; g < spec_.groups.size(); ++g) AnyLinks(g);
  for (uint32_t g = 0; g < spec_.groups.size(); ++g) OtherModel(g);
  for (uint32_t g = 0; g < spec_.groups.size(); ++g) FewerTasks(g);
  for (uint32_t g = 0; g < spec_.groups.size() && never_; ++g) SmallerTasks(g);
  for (uint32_t g = 0; g < spec_.groups.size() && LacksQuota(first_); ++g) TasksWithinQuota(g);
  return std::move(found_);
}

void ShrinkGroup(const Remedy& remedy, JobSpec* spec) {
  GroupSpec& group = spec->groups[remedy.group];
  const auto tasks = static_cast<int32_t>(remedy.value);
  if (group.replicas == group.min_available) group.replicas = tasks;
  spec->min_available -= group.min_available - tasks;
  group.min_available = tasks;
  int32_t replicas = 0, minimum = 0;
  for (const GroupSpec& each : spec->groups) {
    replicas += each.replicas;
    minimum += each.min_available;
  }
  spec->min_available = std::clamp(spec->min_available, minimum, replicas);
}

TopologyConstraint* ConstraintAt(const Remedy& remedy, JobSpec* spec) {
  if (remedy.level == ScopeFit::Level::kJob) return &spec->topology;
  GroupSpec& group = spec->groups[remedy.group];
  return remedy.level == ScopeFit::Level::kGroup ? &group.topology : &group.partition_topology;
}

void ShrinkTasks(const Remedy& remedy, TaskShape* shape) {
  if (remedy.text == "cpu") shape->cpu_millis = remedy.value;
  if (remedy.text == "memory") shape->memory_bytes = remedy.value;
  for (NamedAmount& one : shape->extended) {
    if (one.name == remedy.text && one.name == kScratchName) one.amount = remedy.value;
  }
  for (DeviceRequest& request : shape->devices) {
    if (request.kind != remedy.text) continue;
    request.count = static_cast<int32_t>(remedy.value);
    request.share = 0;
    request.by_memory = request.oversubscribe = false;
  }
}

}  // namespace

JobSpec Applied(const Remedy& remedy, JobSpec spec) {
  switch (remedy.kind) {
    case RemedyKind::kFewerTasks:
      ShrinkGroup(remedy, &spec);
      break;
    case RemedyKind::kDeviceModel:
      for (DeviceRequest& request : spec.groups[remedy.group].shape.devices) {
        if (request.kind == remedy.device_kind) request.models = {remedy.text};
      }
      break;
    case RemedyKind::kAnyLinks:
      for (DeviceRequest& request : spec.groups[remedy.group].shape.devices) {
        if (request.kind != remedy.device_kind) continue;
        request.min_link = LinkClass::kUnknown;
        request.min_bandwidth_gbps = 0;
      }
      break;
    case RemedyKind::kShorterWalltime:
      spec.walltime = remedy.walltime;
      break;
    case RemedyKind::kOtherQueue:
      spec.queue = remedy.queue;
      break;
    case RemedyKind::kPreemptible:
      spec.preemptible = true;
      break;
    case RemedyKind::kSmallerTasks:
      ShrinkTasks(remedy, &spec.groups[remedy.group].shape);
      break;
    case RemedyKind::kWiderTier:
      ConstraintAt(remedy, &spec)->highest_tier = static_cast<int32_t>(remedy.value);
      ConstraintAt(remedy, &spec)->highest_tier_name.clear();
      break;
    case RemedyKind::kSoftTopology:
      ConstraintAt(remedy, &spec)->mode = TopologyMode::kSoft;
      break;
    case RemedyKind::kWait:
      break;
  }
  return spec;
}

std::vector<Remedy> RemediesFor(ClusterState& state, const Policies& policies, const Job& job,
                                const WaitReason& first, Time now) {
  const bool has_places = job.occupying > 0 || TallyOf(job).Nominated() > 0;
  if (job.status.state != JobState::kPending || has_places) return {};
  return Finder(state, policies, job, first, now).Find();
}

}  // namespace berth
