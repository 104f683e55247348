#include "server/convert/agent.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/convert/values.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr int32_t kTasksOfOlderAgents = 4096;  // on a node; agents refuse more

static_assert(v1::LINK_CLASS_UNSPECIFIED == static_cast<int>(LinkClass::kUnknown));
static_assert(v1::LINK_CLASS_NVLINK == static_cast<int>(LinkClass::kNvlink));
static_assert(v1::LINK_CLASS_SYS == static_cast<int>(LinkClass::kSys));

Device ToDevice(const v1::Device& device) {
  return {.kind = device.kind(),
          .uuid = device.uuid(),
          .model = device.model(),
          .memory_bytes = device.memory_bytes(),
          .numa_node = device.numa_node(),
          .pci_bus_id = device.pci_bus_id(),
          .unhealthy = device.unhealthy(),
          .max_tasks = std::max(device.max_tasks(), 1),
          .oversubscription = std::max(device.oversubscription(), 100),
          .compute_capability = ComputeCapabilityFrom(device.compute_capability()).value_or(0)};
}

ExitCause ToCause(v1::TaskReport::Cause cause) {
  switch (cause) {
    case v1::TaskReport::KILLED:
      return ExitCause::kKilled;
    case v1::TaskReport::LEASE_LAPSED:
      return ExitCause::kLeaseLapsed;
    case v1::TaskReport::AGENT_REBOOT:
      return ExitCause::kReboot;
    case v1::TaskReport::SUPERVISOR_LOST:
      return ExitCause::kSupervisorLost;
    case v1::TaskReport::DEVICE_FAULT:
      return ExitCause::kDevice;
    default:
      return ExitCause::kItself;
  }
}

absl::StatusOr<ReportState> ToState(v1::TaskReport::State state) {
  switch (state) {
    case v1::TaskReport::PREPARED:
      return ReportState::kPrepared;
    case v1::TaskReport::REFUSED:
      return ReportState::kRefused;
    case v1::TaskReport::RUNNING:
      return ReportState::kRunning;
    case v1::TaskReport::EXITED:
      return ReportState::kExited;
    case v1::TaskReport::PAUSED:
      return ReportState::kPaused;
    default:
      return absl::InvalidArgumentError("the state of the report is unknown");
  }
}

}  // namespace

DeviceTopology DeviceTopologyFrom(const v1::DeviceTopology& topology) {
  DeviceTopology result;
  for (const v1::DeviceLink& link : topology.links()) {
    result.links.push_back({.link = static_cast<LinkClass>(link.link()),
                            .count = link.count(),
                            .mb_per_s = link.mb_per_s(),
                            .same_package = link.same_package()});
  }
  result.between = topology.between();
  for (const v1::NumaNode& numa : topology.numa_nodes()) {
    result.numa_nodes.push_back({.id = numa.id(),
                                 .package = numa.package(),
                                 .cpus = numa.cpus(),
                                 .memory_bytes = numa.memory_bytes()});
  }
  return result;
}

NodeSpec ToNodeSpec(const v1::Hello& hello) {
  const v1::NodeInventory& inventory = hello.inventory();
  NodeSpec spec;
  spec.name = hello.node();
  spec.address = inventory.address().empty() ? hello.node() : inventory.address();
  spec.cpu_millis = inventory.cpu_millis();
  spec.memory_bytes = inventory.memory_bytes();
  spec.divides_gpus = inventory.divides_gpus();
  spec.freezes = inventory.freezes();
  spec.checkpoints_devices = inventory.freezes() && inventory.checkpoints_devices();
  spec.max_tasks = inventory.max_tasks() > 0 ? inventory.max_tasks() : kTasksOfOlderAgents;
  spec.os = inventory.os();
  spec.architecture = inventory.architecture();
  for (const v1::Device& device : inventory.devices()) spec.devices.push_back(ToDevice(device));
  if (inventory.has_topology()) spec.topology = DeviceTopologyFrom(inventory.topology());
  SortDevices(spec);
  spec.extended = AmountsFrom(inventory.extended());
  AddScratch(inventory.scratch_bytes(), &spec.extended);
  for (const auto& [key, value] : inventory.labels()) spec.labels.emplace(key, value);
  for (const v1::Taint& taint : inventory.taints()) {
    spec.taints.push_back({.key = taint.key(),
                           .value = taint.value(),
                           .evicts = taint.effect() == v1::Taint::NO_EXECUTE});
  }
  return spec;
}

absl::StatusOr<TaskReported> ToTaskReported(const v1::TaskReport& report) {
  absl::StatusOr<ReportState> state = ToState(report.state());
  if (!state.ok()) return state.status();
  if (!std::in_range<uint8_t>(report.exit_signal()) || report.exit_signal() > 127) {
    return absl::InvalidArgumentError("exit_signal is not a valid signal");
  }
  if (!std::in_range<uint16_t>(report.reserved_port())) {
    return absl::InvalidArgumentError("reserved_port is not a valid port");
  }
  return TaskReported{
      .task = {JobId{report.key().job_uid()}, report.key().task()},
      .attempt = report.key().attempt(),
      .state = *state,
      .exit_code = report.exit_code(),
      .exit_signal = static_cast<uint8_t>(report.exit_signal()),
      .cause = ToCause(report.cause()),
      .port = static_cast<uint16_t>(report.reserved_port()),
      .message = Shortened(Visible(report.message()), kMaxReportMessageBytes),
      .own_fault = *state == ReportState::kRefused && report.fault() == v1::TaskReport::JOB,
      .nobodys_fault = *state == ReportState::kRefused && report.fault() == v1::TaskReport::NOBODY,
      .devices_lent = *state == ReportState::kPaused && report.devices_released()};
}

}  // namespace berth
