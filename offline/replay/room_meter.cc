#include "offline/replay/room_meter.h"

#include <algorithm>
#include <utility>

#include "core/engine/search/demand_watch.h"
#include "core/sharing/host_resource.h"

namespace berth::replay {
namespace {

constexpr int64_t kByCpu = 0;  // the figure of FGD ignores memory
constexpr double kThousandths = 1e3, kMillionths = 1e6;

// The models that requests name, without duplicates, as many as fit into a mix.
std::vector<std::string> ModelsOf(const Workload& workload) {
  std::vector<std::string> models;
  for (const TraceJob& job : workload.jobs) {
    for (const DeviceRequest& request : job.shape.devices) {
      if (request.kind != kSharedKind) continue;
      for (const std::string& model : request.models) {
        const bool known = std::find(models.begin(), models.end(), model) != models.end();
        if (!known && models.size() < kMaxMixModels) models.push_back(model);
      }
    }
  }
  return models;
}

RequestMix GpuMix(const Workload& workload, const std::vector<std::string>& models) {
  absl::flat_hash_map<Request, int64_t> counts;
  for (const TraceJob& job : workload.jobs) {
    const Request request = Counted(RequestOf(job.shape, models), kByCpu);
    if (request.amount() > 0) counts[request] += job.tasks;
  }
  std::vector<RequestType> types;
  for (const auto& [request, count] : counts)
    types.push_back({.request = request, .weight = count});
  return MixOf(models, std::move(types));  // MixOf sorts them
}

}  // namespace

FragmentationMeter::FragmentationMeter(const Workload& workload) : models_(ModelsOf(workload)) {
  const RequestMix mix = GpuMix(workload, models_);
  if (!mix.types.empty()) fragmentation_.emplace(mix);
}

FragmentationMeter::Part FragmentationMeter::PartOf(const Node& node) {
  if (node.status.state != NodeState::kReady) return {};
  const NodeRoom room =
      Counted(RoomOf(node, node.capacity - node.allocated, node.devices_used, models_), kByCpu);
  Part part{.free = room.amount()};
  for (const Device& device : node.spec.devices) part.devices += device.kind == kSharedKind;
  if (part.free == 0) return part;
  const auto [known, fresh] = known_.try_emplace(room, 0);
  if (fresh) known->second = fragmentation_->Of(room);
  part.unusable = known->second;
  return part;
}

void FragmentationMeter::Look(const Node& node) {
  if (!fragmentation_.has_value()) return;
  if (parts_.size() <= node.id.value) parts_.resize(node.id.value + 1);
  Part& part = parts_[node.id.value];
  const Part after = PartOf(node);
  now_.free += after.free - part.free;
  now_.unusable += after.unusable - part.unusable;
  now_.devices += after.devices - part.devices;
  part = after;
}

void FragmentationMeter::Pass(double seconds) {
  free_seconds_ += free() * seconds;
  unusable_seconds_ += unusable() * seconds;
}

double FragmentationMeter::capacity() const { return static_cast<double>(now_.devices); }
double FragmentationMeter::free() const { return static_cast<double>(now_.free) / kThousandths; }
double FragmentationMeter::unusable() const {
  return static_cast<double>(now_.unusable) / kMillionths;
}

std::optional<double> FragmentationMeter::Fragmentation() const {
  if (!fragmentation_.has_value() || free_seconds_ <= 0) return std::nullopt;
  return unusable_seconds_ / free_seconds_;
}

}  // namespace berth::replay
