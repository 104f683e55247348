// AuditChain: one chain of audit entries on disk, with its retention. On one thread.
#ifndef BERTH_SERVER_AUDIT_AUDIT_CHAIN_H_
#define BERTH_SERVER_AUDIT_AUDIT_CHAIN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/v1/audit.pb.h"
#include "storage/chain_files.h"

namespace berth {

struct AuditLimits {
  absl::Duration retention = absl::Hours(24 * 365);
  uint64_t max_bytes = uint64_t{256} << 20;  // of each chain
};

class AuditChain {
 public:
  AuditChain(std::string directory, AuditLimits limits);

  // Creates or opens the files, and their parent directory. Idempotent; the other calls do it too.
  absl::Status Open();
  // All or none.
  absl::Status Append(absl::Time now, const std::vector<v1::AuditEntry>& entries);
  // About once a second: syncs what was appended, and from time to time deletes what is old and
  // notes `revision`: all commands up to there have their entries. 0: notes nothing.
  absl::Status Tidy(absl::Time now, uint64_t revision = 0);
  // The revision that was noted last; 0 if there is none, or if entries from before it are gone.
  uint64_t Noted();
  static constexpr absl::Duration kTrimEvery = absl::Minutes(10);

  // The last entry; the default one if there is none.
  absl::StatusOr<v1::AuditEntry> Last();
  // ChainFiles::Read. Entries that do not decode come without fields but their sequence.
  absl::Status Read(uint64_t after, absl::Time from,
                    absl::FunctionRef<bool(v1::AuditEntry entry)> visit);
  absl::StatusOr<ChainSummary> Verify();

 private:
  std::string NotePath() const { return directory_ + "/written"; }
  absl::Status NoteRevision(uint64_t revision);

  const std::string directory_;
  const AuditLimits limits_;
  std::unique_ptr<ChainFiles> files_;
  absl::Time trimmed_ = absl::InfinitePast();
};

}  // namespace berth

#endif  // BERTH_SERVER_AUDIT_AUDIT_CHAIN_H_
