// From the log to the audit: the commands of a turn as berth.v1.AuditEntries.
#ifndef BERTH_SERVER_AUDIT_ENTRIES_H_
#define BERTH_SERVER_AUDIT_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/v1/audit.pb.h"
#include "core/access/actor.h"

namespace berth {

// One for each command with an actor; several for one that changed more than kMaxNames objects.
// `turn` is an encoded store.v1.LogTurn. DATA_LOSS if it does not parse.
absl::StatusOr<std::vector<v1::AuditEntry>> AuditEntriesOf(uint64_t revision,
                                                           absl::string_view turn);
inline constexpr size_t kMaxAuditNames = 1000;

// The texts become UTF-8.
void ToApi(const Actor& actor, v1::AuditEntry* entry);

}  // namespace berth

#endif  // BERTH_SERVER_AUDIT_ENTRIES_H_
