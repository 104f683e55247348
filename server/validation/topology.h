// Rules for topology constraints of jobs.
#ifndef BERTH_SERVER_VALIDATION_TOPOLOGY_H_
#define BERTH_SERVER_VALIDATION_TOPOLOGY_H_

#include "berth/v1/job.pb.h"
#include "berth/v1/types.pb.h"
#include "server/validation/findings.h"

namespace berth {

inline constexpr int kMaxCommunicationEntries = 16;
inline constexpr int kMaxAffinityTerms = 8;   // for near and for apart_from
inline constexpr int kMaxAffinityLabels = 8;  // of each

void CheckTopology(const FieldPath& path, const v1::TopologyConstraint& topology,
                   Findings& findings);
// Between jobs; and between the groups of one.
void CheckJobAffinity(const FieldPath& path, const v1::JobAffinity& affinity, Findings& findings);
// Whether `copies_of` of the group, at `path`, can be replaced by an affinity.
bool CheckCopies(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                 Findings& findings);
void CheckAffinityTier(const FieldPath& path, const v1::TaskAffinity& affinity, Findings& findings);
// `group`: the path of the group.
void CheckCommunication(const FieldPath& group_path, const v1::TaskGroup& group,
                        Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_TOPOLOGY_H_
