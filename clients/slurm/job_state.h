// States of jobs in Slurm's words.
#ifndef BERTH_CLIENTS_SLURM_JOB_STATE_H_
#define BERTH_CLIENTS_SLURM_JOB_STATE_H_

#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "berth/v1/job.pb.h"

namespace berth {

struct SlurmState {
  const char* name;   // "PENDING"
  const char* brief;  // "PD"
  bool ended;
};

// Of a job. How a failed job ended is told by the beginning of its message, which Berth's engine
// writes (core/engine/lifecycle): used up its time, ran out of memory, lost its node, was evicted.
const SlurmState& StateOf(const v1::Job& job);
// Why it waits, as squeue's %r: "Resources", "Priority", "Dependency" ...; "None".
std::string ReasonOf(const v1::Job& job);

// "PD", "pending", "all": the names of the states, joined by commas. Empty set: all.
absl::StatusOr<std::set<std::string>> ParseStates(const std::string& text);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_JOB_STATE_H_
