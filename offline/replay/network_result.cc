#include "offline/replay/network_result.h"

#include <set>

#include "offline/replay/replay_result.h"

namespace berth::replay {
namespace {

double DevicesOf(const TraceJob& job) {
  double devices = 0;
  for (const DeviceRequest& request : job.shape.devices) {
    const double part = request.share > 0 ? static_cast<double>(request.share) / kWhole : 1;
    devices += part * request.count;
  }
  return devices * job.tasks;
}

// Work of the ended jobs, divided by the device time that jobs held. 0 without devices.
double UsefulPart(const Workload& workload, const ReplayRun& run, const NetworkRun& network) {
  std::set<std::string> kinds;
  double work = 0, held = 0;
  for (size_t i = 0; i < workload.jobs.size(); ++i) {
    const TraceJob& job = workload.jobs[i];
    for (const DeviceRequest& request : job.shape.devices) kinds.insert(request.kind);
    if (run.outcomes[i].end == absl::InfiniteDuration()) continue;
    const auto stopped = network.stopped.find(i);
    const Duration left = stopped == network.stopped.end() ? Duration() : stopped->second;
    work += DevicesOf(job) * absl::ToDoubleSeconds(job.run - left);
  }
  for (size_t i = 0; i < run.resources.size(); ++i) {
    if (kinds.count(run.resources[i]) == 0) continue;
    const auto unit = static_cast<double>(UnitOf(ResourceKind{static_cast<uint8_t>(i)}));
    held += run.total.share.held.amount[i] / unit;
  }
  return held > 0 ? work / held : 0;
}

}  // namespace

sim::v1::NetworkFigures FiguresOf(const Workload& workload, const ReplayRun& run,
                                  const NetworkRun& network) {
  sim::v1::NetworkFigures figures;
  figures.set_jobs(static_cast<int64_t>(network.slowdowns.size()));
  *figures.mutable_slowdown() = DistributionOf(network.slowdowns);
  for (const auto& [tier, bytes] : network.traffic) (*figures.mutable_traffic())[tier] = bytes;
  figures.set_useful(UsefulPart(workload, run, network));
  figures.set_stopped(static_cast<int64_t>(network.stopped.size()));
  return figures;
}

}  // namespace berth::replay
