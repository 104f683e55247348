#include "offline/replay/network_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "support/nearest.h"
#include "support/yaml_proto.h"

namespace berth::replay {
namespace {

using sim::v1::NetworkModel;
using sim::v1::TrainingClass;

constexpr double kMostRequestedFactor = 1000;

absl::Status Wrong(const std::string& path, const char* what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::Status CheckClass(const TrainingClass& one, const std::string& path) {
  if (one.name().empty()) return Wrong(path + ".name", "must be given");
  if (!(one.compute_seconds() > 0) || !std::isfinite(one.compute_seconds())) {
    return Wrong(path + ".compute_seconds", "must be above 0");
  }
  if (one.bytes() <= 0) return Wrong(path + ".bytes", "must be above 0");
  if (!(one.overlap() >= 0 && one.overlap() <= 1)) return Wrong(path + ".overlap", "is not 0 to 1");
  if (one.has_reference_gbps() && !(one.reference_gbps() > 0)) {
    return Wrong(path + ".reference_gbps", "must be above 0");
  }
  if (one.has_min_workers() && one.min_workers() < 1) {
    return Wrong(path + ".min_workers", "must be above 0");
  }
  const int32_t least = one.has_min_workers() ? one.min_workers() : 2;
  if (one.has_max_workers() && one.max_workers() < least) {
    return Wrong(path + ".max_workers", "must be at least min_workers");
  }
  return absl::OkStatus();
}

template <class Names>
bool Among(const Names& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

// The run time of the workload, wherever the job is placed.
int64_t WorkersAskedFor(const TraceJob& job) {
  int64_t devices = 0;
  for (const DeviceRequest& request : job.shape.devices) devices += request.count;
  return job.tasks * std::max<int64_t>(devices, 1);
}

bool Fits(const TrainingClass& one, const TraceJob& job) {
  const int64_t workers = WorkersAskedFor(job);
  const int64_t least = one.has_min_workers() ? one.min_workers() : 2;
  if (workers < least || (one.has_max_workers() && workers > one.max_workers())) return false;
  return Among(one.queues(), job.queue) && Among(one.users(), job.user);
}

Training TrainingFrom(const TrainingClass& one) {
  Training training{.compute_s = one.compute_seconds(),
                    .bytes = static_cast<double>(one.bytes()),
                    .overlap = one.overlap(),
                    .reference_gbps = kUnboundedGbps};
  if (one.has_reference_gbps()) training.reference_gbps = one.reference_gbps();
  return training;
}

// The index of the class that the job names, or that it fits; -1: none.
absl::StatusOr<int> ClassOf(const NetworkModel& model, const TraceJob& job) {
  std::vector<std::string> known;
  for (int i = 0; i < model.classes_size(); ++i) {
    const TrainingClass& one = model.classes(i);
    known.push_back(one.name());
    if (job.training.empty() ? Fits(one, job) : one.name() == job.training) return i;
  }
  if (job.training.empty()) return -1;
  return absl::InvalidArgumentError(
      absl::StrCat(job.name, ": ", UnknownWord("the network has no class", job.training, known)));
}

}  // namespace

absl::Status CheckNetwork(const NetworkModel& model) {
  const std::pair<const char*, std::pair<bool, double>> bandwidths[] = {
      {"node_gbps", {model.has_node_gbps(), model.node_gbps()}},
      {"uplink_gbps", {model.has_uplink_gbps(), model.uplink_gbps()}},
      {"device_gbps", {model.has_device_gbps(), model.device_gbps()}}};
  for (const auto& [name, value] : bandwidths) {
    if (value.first && !(value.second > 0)) return Wrong(name, "must be above 0");
  }
  if (model.has_requested_factor() &&
      !(model.requested_factor() >= 1 && model.requested_factor() <= kMostRequestedFactor)) {
    return Wrong("requested_factor", "is not 1 to 1000");
  }
  if (model.classes().empty()) return Wrong("classes", "must not be empty");
  std::set<std::string> names;
  for (int i = 0; i < model.classes_size(); ++i) {
    const std::string path = absl::StrCat("classes[", i, "]");
    if (auto status = CheckClass(model.classes(i), path); !status.ok()) return status;
    if (!names.insert(model.classes(i).name()).second) return Wrong(path + ".name", "is repeated");
  }
  return absl::OkStatus();
}

absl::StatusOr<NetworkModel> ReadNetworkFile(const std::string& path) {
  NetworkModel model;
  if (auto status = ReadYamlFile(path, &model); !status.ok()) return status;
  const absl::Status status = CheckNetwork(model);
  if (status.ok()) return model;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::StatusOr<Network> NetworkFor(const NetworkModel& model, const Workload& workload) {
  Network network;
  if (model.has_node_gbps()) network.defaults.node_gbps = model.node_gbps();
  if (model.has_uplink_gbps()) network.defaults.uplink_gbps = model.uplink_gbps();
  if (model.has_device_gbps()) network.defaults.device_gbps = model.device_gbps();
  for (const TrainingClass& one : model.classes()) network.classes.push_back(TrainingFrom(one));
  for (const TraceJob& job : workload.jobs) {
    const absl::StatusOr<int> index = ClassOf(model, job);
    if (!index.ok()) return index.status();
    network.class_of.push_back(*index);
  }
  return network;
}

void StretchRequested(const NetworkModel& model, Workload* workload) {
  if (!model.has_requested_factor()) return;
  for (TraceJob& job : workload->jobs) job.requested *= model.requested_factor();
}

}  // namespace berth::replay
