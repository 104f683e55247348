// squeue --json and sacct --json.
#ifndef BERTH_CLIENTS_SLURM_JOB_JSON_H_
#define BERTH_CLIENTS_SLURM_JOB_JSON_H_

#include <string>
#include <vector>

#include "clients/slurm/job_fields.h"

namespace berth {

// {"jobs": [...], "meta": ..., "errors": [], "warnings": []} with the members that Berth knows,
// named as in Slurm 23.11. Rows must be whole and have their tasks.
std::string JobsAsJson(const std::vector<JobRow>& rows, const FieldContext& in);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_JOB_JSON_H_
