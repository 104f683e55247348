// The file of `berth-sim replay --network`, and which class a job of a workload is of.
#ifndef BERTH_CLIENTS_REPLAY_NETWORK_FILE_H_
#define BERTH_CLIENTS_REPLAY_NETWORK_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/network.pb.h"
#include "clients/replay/network_map.h"
#include "clients/replay/network_model.h"
#include "clients/replay/workload.h"

namespace berth::replay {

struct Network {
  NetworkDefaults defaults;
  std::vector<Training> classes;
  std::vector<int> class_of;  // by job of the workload, into `classes`; -1: of none

  // Null: the job is of no class.
  const Training* TrainingOf(size_t job) const {
    return class_of[job] < 0 ? nullptr : &classes[static_cast<size_t>(class_of[job])];
  }
};

// Not above 0, out of range, repeated: INVALID_ARGUMENT with the field's path.
absl::Status CheckNetwork(const sim::v1::NetworkModel& model);
absl::StatusOr<sim::v1::NetworkModel> ReadNetworkFile(const std::string& path);

// INVALID_ARGUMENT for a job that names a class which there is not.
absl::StatusOr<Network> NetworkFor(const sim::v1::NetworkModel& model, const Workload& workload);

// Requested times as the model stretches them.
void StretchRequested(const sim::v1::NetworkModel& model, Workload* workload);

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_NETWORK_FILE_H_
