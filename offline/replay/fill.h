// Fills a cluster: the jobs of a workload arrive one by one in a random order and never end. A job
// that does not fit at once is dropped. The part of the devices in use at the end shows how well
// placements keep the remainder usable. The protocol is that of Weng et al. (USENIX ATC'23) for
// their traces.
//
//   8 GPUs, demand 1.3: jobs arrive until the next would make more than 10.4 requested GPUs in
//   total; from a longer list some are left out, from a shorter one some are drawn again
#ifndef BERTH_OFFLINE_REPLAY_FILL_H_
#define BERTH_OFFLINE_REPLAY_FILL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/scenario.pb.h"
#include "offline/replay/places.h"
#include "offline/replay/watch.h"
#include "offline/replay/workload.h"

namespace berth::replay {

struct FillOptions {
  double demand = 1.3;     // requested GPUs, relative to those of the cluster
  uint64_t seed = 1;       // of the order
  int64_t known = 0;       // jobs, drawn from the workload, that are known in advance
  Watch* watch = nullptr;  // as in ReplayOptions
};

struct FillRun {
  uint64_t seed = 1;
  bool interrupted = false;  // before its end
  struct Arrival {
    size_t job = 0;   // in Workload::jobs
    TaskPlace place;  // empty: the job was dropped
  };
  std::vector<Arrival> arrivals = {};
  PlaceNames names = {};
  double at_capacity = 0;  // share of the GPUs in use when requests equal the capacity
  double at_end = 0;
  int64_t arrived = 0;
  int64_t dropped = 0;
  int64_t mixes = 0;   // RequestMixChanged
  double seconds = 0;  // deciding and applying, without prices
};

// Thousandths of GPUs that the only task of the job requests.
int64_t AskedOf(const TraceJob& job);

// INVALID_ARGUMENT: as Replay; a workload or a cluster without GPUs; a job of more than one task.
absl::StatusOr<FillRun> Fill(const Workload& workload, const sim::v1::Scenario& cluster,
                             const FillOptions& options);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_FILL_H_
