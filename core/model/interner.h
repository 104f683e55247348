// Interner: small ids for values that repeat in memory: resource kinds, task shapes, and the groups
// and policies that equal jobs share. Interned ids live as long as the process and are never
// persisted. No decision depends on their order, which differs between a fold and a load. Not
// thread-safe.
#ifndef BERTH_CORE_MODEL_INTERNER_H_
#define BERTH_CORE_MODEL_INTERNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/fields.h"
#include "core/base/id_map.h"
#include "core/devices/device_layout.h"
#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/resources.h"

namespace berth {

// A shape and the resources that one of its tasks takes: cpu, memory, every device kind and
// extended resource.
struct ShapeEntry {
  TaskShape shape;
  Resources resources;        // as counted by queues
  Resources least;            // the same, with the minimum that a share takes of any device
  Resources devices;          // the part of `resources` that is devices
  int32_t device_count = 0;   // whole devices of all kinds
  int32_t share = 0;          // thousandths of one device; 0: no share
  bool share_varies = false;  // depends on the device: ShareOn
  size_t share_at = 0;        // index of the share in shape.devices
  ResourceKind share_kind{};
  // The minimum number of devices that this many tasks use.
  int64_t DevicesFor(int64_t tasks) const {
    const int64_t part = share_varies ? 1 : share;
    return device_count * tasks + (part * tasks + kWhole - 1) / kWhole;
  }
  uint64_t uses = 0;  // by group lists
};

// The immutable part that equal jobs share. Job::groups, policies, topology and affinity point into
// it.
struct SharedByJobs {
  std::vector<Group> groups;
  std::vector<LifecyclePolicy> policies;
  TopologyConstraint topology;
  std::vector<AffinityTerm> affinity;
  bool operator==(const SharedByJobs&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const SharedByJobs& v) {
    return HashFields(std::move(h), v);
  }
};
struct JobTemplate : SharedByJobs {
  mutable uint64_t uses = 0;  // by jobs; managed by the Interner
};

class Interner {
 public:
  Interner();  // with the fixed kinds

  // Resource kinds.
  std::optional<ResourceKind> FindKind(absl::string_view name) const;
  const std::string& KindName(ResourceKind kind) const { return kinds_[kind.value]; }
  size_t kind_count() const { return kinds_.size(); }
  // RESOURCE_EXHAUSTED, naming the first excess one, if not all of these names can become kinds.
  absl::Status CanAddKinds(const std::vector<absl::string_view>& names) const;
  // Requires room: see CanAddKinds.
  ResourceKind AddKind(absl::string_view name);

  // Shapes. An id is never reused for another shape, even after its last use.
  const ShapeEntry& Shape(ShapeId id) const { return shapes_.At(id); }
  const IdMap<ShapeId, ShapeEntry>& shapes() const { return shapes_; }
  // The resources of one task of a shape as queues count them, for known kinds.
  Resources AmountsOf(const TaskShape& shape) const;

  // Acquires the (shared) template for these groups. The kinds must have room.
  const JobTemplate* AcquireTemplate(const std::vector<GroupSpec>& groups,
                                     const std::vector<LifecyclePolicy>& policies,
                                     const TopologyConstraint& topology = {},
                                     const std::vector<AffinityTerm>& affinity = {});
  // Releases one use; the last one frees the template and its uses of shapes.
  void ReleaseTemplate(const JobTemplate* shared);

  // Acquires the (shared) layout of the node's devices; null if no links are reported.
  const DeviceLayout* AcquireLayout(const NodeSpec& spec);
  // Releases one use; the last one frees it. Null is allowed.
  void ReleaseLayout(const DeviceLayout* layout);
  size_t layout_count() const { return layouts_.size(); }

 private:
  bool SameAs(const JobTemplate& shared, const std::vector<GroupSpec>& groups,
              const std::vector<LifecyclePolicy>& policies, const TopologyConstraint& topology,
              const std::vector<AffinityTerm>& affinity) const;
  ShapeId AcquireShape(const TaskShape& shape);
  void ReleaseShape(ShapeId id);

  std::vector<std::string> kinds_;  // at most kMaxResourceKinds, searched linearly
  IdMap<ShapeId, ShapeEntry> shapes_;
  absl::flat_hash_map<TaskShape, ShapeId> shape_ids_;
  ShapeId next_shape_{1};

  struct TemplateHash {
    size_t operator()(const std::unique_ptr<JobTemplate>& t) const;
    size_t operator()(const JobTemplate* t) const;
    using is_transparent = void;
  };
  struct TemplateEqual {
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return *a == *b;
    }
    using is_transparent = void;
  };
  struct SharedLayout {
    std::unique_ptr<const DeviceLayout> layout;
    uint64_t uses = 0;  // by nodes
  };
  absl::flat_hash_map<LayoutKey, SharedLayout> layouts_;

  absl::flat_hash_set<std::unique_ptr<JobTemplate>, TemplateHash, TemplateEqual> templates_;
  // The last one acquired, if it still lives. Equal jobs often follow each other, and comparing is
  // much cheaper than hashing.
  const JobTemplate* recent_ = nullptr;
};

// The names of all resources that the shape requests besides cpu and memory, device kinds first.
std::vector<absl::string_view> KindNames(const TaskShape& shape);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_INTERNER_H_
