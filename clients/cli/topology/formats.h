// The formats that can be imported. There is no other list of them.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_FORMATS_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_FORMATS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "clients/cli/topology/source.h"

namespace berth {

struct TopologyFormat {
  const char* name;
  const char* description;  // one line for --help
  ReadFormat read;
  const char* kind = kNetworkKind;  // default of --kind
  bool reads_files = true;          // otherwise it reads only labels of nodes
  bool reads_labels = false;        // of the cluster's nodes
  bool takes_label_keys = false;    // --labels
  bool takes_ports = false;         // --ports
  bool takes_topologies = false;    // --topology
  bool has_hosts = false;           // --known-nodes: the file may name hosts that are not nodes
};

const std::vector<TopologyFormat>& TopologyFormats();
// Null if there is none with this name.
const TopologyFormat* FindTopologyFormat(absl::string_view name);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_FORMATS_H_
