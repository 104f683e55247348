// Rules for requests and lists of resources.
#ifndef BERTH_SERVER_VALIDATION_RESOURCES_H_
#define BERTH_SERVER_VALIDATION_RESOURCES_H_

#include <cstdint>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "berth/v1/types.pb.h"
#include "core/model/resources.h"
#include "server/validation/findings.h"

namespace berth {

// Kinds besides cpu and memory that one job, node or queue may name.
inline constexpr int kMaxNamedKinds = static_cast<int>(kMaxResourceKinds - kFixedKinds);

// The most of one resource that all tasks of a job may request together.
inline constexpr int64_t kMaxTotal = int64_t{1} << 62;

// Sums over the tasks of a job by resource name; they saturate just above kMaxTotal and never
// overflow.
using ResourceTotals = absl::btree_map<absl::string_view, int64_t>;

// A device kind or the name of an extended resource: a label key other than "cpu", "memory" and
// "scratch".
bool IsResourceName(absl::string_view name);

// One task's request. Adds `tasks` times the request to `totals`, which must not outlive the
// request.
void CheckRequest(const FieldPath& path, const v1::ResourceRequest& request, int64_t tasks,
                  ResourceTotals& totals, Findings& findings);

// The first store format that can hold every resource request.
inline constexpr uint32_t kFormatOfParts = 6;

// Refuses what a store of an older format must not hold, because an older berthd would misread it.
void CheckFormat(const FieldPath& path, const v1::ResourceRequest& request, uint32_t store_format,
                 Findings& findings);

// The totals of a job: at most kMaxTotal each, at most kMaxNamedKinds kinds.
void CheckTotals(const FieldPath& path, const ResourceTotals& totals, Findings& findings);

// A limit or a capacity.
void CheckResourceList(const FieldPath& path, const v1::ResourceList& list, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_RESOURCES_H_
