#include "clients/cli/topology/formats.h"

#include "clients/cli/topology/agents.h"
#include "clients/cli/topology/ibnetdiscover.h"
#include "clients/cli/topology/kueue.h"
#include "clients/cli/topology/labels.h"
#include "clients/cli/topology/nvlink.h"
#include "clients/cli/topology/slurm_conf.h"
#include "clients/cli/topology/slurm_yaml.h"
#include "clients/cli/topology/topograph.h"
#include "clients/cli/topology/ufm.h"

namespace berth {

const std::vector<TopologyFormat>& TopologyFormats() {
  static const auto* const formats = new std::vector<TopologyFormat>{
      {.name = "slurm-conf", .description = "Slurm's topology.conf", .read = ReadSlurmConf},
      {.name = "slurm-yaml",
       .description = "Slurm's topology.yaml",
       .read = ReadSlurmYaml,
       .takes_topologies = true},
      {.name = "topograph",
       .description = "a model of NVIDIA Topograph, or its NMX compute nodes",
       .read = ReadTopograph},
      {.name = "ibnetdiscover",
       .description = "output of ibnetdiscover",
       .read = ReadIbnetdiscover,
       .takes_ports = true,
       .has_hosts = true},
      {.name = "ufm",
       .description = "ports of UFM (JSON)",
       .read = ReadUfmPorts,
       .takes_ports = true,
       .has_hosts = true},
      {.name = "kueue",
       .description = "a Topology of Kueue, with the nodes' labels",
       .read = ReadKueue,
       .reads_labels = true,
       .takes_topologies = true},
      {.name = "labels",
       .description = "labels of the nodes (--labels zone,rack)",
       .read = ReadLabels,
       .reads_files = false,
       .reads_labels = true,
       .takes_label_keys = true},
      {.name = "nvlink",
       .description = "NVLink domains, from a label of the nodes",
       .read = ReadNvlink,
       .kind = kNvlinkKind,
       .reads_files = false,
       .reads_labels = true,
       .takes_label_keys = true},
      {.name = "agents",
       .description = "switches and NVLink domains that agents report as labels",
       .read = ReadAgents,
       .reads_files = false,
       .reads_labels = true},
  };
  return *formats;
}

const TopologyFormat* FindTopologyFormat(absl::string_view name) {
  for (const TopologyFormat& format : TopologyFormats()) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

}  // namespace berth
