// berth-sim replay: from files to a result.
#ifndef BERTH_OFFLINE_REPLAY_REPLAY_COMMAND_H_
#define BERTH_OFFLINE_REPLAY_REPLAY_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/replay.pb.h"
#include "core/model/ids.h"

namespace berth::replay {

struct ReplayArguments {
  std::string trace;
  std::string format;                 // "swf", "csv", "history", or empty: by the name of the file
  std::string columns;                // of CSV
  int64_t processors = 0;             // of SWF; 0: from the log
  bool perfect_times = false;         // of SWF
  int64_t skip = 0, take = 0;         // jobs by submit time; take 0: all
  std::string cluster;                // scenario file; empty: one machine, SWF only
  std::vector<std::string> configs;   // files; each a row
  std::vector<std::string> policies;  // of sharing (PolicyNames), each a row of each configuration
  std::string outages;                // file (outages.h); empty: none
  std::string jobs;                   // file to write: the outcome of each job, of the first row
  std::string plots;                  // folder for plots (plots.h); empty: none
  std::string network;                // file; empty: run times as in the workload
  std::string faults;                 // file (fault_file.h); empty: none
  double fill = 0;              // demand to fill the cluster with (fill.h), instead of a replay
  double load = 1;              // jobs arrive this many times as fast
  std::vector<uint64_t> seeds;  // with fill, jitter or faults
  Duration jitter;              // of submit times, in each copy of a replay: one per seed
  int64_t known = 0;            // likewise
  bool quiet = false;           // no progress on standard error
};

// Of SharingParameters, in small letters: "bid_price", ...
std::vector<std::string> PolicyNames();

// Returns the errors of reading, with the name of the file; INVALID_ARGUMENT for options that
// exclude each other. Progress is printed on standard error. SIGINT or SIGTERM stops the work: the
// finished part is in the result, which says that it was interrupted, and in the files.
absl::StatusOr<sim::v1::ReplayResult> RunReplay(const ReplayArguments& arguments);
absl::StatusOr<sim::v1::FillResult> RunFill(const ReplayArguments& arguments);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_REPLAY_COMMAND_H_
