#include "clients/agent/discovery/hwloc_links.h"

#include <hwloc/distances.h>

#include <array>

#include "absl/strings/match.h"
#include "clients/agent/discovery/vendors.h"

namespace berth::discovery {
namespace {

constexpr uint64_t kMostMbPerS = 100'000'000;  // values above are invalid

// Bandwidth of one link in one direction.
int64_t NvlinkMbPerS(const std::string& model) {
  if (absl::StrContains(model, "P100")) return 20000;
  for (const char* blackwell : {"B100", "B200", "B300"}) {
    if (absl::StrContains(model, blackwell)) return 50000;
  }
  return 25000;
}

std::string ModelOf(const PciDraft& draft) {
  for (const OsDevice& device : draft.os_devices) {
    if (std::string model = device.Info("GPUModel"); !model.empty()) return model;
  }
  return draft.node.name;
}

// The device at the other end.
FabricLink Peer(hwloc_obj_t object, const DraftPlaces& places,
                const std::vector<PciDraft>& drafts) {
  if (object->type == HWLOC_OBJ_PACKAGE || object->type == HWLOC_OBJ_NUMANODE)
    return {.peer = PeerKind::kCpu};
  const auto found = places.find(object);
  if (found == places.end()) return {};
  const PciDraft& draft = drafts[found->second.draft];
  FabricLink link{.address = draft.node.address};
  if (found->second.os_device >= 0) {
    link.peer = PeerKind::kGpu;
    link.partition =
        PartitionOf(draft, draft.os_devices[static_cast<size_t>(found->second.os_device)]);
  } else {
    // A function at the end of a link that is not a GPU can only be a switch; in some files
    // switches have lost their class.
    const bool gpu = FindAccelerator(draft.node.vendor, draft.node.class_id) != nullptr;
    link.peer = gpu ? PeerKind::kGpu : PeerKind::kSwitch;
  }
  return link;
}

// The OS device in the drafts that owns the links of this object.
OsDevice* Owner(hwloc_obj_t object, const DraftPlaces& places, std::vector<PciDraft>* drafts) {
  const auto found = object == nullptr ? places.end() : places.find(object);
  if (found == places.end() || found->second.os_device < 0) return nullptr;
  return &(*drafts)[found->second.draft].os_devices[static_cast<size_t>(found->second.os_device)];
}

void AddMatrix(const hwloc_distances_s& matrix, FabricKind fabric, const DraftPlaces& places,
               std::vector<PciDraft>* drafts) {
  for (unsigned i = 0; i < matrix.nbobjs; ++i) {
    OsDevice* owner = Owner(matrix.objs[i], places, drafts);
    if (owner == nullptr) continue;
    const PciDraft& draft = (*drafts)[places.at(matrix.objs[i]).draft];
    for (unsigned j = 0; j < matrix.nbobjs; ++j) {
      const uint64_t value = matrix.values[size_t{i} * matrix.nbobjs + j];
      if (i == j || value == 0 || value > kMostMbPerS || matrix.objs[j] == nullptr) continue;
      FabricLink link = Peer(matrix.objs[j], places, *drafts);
      link.fabric = fabric;
      link.mb_per_s = static_cast<int64_t>(value);
      const int64_t one = NvlinkMbPerS(ModelOf(draft));
      if (fabric == FabricKind::kNvlink && link.mb_per_s % one == 0)
        link.count = static_cast<int32_t>(link.mb_per_s / one);
      owner->links.push_back(link);
    }
  }
}

void AddNamed(hwloc_topology_t topology, const char* name, FabricKind fabric,
              const DraftPlaces& places, std::vector<PciDraft>* drafts) {
  std::array<hwloc_distances_s*, 1> matrices = {nullptr};
  unsigned count = matrices.size();
  if (hwloc_distances_get_by_name(topology, name, &count, matrices.data(), 0) != 0) return;
  if (count == 0 || matrices[0] == nullptr) return;
  AddMatrix(*matrices[0], fabric, places, drafts);
  hwloc_distances_release(topology, matrices[0]);
}

}  // namespace

void AddHwlocLinks(hwloc_topology_t topology, const DraftPlaces& places,
                   std::vector<PciDraft>* drafts) {
  AddNamed(topology, "NVLinkBandwidth", FabricKind::kNvlink, places, drafts);
  AddNamed(topology, "XGMIBandwidth", FabricKind::kXgmi, places, drafts);
}

}  // namespace berth::discovery
