// Interner: small ids for things that repeat in memory: resource kinds, task shapes, and the groups
// and policies that equal jobs share. Interned ids live as long as the process and are never
// persisted; no decision depends on their order, which differs between a fold and a load. No thread
// safety.
#ifndef BERTH_CORE_MODEL_INTERNER_H_
#define BERTH_CORE_MODEL_INTERNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/id_map.h"
#include "core/devices/device_layout.h"
#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/resources.h"

namespace berth {

// A shape and the amounts that one task of it takes: cpu, memory, every device kind and extended
// resource.
struct ShapeEntry {
  TaskShape shape;
  Resources resources;        // as queues count it
  Resources least;            // the same, of a share what it takes of any device at least
  int32_t device_count = 0;   // whole ones, of all kinds
  int32_t share = 0;          // thousandths of one device; 0: none is shared
  bool share_varies = false;  // it takes another part of it on some devices: ShareOn
  size_t share_at = 0;        // which of shape.devices asks for it
  ResourceKind share_kind{};
  // The fewest devices of which so many tasks could have something.
  int64_t DevicesFor(int64_t tasks) const {
    const int64_t part = share_varies ? 1 : share;
    return device_count * tasks + (part * tasks + kWhole - 1) / kWhole;
  }
  uint64_t uses = 0;  // group lists that name it
};

// The immutable part that equal jobs share. Job::groups, policies, topology and
// affinity point into it.
struct JobTemplate {
  std::vector<Group> groups;
  std::vector<LifecyclePolicy> policies;
  TopologyConstraint topology;
  std::vector<AffinityTerm> affinity;
  mutable uint64_t uses = 0;  // jobs; managed by the Interner
  bool operator==(const JobTemplate& other) const {
    return groups == other.groups && policies == other.policies && topology == other.topology &&
           affinity == other.affinity;
  }
};

class Interner {
 public:
  Interner();  // the fixed kinds are known

  // Resource kinds.
  std::optional<ResourceKind> FindKind(absl::string_view name) const;
  const std::string& KindName(ResourceKind kind) const { return kinds_[kind.value]; }
  size_t kind_count() const { return kinds_.size(); }
  // RESOURCE_EXHAUSTED, naming the first one too many, if not all of these names can become kinds.
  absl::Status CanAddKinds(const std::vector<absl::string_view>& names) const;
  // There must be room: CanAddKinds.
  ResourceKind AddKind(absl::string_view name);

  // Shapes. An id is never given to another shape, even after its last use.
  const ShapeEntry& Shape(ShapeId id) const { return shapes_.At(id); }
  const IdMap<ShapeId, ShapeEntry>& shapes() const { return shapes_; }
  // What one task of a shape takes as queues count it, of the kinds that are known.
  Resources AmountsOf(const TaskShape& shape) const;

  // Takes one use of the (shared) template for these groups. The kinds must have room.
  const JobTemplate* AcquireTemplate(const std::vector<GroupSpec>& groups,
                                     const std::vector<LifecyclePolicy>& policies,
                                     const TopologyConstraint& topology = {},
                                     const std::vector<AffinityTerm>& affinity = {});
  // Gives one use back; the last one frees the template and its uses of shapes.
  void ReleaseTemplate(const JobTemplate* shared);

  // Takes one use of the (shared) layout of the node's devices; null if nothing is told of it.
  const DeviceLayout* AcquireLayout(const NodeSpec& spec);
  // Gives one use back; the last one frees it. Null is allowed.
  void ReleaseLayout(const DeviceLayout* layout);
  size_t layout_count() const { return layouts_.size(); }

 private:
  bool SameAs(const JobTemplate& shared, const std::vector<GroupSpec>& groups,
              const std::vector<LifecyclePolicy>& policies, const TopologyConstraint& topology,
              const std::vector<AffinityTerm>& affinity) const;
  ShapeId AcquireShape(const TaskShape& shape);
  void ReleaseShape(ShapeId id);

  std::vector<std::string> kinds_;  // at most kMaxResourceKinds, found by scanning
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
    uint64_t uses = 0;  // nodes
  };
  absl::flat_hash_map<LayoutKey, SharedLayout> layouts_;

  absl::flat_hash_set<std::unique_ptr<JobTemplate>, TemplateHash, TemplateEqual> templates_;
  // The last one acquired, if it still lives: equal jobs come in a row, and comparing is much
  // cheaper than hashing.
  const JobTemplate* recent_ = nullptr;
};

// Every name of a resource that the shape asks for besides cpu and memory, device kinds first.
std::vector<absl::string_view> KindNames(const TaskShape& shape);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_INTERNER_H_
