#include "core/engine/search/mig_division.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/engine/plan.h"
#include "core/engine/search/node_search.h"

namespace berth {
namespace {

// Drivers reserve up to a tenth of a GPU's memory, so this is what an instance certainly has.
int64_t LeastMemory(const Device& gpu, const MigProfile& profile) {
  return gpu.memory_bytes / kMigMemorySlices * profile.memory_slices / 10 * 9;
}

// The node with this GPU in that layout; nullopt if it had too many devices. Devices keep their
// positions; their links are no longer known.
std::optional<Node> Divided(const Node& node, const Interner& interner, const MigGpu& gpu,
                            const std::vector<MigPart>& layout) {
  const std::optional<ResourceKind> kind = interner.FindKind(kMigKind);
  if (!kind.has_value()) return std::nullopt;
  Node then = node;
  std::vector<size_t> places;  // for instances: positions of present ones first
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (gpu.instances.Has(i)) places.push_back(i);
  }
  while (places.size() < layout.size()) {
    if (then.spec.devices.size() == kMaxDevicesPerNode) return std::nullopt;
    places.push_back(then.spec.devices.size());
    then.spec.devices.emplace_back();
  }
  const Device whole = node.spec.devices[gpu.device];
  for (size_t i = 0; i < places.size(); ++i) {
    Device& device = then.spec.devices[places[i]];
    device = whole;
    device.uuid = absl::StrCat(whole.uuid, "/", i);
    if (i >= layout.size()) continue;  // unhealthy, as the GPU is
    const MigProfile& profile = *gpu.geometry->Find(layout[i].profile);
    device.model = profile.name;
    device.memory_bytes = LeastMemory(whole, profile);
    device.unhealthy = false;
  }
  then.layout = nullptr;
  then.capacity[*kind] = 0;
  const auto is_mig = [&](const auto& set) { return set.kind == *kind; };
  std::erase_if(then.kinds, is_mig);
  std::erase_if(then.alike, is_mig);
  then.kinds.push_back({*kind, {}});
  for (size_t i = 0; i < then.spec.devices.size(); ++i) {
    if (then.spec.devices[i].kind != kMigKind) continue;
    then.healthy -= DeviceSet::Of(i);
    if (Unusable(then, i)) continue;
    then.healthy.Add(i);
    then.capacity[*kind] += kWhole;
    then.kinds.back().devices.Add(i);
    then.alike.push_back({.kind = *kind, .first = i, .devices = DeviceSet::Of(i)});
  }
  return then;
}

const DeviceRequest* MigRequest(const TaskShape& shape) {
  for (const DeviceRequest& request : shape.devices) {
    if (request.kind == kMigKind) return &request;
  }
  return nullptr;
}

// Profiles of the GPU that the request accepts, in its order; smallest first if it names none.
std::vector<std::string> ProfilesFor(const DeviceRequest& request, const MigGeometry& geometry) {
  std::vector<std::string> profiles;
  for (const std::string& model : request.models) {
    if (geometry.Find(model) != nullptr) profiles.push_back(model);
  }
  if (!request.models.empty()) return profiles;
  for (const MigProfile& profile : geometry.profiles) profiles.push_back(profile.name);
  return profiles;
}

// What a class lacks of one shape.
struct Want {
  ClassId of;
  ShapeId shape;
  const DeviceRequest* request = nullptr;
  int64_t tasks = 0;      // 0: it only waits for the rest of its gang
  bool hopeless = false;  // no device can hold it, now or after reconfiguration
};

class DivisionSearch {
 public:
  DivisionSearch(const ClusterState& state, const Policies& policies,
                 absl::Span<const MigDivision> under_way)
      : state_(state), search_(state, policies) {
    for (const MigDivision& division : under_way) Foresee(division);
  }

  std::optional<MigDivision> Run(absl::Span<MigSeeker> seekers,
                                 absl::FunctionRef<bool(const Node&, const MigGpu&)> may,
                                 int* tries) {
    FindGpus(may);
    std::vector<size_t> ends;  // end of each seeker's wants
    for (const MigSeeker& seeker : seekers) {
      AddWants(seeker);
      ends.push_back(wants_.size());
    }
    for (size_t s = 0, begin = 0; s < seekers.size(); begin = ends[s++]) {
      if (seekers[s].rests) continue;
      if (auto division = ForAny(begin, ends[s], seekers[s], tries)) return division;
      if (!seekers[s].rests) return std::nullopt;  // no tries are left
      for (size_t want = begin; want < ends[s]; ++want) {
        wants_[want].hopeless = wants_[want].tasks > 0 && NeverFits(seekers[s].id);
        seekers[s].hopeless |= wants_[want].hopeless;
      }
    }
    return std::nullopt;
  }

 private:
  struct Candidate {
    const Node* node;
    MigGpu gpu;
  };

  void FindGpus(absl::FunctionRef<bool(const Node&, const MigGpu&)> may) {
    const ReservedDevices reserved = DevicesReserved(state_);
    state_.nodes().ForEach([&](NodeId id, const Node& node) {
      if (!node.spec.divides_gpus || passed_over_.contains(id) || !state_.free().Has(id)) return;
      for (const MigGpu& gpu : MigGpusOf(node)) {
        if (IsIdle(reserved, node, gpu) && may(node, gpu)) gpus_.push_back({&node, gpu});
      }
    });
  }

  bool NeverFits(ClassId id) const {
    const PendingClass* waiting = state_.pending().FindClass(id);
    return waiting != nullptr && waiting->never;
  }

  void Foresee(const MigDivision& division) {
    const Node* node = state_.nodes().Find(division.node);
    if (node == nullptr || !state_.free().Has(division.node)) return;
    passed_over_.insert(division.node);
    for (const MigGpu& gpu : MigGpusOf(*node)) {
      if (node->spec.devices[gpu.device].uuid != division.gpu) continue;
      if (auto then = Divided(*node, state_.interner(), gpu, division.layout))
        foreseen_.emplace(division.node, *std::move(then));
    }
  }

  int64_t FitsOn(ShapeId shape, const Node& node, int64_t bound) {
    const Resources free = FreeOf(node);
    return search_.FitsIn(shape, {node, free, TakenDevices(node)}, bound);
  }

  // What does not have room already. Each shape is considered separately.
  void AddWants(const MigSeeker& seeker) {
    const PendingClass* waiting = state_.pending().FindClass(seeker.id);
    if (waiting == nullptr) return;
    for (const DemandItem& item : waiting->demand.items) {
      const DeviceRequest* request = MigRequest(state_.interner().Shape(item.shape).shape);
      if (request == nullptr) continue;
      if (seeker.rests) {
        wants_.push_back({seeker.id, item.shape, request, 0, seeker.hopeless});
        continue;
      }
      int64_t missing = waiting->demand.gang ? item.count : 1;
      for (const auto& [node, then] : foreseen_)
        missing -= FitsOn(item.shape, then, std::max<int64_t>(missing, 0));
      search_.ForEachWithRoom(item.shape, [&](NodeId node) {
        if (!foreseen_.contains(node) && missing > 0)
          missing -= search_.FitsFree(item.shape, node, missing);
        return missing > 0;
      });
      wants_.push_back({seeker.id, item.shape, request, std::max<int64_t>(missing, 0)});
    }
  }

  // For the first of a seeker's wants, [begin, end), that a GPU helps.
  std::optional<MigDivision> ForAny(size_t begin, size_t end, MigSeeker& seeker, int* tries) {
    for (; seeker.from < gpus_.size(); ++seeker.from) {
      if (*tries <= 0) return std::nullopt;
      for (size_t want = begin; want < end; ++want) {
        if (wants_[want].tasks == 0) continue;
        if (auto division = For(want, seeker.from, tries)) return division;
      }
    }
    seeker.rests = true;
    return std::nullopt;
  }

  // If the GPU there helps, the best of it and those behind it.
  std::optional<MigDivision> For(size_t want, size_t from, int* tries) {
    std::optional<MigDivision> best;
    int64_t most = 0;
    for (size_t i = from; i < gpus_.size() && most < wants_[want].tasks; ++i) {
      if (i > from && (most == 0 || *tries <= 0)) break;
      Try(want, *gpus_[i].node, gpus_[i].gpu, &most, &best, tries);
    }
    return best;
  }

  void Try(size_t w, const Node& node, const MigGpu& gpu, int64_t* most,
           std::optional<MigDivision>* best, int* tries) {
    const Want& want = wants_[w];
    const int64_t now = FitsOn(want.shape, node, want.tasks);
    for (const std::string& profile : ProfilesFor(*want.request, *gpu.geometry)) {
      --*tries;
      const std::vector<MigPart> layout = BestMigLayout(*gpu.geometry, DemandOf(w, profile, gpu));
      if (TakesFromOthers(w, node, gpu, layout)) continue;
      const std::optional<Node> then = Divided(node, state_.interner(), gpu, layout);
      if (!then.has_value()) continue;
      const int64_t more = FitsOn(want.shape, *then, want.tasks + now) - now;
      if (more <= *most) continue;
      *most = more;
      *best = {node.id, node.spec.devices[gpu.device].uuid, layout, want.of};
    }
  }

  // `profile` for the current want, and the first choice of each want behind it.
  std::vector<MigDemand> DemandOf(size_t want, const std::string& profile,
                                  const MigGpu& gpu) const {
    std::vector<MigDemand> demand;
    const auto add = [&](const Want& one, const std::string& name) {
      const int64_t count = std::min<int64_t>(one.tasks * one.request->count, kMigComputeSlices);
      demand.push_back({name, static_cast<int>(count)});
    };
    add(wants_[want], profile);
    for (size_t i = want + 1; i < wants_.size(); ++i) {
      const auto profiles = ProfilesFor(*wants_[i].request, *gpu.geometry);
      if (!profiles.empty()) add(wants_[i], profiles.front());
    }
    return demand;
  }

  bool TakesFromOthers(size_t want, const Node& node, const MigGpu& gpu,
                       const std::vector<MigPart>& layout) const {
    std::map<std::string, int> lost;
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      if (gpu.instances.Has(i)) ++lost[node.spec.devices[i].model];
    }
    for (const MigPart& part : layout) --lost[part.profile];
    for (size_t i = 0; i < want; ++i) {
      if (wants_[i].of == wants_[want].of || wants_[i].hopeless) continue;
      for (const std::string& profile : ProfilesFor(*wants_[i].request, *gpu.geometry)) {
        const auto found = lost.find(profile);
        if (found != lost.end() && found->second > 0) return true;
      }
    }
    return false;
  }

  const ClusterState& state_;
  NodeSearch search_;
  std::map<NodeId, Node> foreseen_;
  std::set<NodeId> passed_over_;
  std::vector<Candidate> gpus_;
  std::vector<Want> wants_;
};

bool IsShortage(const BlockedVerdict& verdict) {
  switch (static_cast<WaitCode>(verdict.code)) {
    case WaitCode::kInsufficientResources:
    case WaitCode::kNoMatchingNode:
    case WaitCode::kNeverFits:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::vector<MigGpu> MigGpusOf(const Node& node) {
  std::vector<MigGpu> gpus;
  if (!node.spec.divides_gpus) return gpus;
  const auto& devices = node.spec.devices;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].kind != kMigKind) continue;
    const MigGeometry* geometry = MigGeometryOf(devices[i].model, devices[i].memory_bytes);
    if (geometry == nullptr) continue;
    MigGpu gpu{.device = i, .instances = {}, .geometry = geometry};
    for (size_t j = 0; j < devices.size(); ++j) {
      const bool part =
          devices[j].kind == kMigKind && j != i && devices[j].pci_bus_id == devices[i].pci_bus_id;
      if (part) gpu.instances.Add(j);
    }
    gpus.push_back(gpu);
  }
  return gpus;
}

ReservedDevices DevicesReserved(const ClusterState& state) {
  ReservedDevices reserved;
  for (const auto& [job, reservation] : state.reservations()) {
    for (const Placement& place : reservation.places) {
      const Node* node = state.nodes().Find(place.node);
      if (node != nullptr && node->spec.divides_gpus) reserved[place.node] |= place.devices;
    }
  }
  return reserved;
}

bool IsIdle(const ReservedDevices& reserved, const Node& node, const MigGpu& gpu) {
  if (TakenDevices(node).InUse().Overlaps(gpu.instances)) return false;
  // Others would come in the place of what is drained.
  const DeviceSet& drained = node.status.drain.devices;
  if (drained.Overlaps(gpu.instances) || drained.Has(gpu.device)) return false;
  const auto promised = reserved.find(node.id);
  return promised == reserved.end() || !promised->second.Overlaps(gpu.instances);
}

bool HasLayout(const Node& node, const MigGpu& gpu, const std::vector<MigPart>& layout) {
  std::multiset<std::string> wanted, there;
  for (const MigPart& part : layout) wanted.insert(part.profile);
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (gpu.instances.Has(i) && !node.spec.devices[i].unhealthy)
      there.insert(node.spec.devices[i].model);
  }
  return wanted == there;
}

bool IsHeld(const Node& node, const MigGpu& gpu) {
  return !gpu.instances.Empty() && !node.healthy.Overlaps(gpu.instances);
}

std::vector<ClassId> ClassesShortOfMig(const ClusterState& state) {
  std::vector<std::pair<OrderKey, ClassId>> found;
  const PendingIndex& pending = state.pending();
  for (const auto* list : {&pending.short_of_room(), &pending.held_back()}) {
    for (const auto& [queue, classes] : *list) {
      for (const auto& [key, id] : classes) {
        const PendingClass& waiting = pending.Class(id);
        if (!IsShortage(*waiting.blocked)) continue;
        const auto& items = waiting.demand.items;
        const bool asks = std::any_of(items.begin(), items.end(), [&](const DemandItem& item) {
          return MigRequest(state.interner().Shape(item.shape).shape) != nullptr;
        });
        if (asks) found.emplace_back(*waiting.jobs.begin(), id);
      }
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<ClassId> classes;
  for (const auto& [key, id] : found) classes.push_back(id);
  return classes;
}

std::optional<MigDivision> NextMigDivision(const ClusterState& state, const Policies& policies,
                                           absl::Span<MigSeeker> seekers,
                                           absl::Span<const MigDivision> under_way,
                                           absl::FunctionRef<bool(const Node&, const MigGpu&)> may,
                                           int* tries) {
  return DivisionSearch(state, policies, under_way).Run(seekers, may, tries);
}

std::string MigNote(const ClusterState& state, const Job& job) {
  const bool asks = std::any_of(job.groups.begin(), job.groups.end(), [&](const Group& group) {
    return MigRequest(state.interner().Shape(group.shape).shape) != nullptr;
  });
  if (!asks) return "";
  const ReservedDevices reserved = DevicesReserved(state);
  std::string held;
  bool forbidden = false, allowed = false;
  state.nodes().ForEach([&](NodeId, const Node& node) {
    allowed |= node.spec.divides_gpus;
    const auto& devices = node.spec.devices;
    forbidden |= !node.spec.divides_gpus &&
                 std::any_of(devices.begin(), devices.end(),
                             [](const Device& device) { return device.kind == kMigKind; });
    for (const MigGpu& gpu : MigGpusOf(node)) {
      if (held.empty() && IsHeld(node, gpu) && IsIdle(reserved, node, gpu))
        held = absl::StrCat("a GPU of node ", node.spec.name, " is being reconfigured");
    }
  });
  if (!held.empty()) return held;
  if (allowed || !forbidden) return "";
  return "no node allows its GPUs in MIG mode to be reconfigured (mig.reconfigure of its agent)";
}

}  // namespace berth
