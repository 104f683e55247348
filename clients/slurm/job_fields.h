// The fields of squeue and sacct.
#ifndef BERTH_CLIENTS_SLURM_JOB_FIELDS_H_
#define BERTH_CLIENTS_SLURM_JOB_FIELDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/slurm/job_rows.h"

namespace berth {

struct FieldContext {
  absl::Time now;
  absl::TimeZone zone;
  std::string cluster;
  bool accounting = false;  // sacct: "Unknown" and empty where squeue has "N/A" and "(null)"
  bool convert = true;      // memory as 4G, not in MiB
};

struct JobField {
  char letter;          // of squeue -o; 0: none
  const char* queue;    // of squeue -O; "": none
  const char* account;  // of sacct -o; "": none
  const char* heading;  // of squeue -o
  int width;            // usual one, of sacct
  RowNeeds needs;
  std::string (*text)(const JobRow&, const FieldContext&);
};

std::span<const JobField> JobFields();

// One column of an output.
template <class Field>
struct FieldColumn {
  const Field* field = nullptr;
  std::string heading;
  std::string before;  // literal text in front of it
  int width = 0;       // 0: as wide as its text
  bool right = false;  // aligned to the right
};
using JobColumn = FieldColumn<JobField>;

// squeue -o "%.18i %t": INVALID_ARGUMENT for an unknown letter. `after`: literal text at the end.
absl::StatusOr<std::vector<JobColumn>> ParseLetters(absl::string_view format, std::string* after);
// squeue -O "JobID:10,Name" (usual width 20).
absl::StatusOr<std::vector<JobColumn>> ParseQueueNames(absl::string_view format);
// sacct -o "JobID,State%20": INVALID_ARGUMENT for an unknown name, and for what Berth does not
// know.
absl::StatusOr<std::vector<JobColumn>> ParseAccountNames(absl::string_view format);

RowNeeds NeedsOf(const std::vector<JobColumn>& columns);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_JOB_FIELDS_H_
