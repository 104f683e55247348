// Which node a host adapter of InfiniBand belongs to.
#ifndef BERTH_CLIENTS_TOPOLOGY_HOST_NAMES_H_
#define BERTH_CLIENTS_TOPOLOGY_HOST_NAMES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/topology/source.h"

namespace berth {

// What a description ("NodeDescription") says of the machine.
struct AdapterOwner {
  enum class Kind {
    kHost,
    kUnnamed,      // the adapter's default, or that of an installation: "MT4129 ConnectX7 ..."
    kAggregation,  // a switch's own, for SHARP
    kManager,      // a server of UFM
  };
  Kind kind = Kind::kUnnamed;
  std::string node;  // of a host: a node's name
};

// "n1 HCA-1", "n1 mlx5_0" and "n1" name a host. Names that many machines have after
// installation ("localhost", "ubuntu") name none: machines would be taken for one, and the groups
// around them for near each other. A host with "ufm" in its name is a manager.
AdapterOwner OwnerFromDescription(absl::string_view description);

// Node by GUID of port or adapter, 16 hex digits in lower case.
using PortOwners = std::map<std::string, std::string>;

// Lines "node,guid": a GUID as ibstat writes it, with or without "0x" and colons; blank lines, "#"
// comments and a heading "node,guid" are skipped. INVALID_ARGUMENT with file and line.
absl::StatusOr<PortOwners> ReadPortOwners(const std::vector<SourceText>& texts);

// 16 hex digits in lower case, or "" if the text is no GUID.
std::string GuidFrom(absl::string_view text);

// In Gb/s from "4xNDR", or from width "4x" and speed "NDR" put together; 0 if not known.
int64_t LinkGbps(absl::string_view rate);

}  // namespace berth

#endif  // BERTH_CLIENTS_TOPOLOGY_HOST_NAMES_H_
