// Turns the text of a source into HyperNodes, and compares them with those of the cluster.
//
//   auto read = ReadTopology(*FindTopologyFormat("slurm-conf"), input, kind);
//   auto wanted = MakeHyperNodes(*read, options, present);
//   auto difference = Compare(*wanted, options.source, present);
//
// Pure: no clock, no files, no server. The same input gives the same HyperNodes, and importing it
// again gives an empty difference.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_IMPORT_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_IMPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/cli/v1/topology.pb.h"
#include "berth/v1/hypernode.pb.h"
#include "clients/cli/topology/formats.h"
#include "clients/cli/topology/source.h"

namespace berth {

// Reads the groups of a source as trees (tree.h). Groups without a kind in the source get `kind`,
// or the kind of the format if that is "". INVALID_ARGUMENT for errors in the source, with file and
// line if known, and for a source without any group: importing it would delete everything that it
// created before.
absl::StatusOr<Imported> ReadTopology(const TopologyFormat& format, const ImportInput& input,
                                      const std::string& kind);

struct NamingOptions {
  std::string source;  // "import/NAME"
  std::string prefix;  // put before each name
};

// Makes a HyperNode for each group of ReadTopology, in the same order. `present`: all HyperNodes of
// the cluster, for the previous names of groups (names.h).
absl::StatusOr<std::vector<v1::HyperNode>> MakeHyperNodes(
    const Imported& imported, const NamingOptions& options,
    const std::vector<v1::HyperNode>& present);

// What to create, update and delete so that the HyperNodes of `source` are exactly `wanted`; sorted
// by kind, tier and name. Health, health reason and latency stay unchanged, and so does the
// bandwidth if the source does not know it. ALREADY_EXISTS names every wanted HyperNode of another
// source; FAILED_PRECONDITION those whose kind would change.
absl::StatusOr<cli::v1::TopologyDifference> Compare(const std::vector<v1::HyperNode>& wanted,
                                                    const std::string& source,
                                                    const std::vector<v1::HyperNode>& present);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_IMPORT_H_
