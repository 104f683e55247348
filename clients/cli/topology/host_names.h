// Maps host adapters of InfiniBand to nodes.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_HOST_NAMES_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_HOST_NAMES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/cli/topology/source.h"

namespace berth {

// The machine that a description ("NodeDescription") names.
struct AdapterOwner {
  enum class Kind {
    kHost,
    kUnnamed,      // a default of the adapter or of an installation: "MT4129 ConnectX7 ..."
    kAggregation,  // part of a switch, for SHARP
    kManager,      // a server of UFM
  };
  Kind kind = Kind::kUnnamed;
  std::string node;  // of kHost: the name of the node
};

// "n1 HCA-1", "n1 mlx5_0" and "n1" name a host. Names that many machines have after installation
// ("localhost", "ubuntu") name none: otherwise different machines would count as one, and their
// groups as near each other. A host with "ufm" in its name is a manager.
AdapterOwner OwnerFromDescription(absl::string_view description);

// Nodes by GUID of port or adapter, 16 hex digits in lower case.
using PortOwners = std::map<std::string, std::string>;

// Lines "node,guid": a GUID as ibstat writes it, with or without "0x" and colons; blank lines, "#"
// comments and a heading "node,guid" are skipped. INVALID_ARGUMENT with file and line.
absl::StatusOr<PortOwners> ReadPortOwners(const std::vector<SourceText>& texts);

// 16 hex digits in lower case, or "" if the text is not a GUID.
std::string GuidFrom(absl::string_view text);

// In Gb/s from "4xNDR", or from width "4x" and speed "NDR" joined; 0 if unknown.
int64_t LinkGbps(absl::string_view rate);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_HOST_NAMES_H_
