#include "core/model/interner.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace berth {
namespace {

bool SameButShape(const BasicGroup<ShapeId>& group, const GroupSpec& spec) {
  bool same = true;
  ForEachPair(group, spec, [&]<class A, class B>(const A& a, const B& b) {
    if constexpr (std::is_same_v<A, B>) same = same && a == b;
  });
  return same;
}

}  // namespace

Interner::Interner() : kinds_{"cpu", "memory", kScratchName} {}

std::optional<ResourceKind> Interner::FindKind(absl::string_view name) const {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    if (name == kinds_[i]) return ResourceKind{static_cast<uint8_t>(i)};
  }
  return std::nullopt;
}

absl::Status Interner::CanAddKinds(const std::vector<absl::string_view>& names) const {
  std::vector<absl::string_view> fresh;
  for (absl::string_view name : names) {
    if (FindKind(name).has_value()) continue;
    if (std::find(fresh.begin(), fresh.end(), name) != fresh.end()) continue;
    if (kinds_.size() + fresh.size() == kMaxResourceKinds) {
      return absl::ResourceExhaustedError(
          absl::StrCat("resource \"", name, "\" exceeds the limit of ", kMaxResourceKinds,
                       " kinds of resources per cluster"));
    }
    fresh.push_back(name);
  }
  return absl::OkStatus();
}

ResourceKind Interner::AddKind(absl::string_view name) {
  if (const auto known = FindKind(name); known.has_value()) return *known;
  BERTH_CHECK(kinds_.size() < kMaxResourceKinds);
  kinds_.emplace_back(name);
  return ResourceKind{static_cast<uint8_t>(kinds_.size() - 1)};
}

Resources Interner::AmountsOf(const TaskShape& shape) const {
  Resources amounts;
  amounts[kCpu] = shape.cpu_millis;
  amounts[kMemory] = shape.memory_bytes;
  const auto add = [&](absl::string_view name, int64_t amount) {
    if (const auto kind = FindKind(name); kind.has_value()) amounts[*kind] += amount;
  };
  for (const DeviceRequest& request : shape.devices) {
    add(request.kind, request.share > 0 ? request.share : request.count * kWhole);
  }
  for (const NamedAmount& extended : shape.extended) add(extended.name, extended.amount);
  return amounts;
}

ShapeId Interner::AcquireShape(const TaskShape& shape) {
  if (const auto known = shape_ids_.find(shape); known != shape_ids_.end()) {
    ++shapes_.At(known->second).uses;
    return known->second;
  }
  ShapeEntry entry;
  entry.shape = shape;
  entry.uses = 1;
  for (const absl::string_view kind : KindNames(shape)) AddKind(kind);
  entry.resources = AmountsOf(shape);
  for (size_t i = 0; i < shape.devices.size(); ++i) {
    const DeviceRequest& request = shape.devices[i];
    const ResourceKind kind = *FindKind(request.kind);
    entry.devices[kind] = entry.resources[kind];
    if (request.share > 0) {
      entry.share = request.share;
      entry.share_varies = request.by_memory || request.oversubscribe;
      entry.share_at = i;
      entry.share_kind = *FindKind(request.kind);
    } else {
      entry.device_count += request.count;
    }
  }
  entry.least = entry.resources;
  if (entry.share_varies) entry.least[entry.share_kind] -= entry.share - 1;
  const ShapeId id = next_shape_;
  ++next_shape_.value;
  shapes_.Insert(id, std::move(entry));
  shape_ids_.emplace(shape, id);
  return id;
}

void Interner::ReleaseShape(ShapeId id) {
  ShapeEntry& entry = shapes_.At(id);
  if (--entry.uses > 0) return;
  shape_ids_.erase(entry.shape);
  shapes_.Erase(id);
}

bool Interner::SameAs(const JobTemplate& shared, const std::vector<GroupSpec>& groups,
                      const std::vector<LifecyclePolicy>& policies,
                      const TopologyConstraint& topology,
                      const std::vector<AffinityTerm>& affinity) const {
  if (shared.groups.size() != groups.size() || shared.policies != policies ||
      !(shared.topology == topology) || shared.affinity != affinity) {
    return false;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = shared.groups[i];
    if (!SameButShape(group, groups[i]) || !(Shape(group.shape).shape == groups[i].shape)) {
      return false;
    }
  }
  return true;
}

const JobTemplate* Interner::AcquireTemplate(const std::vector<GroupSpec>& groups,
                                             const std::vector<LifecyclePolicy>& policies,
                                             const TopologyConstraint& topology,
                                             const std::vector<AffinityTerm>& affinity) {
  if (recent_ != nullptr && SameAs(*recent_, groups, policies, topology, affinity)) {
    ++recent_->uses;
    return recent_;
  }
  JobTemplate wanted{
      {.groups = {}, .policies = policies, .topology = topology, .affinity = affinity}, 0};
  wanted.groups.reserve(groups.size());
  uint32_t first_task = 0;
  for (const GroupSpec& spec : groups) {
    wanted.groups.push_back({WithShape(spec, AcquireShape(spec.shape)), first_task});
    first_task += static_cast<uint32_t>(spec.replicas);
  }
  const auto known = templates_.find(&wanted);
  if (known != templates_.end()) {  // it has its own uses of the shapes
    for (const Group& group : wanted.groups) ReleaseShape(group.shape);
    ++(*known)->uses;
    return recent_ = known->get();
  }
  wanted.uses = 1;
  return recent_ = templates_.insert(std::make_unique<JobTemplate>(std::move(wanted))).first->get();
}

void Interner::ReleaseTemplate(const JobTemplate* shared) {
  if (--shared->uses > 0) return;
  if (recent_ == shared) recent_ = nullptr;
  for (const Group& group : shared->groups) ReleaseShape(group.shape);
  const auto found = templates_.find(shared);
  BERTH_CHECK(found != templates_.end());
  templates_.erase(found);
}

const DeviceLayout* Interner::AcquireLayout(const NodeSpec& spec) {
  if (spec.topology.between.empty()) return nullptr;
  LayoutKey key = LayoutKeyOf(spec);
  auto known = layouts_.find(key);
  if (known == layouts_.end()) {
    auto layout = std::make_unique<const DeviceLayout>(key);
    known = layouts_.emplace(std::move(key), SharedLayout{std::move(layout), 0}).first;
  }
  ++known->second.uses;
  return known->second.layout.get();
}

void Interner::ReleaseLayout(const DeviceLayout* layout) {
  if (layout == nullptr) return;
  const auto found = layouts_.find(layout->key());
  BERTH_CHECK(found != layouts_.end() && found->second.layout.get() == layout);
  if (--found->second.uses == 0) layouts_.erase(found);
}

size_t Interner::TemplateHash::operator()(const std::unique_ptr<JobTemplate>& t) const {
  return (*this)(t.get());
}
size_t Interner::TemplateHash::operator()(const JobTemplate* t) const {
  return absl::HashOf(static_cast<const SharedByJobs&>(*t));
}

std::vector<absl::string_view> KindNames(const TaskShape& shape) {
  std::vector<absl::string_view> names;
  names.reserve(shape.devices.size() + shape.extended.size());
  for (const DeviceRequest& request : shape.devices) names.push_back(request.kind);
  for (const NamedAmount& extended : shape.extended) names.push_back(extended.name);
  return names;
}

}  // namespace berth
