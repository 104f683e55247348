// Names of HyperNodes for the groups of a source: DNS labels that stay the same from run to run.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_NAMES_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/v1/hypernode.pb.h"
#include "clients/cli/topology/source.h"
#include "support/dns_name.h"

namespace berth {

// 32 bits of FNV-1a in hex.
std::string ShortHash(absl::string_view text);

// The text itself if it is a DNS label. Otherwise: in lower case, with one '-' for each run of
// invalid characters, and with a hash at the end if characters were cut off or none were left:
// "MF0;leaf-1:U1" -> "mf0-leaf-1-u1". The result is never empty and is a DNS label.
std::string DnsLabelFrom(absl::string_view text);

// A name for each group, parallel to `groups`, which are the result of MakeTrees. `present` are the
// HyperNodes that the last import of this source made.
//  1. A group that its source names gets that name (DnsLabelFrom), after `prefix`.
//  2. An opaque group (NodeGroup::opaque) keeps the name of the HyperNode of its kind and tier with
//     the most members in common, if that name is free: pairs by members in common, most first,
//     then by name.
//  3. The other opaque groups are named after their id.
// If two groups claim one name, the group whose source has exactly that name keeps it, and the
// others get a hash of kind and id at the end. Nothing depends on the order of the source.
//
// Example, opaque groups named after their first switch: "leaf-a" is {n1, n2, n3} so far. Switch a
// is replaced by x: the group of id "leaf-x" is {n1, n2, n3, n4}, and is still named "leaf-a".
absl::StatusOr<std::vector<std::string>> NameGroups(const std::vector<NodeGroup>& groups,
                                                    const std::vector<v1::HyperNode>& present,
                                                    absl::string_view prefix);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_NAMES_H_
