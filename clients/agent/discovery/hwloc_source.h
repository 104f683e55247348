// Machines as hwloc sees them: the live machine, one saved as XML, or copies of /proc and /sys.
//
// hwloc reads its environment; all HWLOC_ variables are removed or set here, so that they cannot
// change the result. hwloc may crash or loop forever on hostile XML: only the probe (probe.h), a
// separate process, calls these functions on files.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_HWLOC_SOURCE_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_HWLOC_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

// Packages, NUMA nodes, PCI tree, GPUs and NICs, without distances. INTERNAL if hwloc fails.
absl::StatusOr<Machine> ReadThisMachine();
// `root` contains the copies: root/proc, root/sys.
absl::StatusOr<Machine> ReadCopiedRoot(const std::string& root);
// `text` is well-formed hwloc XML (xml_file.h). INVALID_ARGUMENT if hwloc rejects it.
absl::StatusOr<Machine> ReadHwlocXml(absl::string_view text);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_HWLOC_SOURCE_H_
