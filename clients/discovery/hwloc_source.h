// Machines as hwloc sees them: this one, one saved as XML, one whose /proc and /sys were copied.
//
// hwloc reads its own environment; all HWLOC_ variables are removed or set here, so none of them
// changes what is found. It may crash or never end on hostile XML: only the probe (probe.h), which
// is a process of its own, calls these on files.
#ifndef BERTH_CLIENTS_DISCOVERY_HWLOC_SOURCE_H_
#define BERTH_CLIENTS_DISCOVERY_HWLOC_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/discovery/machine.h"

namespace berth::discovery {

// Packages, NUMA nodes, PCI tree, GPUs and NICs; distances are not filled in yet. INTERNAL if hwloc
// fails.
absl::StatusOr<Machine> ReadThisMachine();
// `root` holds the copies: root/proc, root/sys.
absl::StatusOr<Machine> ReadCopiedRoot(const std::string& root);
// `text` is well-formed hwloc XML (xml_file.h). INVALID_ARGUMENT if hwloc does not take it.
absl::StatusOr<Machine> ReadHwlocXml(absl::string_view text);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_HWLOC_SOURCE_H_
