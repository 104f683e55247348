// Which GPU in MIG mode should be reconfigured for pending jobs, and how.
//
// A node that can reconfigure GPUs registers each one in MIG mode as an unhealthy device of kind
// "mig" whose model is the GPU's name, in addition to its instances, which have its PCI address.
// Example: a GPU is 7 times 1g.10gb, nothing uses it, and a job waits for two instances of 3g.40gb:
//
//   its layout would be 3g.40gb@0 3g.40gb@4 -> the node would then hold 2 of its tasks, now 0
//
// The engine (NodeSearch) decides whether tasks fit, on the node as it would be. Pure.
#ifndef BERTH_CORE_ENGINE_SEARCH_MIG_DIVISION_H_
#define BERTH_CORE_ENGINE_SEARCH_MIG_DIVISION_H_

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

// A GPU of a node that may be reconfigured.
struct MigGpu {
  size_t device = 0;    // the GPU, in NodeSpec::devices
  DeviceSet instances;  // likewise
  const MigGeometry* geometry = nullptr;
};
// GPUs with a known geometry, if the node reconfigures GPUs at all; by position.
std::vector<MigGpu> MigGpusOf(const Node& node);
// Devices that reservations hold on nodes that reconfigure GPUs. O(places reserved).
using ReservedDevices = std::map<NodeId, DeviceSet>;
ReservedDevices DevicesReserved(const ClusterState& state);
// No task has, or has reserved, any instance of it.
bool IsIdle(const ReservedDevices& reserved, const Node& node, const MigGpu& gpu);
// It has this layout, and all instances are available.
bool HasLayout(const Node& node, const MigGpu& gpu, const std::vector<MigPart>& layout);
// It has instances, and none is available.
bool IsHeld(const Node& node, const MigGpu& gpu);

struct MigDivision {
  NodeId node;
  std::string gpu;  // UUID
  std::vector<MigPart> layout;
  ClassId asked_by;
};

// Classes of pending jobs that request instances and were found to have too little room, in the
// service order of their first jobs.
std::vector<ClassId> ClassesShortOfMig(const ClusterState& state);

// A class, and the progress of the search for it.
struct MigSeeker {
  ClassId id;
  size_t from = 0;        // index of the next GPU to try, in node order
  bool rests = false;     // all GPUs were tried: no new search, but its demand is respected
  bool hopeless = false;  // unless nothing can hold it, now or after reconfiguration
};

// The next division, for the first of these classes that one helps: the GPU, among those tried,
// that then has room for most of the missing tasks. The rest of the GPU is for the classes behind
// it. Never removes instances that a class before it also needs, unless that class can never have
// room. `under_way` counts as done; their nodes are skipped, and so are GPUs that `may` rejects.
// Tries at most `*tries` layouts, counting down; the next call continues there.
std::optional<MigDivision> NextMigDivision(const ClusterState& state, const Policies& policies,
                                           absl::Span<MigSeeker> seekers,
                                           absl::Span<const MigDivision> under_way,
                                           absl::FunctionRef<bool(const Node&, const MigGpu&)> may,
                                           int* tries);

// For people, about a pending job: that a GPU is about to be reconfigured, or that no node that
// could do so may. Empty if the job requests no instance, or there is nothing to report. O(nodes).
std::string MigNote(const ClusterState& state, const Job& job);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_MIG_DIVISION_H_
