// Reads the Standard Workload Format of the Parallel Workloads Archive, version 2.2: a job a line,
// 18 numbers, -1 for unknown values. Lines with ';' are comments, of which "MaxProcs" is read.
#ifndef BERTH_OFFLINE_REPLAY_SWF_H_
#define BERTH_OFFLINE_REPLAY_SWF_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "offline/replay/workload.h"

namespace berth::replay {

struct SwfOptions {
  // A job is one task with all its cores; otherwise one task with one core for each processor.
  bool one_task = true;
  int64_t processors = 0;  // of the machine; 0: from the header
  // Every job requests exactly its run time.
  bool perfect_times = false;
};

// INVALID_ARGUMENT with FILE:LINE for a line that is not a record, or if the number of processors
// is unknown.
absl::StatusOr<Workload> ReadSwf(absl::string_view text, const std::string& file,
                                 const SwfOptions& options);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_SWF_H_
