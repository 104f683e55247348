// The Standard Workload Format of the Parallel Workloads Archive, version 2.2: a job a line, 18
// numbers, -1 for what is not known; lines with ';' are comments, of which "MaxProcs" is taken.
#ifndef BERTH_CLIENTS_REPLAY_SWF_H_
#define BERTH_CLIENTS_REPLAY_SWF_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/replay/workload.h"

namespace berth::replay {

struct SwfOptions {
  // A job is one task of all its cores, and not a task of one core for each processor.
  bool one_task = true;
  int64_t processors = 0;  // of the machine; 0: as the header says
  // Every job asked for the time that it ran.
  bool perfect_times = false;
};

// INVALID_ARGUMENT with FILE:LINE for a line that is no record, or if nothing says how many
// processors there are.
absl::StatusOr<Workload> ReadSwf(absl::string_view text, const std::string& file,
                                 const SwfOptions& options);

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_SWF_H_
