// Reads the file of `berth-sim replay --network`, and finds the class of each job of a workload.
#ifndef BERTH_OFFLINE_REPLAY_NETWORK_FILE_H_
#define BERTH_OFFLINE_REPLAY_NETWORK_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/network.pb.h"
#include "offline/replay/network_map.h"
#include "offline/replay/network_model.h"
#include "offline/replay/workload.h"

namespace berth::replay {

struct Network {
  NetworkDefaults defaults;
  std::vector<Training> classes;
  std::vector<int> class_of;  // by job of the workload, into `classes`; -1: none

  // Null: the job has no class.
  const Training* TrainingOf(size_t job) const {
    return class_of[job] < 0 ? nullptr : &classes[static_cast<size_t>(class_of[job])];
  }
};

// INVALID_ARGUMENT with the path of a field that is not above 0, out of range or repeated.
absl::Status CheckNetwork(const sim::v1::NetworkModel& model);
absl::StatusOr<sim::v1::NetworkModel> ReadNetworkFile(const std::string& path);

// INVALID_ARGUMENT for a job that names an unknown class.
absl::StatusOr<Network> NetworkFor(const sim::v1::NetworkModel& model, const Workload& workload);

// Stretches requested times as the model says.
void StretchRequested(const sim::v1::NetworkModel& model, Workload* workload);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_NETWORK_FILE_H_
