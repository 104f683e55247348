// Jobs that have ended, from the server's history: also those that the server has deleted.
#ifndef BERTH_CLIENTS_SLURM_JOB_ARCHIVE_H_
#define BERTH_CLIENTS_SLURM_JOB_ARCHIVE_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/numbers.h"

namespace berth {

// A job as lists return it, without its tasks, walltime, priority and annotations, which the
// history does not keep; and how it ended.
struct ArchivedJob {
  v1::Job job;
  JobExit exit;
};
ArchivedJob JobOfHistory(const v1::EndedJob& ended);

struct ArchiveQuery {
  // These, or of these arrays, by name; none: all.
  std::vector<JobNumber> numbers;
  std::set<std::string> arrays;
  // Of all: that ended since, and of this user.
  std::optional<absl::Time> since;
  std::string user;

  bool named() const { return !numbers.empty() || !arrays.empty(); }
};

// Calls `see` for each job that the history has; for some jobs twice. Arrays themselves are left
// out. OK without a job if the server keeps no history.
absl::Status ReadArchive(Client& client, const ArchiveQuery& query,
                         absl::FunctionRef<void(ArchivedJob)> see);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_JOB_ARCHIVE_H_
