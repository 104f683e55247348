// Names of the enumerations of machine.h, in JSON and in tables.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_NAMES_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_NAMES_H_

#include <string>

#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

// Returns "?" for an invalid value; EnumCount is the number of values.
const char* Name(PciKind kind);
const char* Name(FabricKind kind);
const char* Name(PeerKind kind);
const char* Name(NicKind kind);
const char* Name(LinkClass link_class);

constexpr int EnumCount(PciKind) { return 3; }
constexpr int EnumCount(FabricKind) { return 3; }
constexpr int EnumCount(PeerKind) { return 4; }
constexpr int EnumCount(NicKind) { return 2; }
constexpr int EnumCount(LinkClass) { return 8; }

// A cell of the matrix: "X", "NV6", "XGMI", "PIX", ...
std::string Label(const Distance& distance);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_NAMES_H_
