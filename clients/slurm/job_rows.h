// The lines of squeue and sacct: jobs of the server, selected by the options of both.
#ifndef BERTH_CLIENTS_SLURM_JOB_ROWS_H_
#define BERTH_CLIENTS_SLURM_JOB_ROWS_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/v1/explain.pb.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/numbers.h"
#include "clients/slurm/options.h"
#include "clients/slurm/slurm_config.h"

namespace berth {

struct JobRow {
  v1::Job job;
  std::string number;                  // "123", "123_4", "123_[5-9%2]"
  std::string unmade;                  // of an array: the indexes without a job yet, "5-9%2"
  std::vector<v1::Task> tasks;         // if asked for
  std::optional<absl::Time> estimate;  // if asked for: of its start
  bool whole = false;                  // with what only the store has: command, annotations
  // Of a job that only the server's history has (job_archive.h): it has no tasks any more.
  std::optional<JobExit> archived;

  std::vector<std::string> Nodes() const;  // of its places, by rank
};

struct JobQuery {
  std::vector<JobNumber> numbers;  // empty: all
  bool missing_is_error = true;    // of the numbers
  std::set<std::string> users, accounts, partitions, names, qos, nodes, states;
  bool ended = false;                      // also jobs that have ended
  bool archive = false;                    // also those that the server has deleted
  std::optional<absl::Time> since, until;  // there at some time between
  bool split = false;                      // a row for each index of an array that has no job yet
};

// What a row is needed for, besides the list: each costs a call.
struct RowNeeds {
  bool tasks = false, whole = false, estimate = false;
};

// By number. Calls for tasks and the rest are made only for rows that are selected.
absl::StatusOr<std::vector<JobRow>> FindRows(SlurmContext& context, const JobQuery& query,
                                             const RowNeeds& needs);

// What --user, --me, --account, --partition, --name, --qos, --nodelist and --jobs select; the
// options have the same meaning in every command.
absl::StatusOr<JobQuery> QueryOf(const SlurmArguments& arguments);

// "job-12.3"'s partition, user and so on; a job that was submitted by another way than sbatch has
// its queue, its owner and its name.
std::string PartitionOf(const v1::Job& job);
std::string UserOf(const v1::Job& job);
std::string JobNameOf(const v1::Job& job);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_JOB_ROWS_H_
