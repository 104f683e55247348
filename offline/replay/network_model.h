// The duration of an iteration of data-parallel training (docs/developers/network-model.md): the
// workers compute, and sum up their gradients by a ring all-reduce, partly at the same time.
//
//   4 workers, 0.2 s of computation, 100 MB, 10 Gb/s, overlap 0.5
//     each sends 2 * 3/4 * 100 MB = 150 MB: 0.12 s, 0.1 s of it hidden; an iteration takes 0.22 s
//
// The volume is that of Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters
// of workstations" (2009).
#ifndef BERTH_OFFLINE_REPLAY_NETWORK_MODEL_H_
#define BERTH_OFFLINE_REPLAY_NETWORK_MODEL_H_

#include <cstdint>
#include <limits>

namespace berth::replay {

inline constexpr double kUnboundedGbps = std::numeric_limits<double>::infinity();

// One iteration of each worker.
struct Training {
  double compute_s = 1;  // > 0
  double bytes = 0;      // that all workers sum up
  double overlap = 0;    // part of the computation that hides communication, 0..1
  // The bandwidth that the run time of the job assumes.
  double reference_gbps = kUnboundedGbps;
};

// Bytes that each worker sends in an iteration; 0 for one worker.
double RingBytes(double bytes, int64_t workers);

// With this bandwidth on the slowest link of the ring; > 0.
double IterationSeconds(const Training& training, int64_t workers, double gbps);

// The speed of the job: 1 is the speed of its run time.
double RateOf(const Training& training, int64_t workers, double gbps);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_NETWORK_MODEL_H_
