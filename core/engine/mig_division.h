// Which GPU (MIG) is to be divided anew for jobs that wait, and how.
//
// A node that divides GPUs registers each of those in MIG mode as an unhealthy device of kind
// "mig" whose model is the GPU's name, beside its instances, which have its PCI address. Example:
// a GPU is 7 times 1g.10gb, nothing uses it, and a job waits for two instances of 3g.40gb:
//
//   its layout would be 3g.40gb@0 3g.40gb@4 -> the node would then hold 2 of its tasks, now 0
//
// Fitting is the engine's (NodeSearch), on the node as it would be. Pure.
#ifndef BERTH_CORE_ENGINE_MIG_DIVISION_H_
#define BERTH_CORE_ENGINE_MIG_DIVISION_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/devices/mig_geometry.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"

namespace berth {

// One of a node's GPUs that may be divided.
struct MigGpu {
  size_t device = 0;    // itself, in NodeSpec::devices
  DeviceSet instances;  // likewise
  const MigGeometry* geometry = nullptr;
};
// Those of which it is known how, if the node divides GPUs at all; by position.
std::vector<MigGpu> MigGpusOf(const Node& node);
// What reservations promise of the devices of nodes that divide GPUs. O(places reserved).
using ReservedDevices = std::map<NodeId, DeviceSet>;
ReservedDevices DevicesReserved(const ClusterState& state);
// No task has, or is promised, any instance of it.
bool IsIdle(const ReservedDevices& reserved, const Node& node, const MigGpu& gpu);
// It is divided so, and all instances can be given out.
bool HasLayout(const Node& node, const MigGpu& gpu, const std::vector<MigPart>& layout);
// It has instances, and none can be given out.
bool IsHeld(const Node& node, const MigGpu& gpu);

struct MigDivision {
  NodeId node;
  std::string gpu;  // UUID
  std::vector<MigPart> layout;
  ClassId asked_by;
};

// Classes of waiting jobs that want instances, and are found to have too little room; those first
// whose first job goes first.
std::vector<ClassId> ClassesShortOfMig(const ClusterState& state);

// A class, and how far the looks for it have come.
struct MigSeeker {
  ClassId id;
  size_t from = 0;     // of the GPUs that may be divided, by node, that to go on with
  bool rests = false;  // it was looked for among all: not again, but what it wants is kept for it
  bool hopeless = false;  // unless nothing can hold it, as it is or would be
};

// The next division, for the first of these classes that one helps: of the GPUs tried, that which
// then has room for most of its missing tasks. What is left of the GPU is for the classes behind
// it. Never takes instances away that a class before it wants as well, unless that can never have
// room. `under_way` counts as done; nodes of those are passed over, and GPUs for which `may` says
// no. Tries at most `*tries` layouts, counting down; where they end, the next call goes on.
std::optional<MigDivision> NextMigDivision(const ClusterState& state, const Policies& policies,
                                           absl::Span<MigSeeker> seekers,
                                           absl::Span<const MigDivision> under_way,
                                           absl::FunctionRef<bool(const Node&, const MigGpu&)> may,
                                           int* tries);

// For people, about a job that waits: that a GPU is about to be divided, or that no node that could
// may. Empty if the job asks for no instance, or there is nothing to say. O(nodes).
std::string MigNote(const ClusterState& state, const Job& job);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_MIG_DIVISION_H_
