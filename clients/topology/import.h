// From the text of a source to HyperNodes, and to what has to change so that the cluster has them.
//
//   auto read = ReadTopology(*FindTopologyFormat("slurm-conf"), input, kind);
//   auto wanted = MakeHyperNodes(*read, options, present);
//   auto difference = Compare(*wanted, options.source, present);
//
// Pure: no clock, no files, no server. The same input gives the same HyperNodes, and an import of
// what is there already an empty difference.
#ifndef BERTH_CLIENTS_TOPOLOGY_IMPORT_H_
#define BERTH_CLIENTS_TOPOLOGY_IMPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/cli/v1/topology.pb.h"
#include "berth/v1/hypernode.pb.h"
#include "clients/topology/formats.h"
#include "clients/topology/source.h"

namespace berth {

// The groups of a source, as trees (tree.h); those whose kind the source does not say are of
// `kind`, or if that is "" of the format's. INVALID_ARGUMENT for what is wrong with the source,
// with file and line where there is one, and for a source without a single group: importing that
// would delete all that it made before.
absl::StatusOr<Imported> ReadTopology(const TopologyFormat& format, const ImportInput& input,
                                      const std::string& kind);

struct NamingOptions {
  std::string source;  // "import/NAME"
  std::string prefix;  // before each name
};

// In the order of the groups, which are as ReadTopology gives them. `present`: all HyperNodes of
// the cluster, for the names that groups had before (names.h).
absl::StatusOr<std::vector<v1::HyperNode>> MakeHyperNodes(
    const Imported& imported, const NamingOptions& options,
    const std::vector<v1::HyperNode>& present);

// What to create, update and delete so that those of `source` are exactly `wanted`; by kind, tier
// and name. Health, its reason and the latency of a HyperNode are nobody's business here and stay
// as they are; so does its bandwidth where the source does not know it. ALREADY_EXISTS names every
// wanted HyperNode that somebody else keeps; FAILED_PRECONDITION those whose kind would change.
absl::StatusOr<cli::v1::TopologyDifference> Compare(const std::vector<v1::HyperNode>& wanted,
                                                    const std::string& source,
                                                    const std::vector<v1::HyperNode>& present);

}  // namespace berth

#endif  // BERTH_CLIENTS_TOPOLOGY_IMPORT_H_
