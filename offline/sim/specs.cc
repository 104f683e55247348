#include "offline/sim/specs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "offline/sim/names.h"
#include "server/convert/agent.h"
#include "server/convert/values.h"
#include "support/device_preset.h"
#include "support/quantity.h"

namespace berth {
namespace {

constexpr size_t kUuidWidth = 4;  // of the number, so that devices sort in order

std::vector<std::string> StringList(const RepeatedPtrField<std::string>& values) {
  return {values.begin(), values.end()};
}

absl::StatusOr<int64_t> ParseAmount(const std::string& name, const std::string& text) {
  if (name == "cpu") return ParseCpuMillis(text);
  if (name == "memory" || name == kScratchName) return ParseBytes(text);
  // In thousandths, like cores.
  const absl::StatusOr<int64_t> count = ParseCpuMillis(text);
  if (count.ok() && !absl::EndsWith(text, "m")) return *count;
  return absl::InvalidArgumentError(
      absl::StrCat("expected a number in steps of 0.001, got \"", text, "\""));
}

void Configure(const sim::v1::LifecycleParameters& from, LifecycleParameters* to) {
  if (from.has_cordon_after_refusals()) to->cordon_after_refusals = from.cordon_after_refusals();
  if (from.has_refusal_backoff()) to->refusal_backoff = DurationFrom(from.refusal_backoff());
  if (from.has_refusal_backoff_max()) {
    to->refusal_backoff_max = DurationFrom(from.refusal_backoff_max());
  }
  if (from.has_restart_hold()) to->restart_hold = DurationFrom(from.restart_hold());
  if (from.has_longest_pause()) to->longest_pause = DurationFrom(from.longest_pause());
}

void Configure(const sim::v1::FairShareParameters& from, FairShareParameters* to) {
  if (from.has_half_life()) to->half_life = DurationFrom(from.half_life());
  if (from.has_usage_weight()) to->usage_weight = from.usage_weight();
}

void Configure(const sim::v1::BackfillParameters& from, BackfillParameters* to) {
  if (from.mode() == sim::v1::BackfillParameters::CONSERVATIVE) {
    to->mode = BackfillMode::kConservative;
  }
  if (from.has_reservations_per_queue()) to->reservations_per_queue = from.reservations_per_queue();
  if (from.has_reservations()) to->reservations = from.reservations();
  if (from.has_conservative_depth()) to->conservative_depth = from.conservative_depth();
  if (from.has_refresh()) to->refresh = DurationFrom(from.refresh());
  using sim::v1::BackfillParameters;
  if (from.order() == BackfillParameters::SHORTEST_FIRST) to->order = BackfillOrder::kShortestFirst;
  if (from.fit() == BackfillParameters::PREDICTED) to->fit = BackfillFit::kPredicted;
  if (from.fit() == BackfillParameters::PREDICTED_UNLESS_AGED) {
    to->fit = BackfillFit::kPredictedUnlessAged;
  }
}

void Configure(const sim::v1::ShortestFirstParameters& from, ShortestFirstParameters* to) {
  if (from.has_requested_weight()) to->requested_weight = from.requested_weight();
  if (from.has_expected_weight()) to->expected_weight = from.expected_weight();
  if (from.has_age()) to->age = DurationFrom(from.age());
  if (from.has_overtaking()) to->overtaking = from.overtaking();
}

void Configure(const sim::v1::LeastAttainedParameters& from, LeastAttainedParameters* to) {
  if (from.levels_size() > 0) to->levels.clear();
  for (const auto& level : from.levels()) to->levels.push_back(DurationFrom(level));
  if (from.has_promote_after()) to->promote_after = from.promote_after();
}

void Configure(const sim::v1::MigrationParameters& from, MigrationParameters* to) {
  if (from.has_max_jobs()) to->max_jobs = from.max_jobs();
  if (from.has_cooldown()) to->cooldown = DurationFrom(from.cooldown());
  if (from.has_restart_cost()) to->restart_cost = DurationFrom(from.restart_cost());
  if (from.has_slowdown()) to->slowdown = from.slowdown();
}

void Configure(const sim::v1::EvictionParameters& from, EvictionParameters* to) {
  if (from.has_min_runtime()) to->min_runtime = DurationFrom(from.min_runtime());
  if (from.has_cooldown()) to->cooldown = DurationFrom(from.cooldown());
  if (from.has_min_gain()) to->min_gain = DurationFrom(from.min_gain());
  if (from.has_max_victims()) to->max_victims = from.max_victims();
  if (from.has_checkpoint_wait()) to->checkpoint_wait = DurationFrom(from.checkpoint_wait());
  if (from.has_gang_grace()) to->gang_grace = DurationFrom(from.gang_grace());
}

SharingPolicy ToSharing(sim::v1::SharingParameters::Policy policy) {
  using sim::v1::SharingParameters;
  switch (policy) {
    case SharingParameters::FRAGMENTATION:
      return SharingPolicy::kFragmentation;
    case SharingParameters::FGD:
      return SharingPolicy::kFgd;
    case SharingParameters::BINPACK:
      return SharingPolicy::kBinpack;
    case SharingParameters::SPREAD:
      return SharingPolicy::kSpread;
    default:
      return SharingPolicy::kBidPrice;
  }
}

absl::Status AddNodeDevices(const sim::v1::Devices& of, bool healthy, const std::string& path,
                            std::map<std::string, int>* numbers, NodeSpec* spec) {
  if (of.kind().empty()) return Wrong(path, "devices need a kind");
  if (of.count() < 0 || of.count() > static_cast<int>(kMaxDevicesPerNode)) {
    return Wrong(path, "count must be 0 to ", kMaxDevicesPerNode);
  }
  if (of.max_tasks() < 0 || of.max_tasks() > kMaxSharers) {
    return Wrong(path, "maxTasks must be 0 to ", kMaxSharers);
  }
  const int32_t oversubscription = of.oversubscription() == 0 ? 100 : of.oversubscription();
  if (oversubscription < 100 || oversubscription > kMaxOversubscription) {
    return Wrong(path, "oversubscription must be 100 to ", kMaxOversubscription);
  }
  const auto capability = ComputeCapabilityFrom(of.compute_capability());
  if (!capability.has_value()) return Wrong(path, "computeCapability is MAJOR.MINOR");
  std::vector<std::string> unhealthy = StringList(of.unhealthy());
  for (int i = 0; i < of.count(); ++i) {
    Device device;
    const std::string number = absl::StrCat((*numbers)[of.kind()]++);
    device.kind = of.kind();
    device.uuid = of.kind() + number;
    device.model = of.model();
    device.memory_bytes = of.memory_bytes();
    device.numa_node = of.numa_node();
    device.max_tasks = std::max(of.max_tasks(), 1);
    device.oversubscription = oversubscription;
    device.compute_capability = *capability;
    device.pci_bus_id = std::string(kUuidWidth - std::min(kUuidWidth, number.size()), '0') + number;
    const auto ill = std::find(unhealthy.begin(), unhealthy.end(), device.uuid);
    if (ill != unhealthy.end()) {
      device.unhealthy = !healthy;
      unhealthy.erase(ill);
    }
    spec->devices.push_back(std::move(device));
  }
  if (unhealthy.empty()) return absl::OkStatus();
  return Wrong(absl::StrCat(path, ".unhealthy"), "no device ", unhealthy[0]);
}

// The device topology of a known machine. It also sets the NUMA nodes of the devices.
absl::Status SetPreset(const std::string& name, const std::string& path, NodeSpec* spec) {
  const absl::StatusOr<DevicePreset> preset = FindDevicePreset(name);
  if (!preset.ok()) return Under(path, preset.status());
  const auto of_kind = [&](const char* kind) {
    return static_cast<int>(std::count_if(spec->devices.begin(), spec->devices.end(),
                                          [&](const Device& one) { return one.kind == kind; }));
  };
  const int gpus = of_kind("gpu"), nics = of_kind("nic");
  if (gpus + nics != static_cast<int>(spec->devices.size())) {
    return Wrong(path, "is for nodes with GPUs and NICs alone");
  }
  const auto topology =
      PresetTopology(*preset, gpus, nics, spec->cpu_millis / 1000, spec->memory_bytes);
  if (!topology.ok()) return Under(path, topology.status());
  spec->topology = DeviceTopologyFrom(*topology);
  for (size_t i = 0; i < spec->devices.size(); ++i) spec->devices[i].numa_node = preset->numa[i];
  return absl::OkStatus();
}

absl::Status SetTopology(const sim::v1::Node& node, const std::string& path, NodeSpec* spec) {
  if (!node.device_topology().empty()) {
    if (!node.device_links().empty()) return Wrong(path, "deviceTopology or deviceLinks, not both");
    return SetPreset(node.device_topology(), absl::StrCat(path, ".deviceTopology"), spec);
  }
  if (node.device_links().empty()) return absl::OkStatus();
  const std::string where = absl::StrCat(path, ".deviceLinks");
  if (node.device_links_size() != static_cast<int>(spec->devices.size())) {
    return Wrong(where, "has ", node.device_links_size(), " rows; the node has ",
                 spec->devices.size(), " devices");
  }
  const auto topology = ParseDeviceMatrix(StringList(node.device_links()));
  if (!topology.ok()) return Under(where, topology.status());
  spec->topology = DeviceTopologyFrom(*topology);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<NamedAmount>> ToAmounts(const AmountTexts& amounts, bool bounded,
                                                   const std::string& path) {
  std::vector<NamedAmount> result;
  for (const auto& [name, text] : amounts) {
    if (text == "unlimited") {
      if (bounded) result.push_back({name, kMaxAmount});
      continue;
    }
    absl::StatusOr<int64_t> amount = ParseAmount(name, text);
    if (!amount.ok()) return Under(absl::StrCat(path, "[\"", name, "\"]"), amount.status());
    result.push_back({name, *amount});
  }
  return SortedByName(std::move(result));
}

absl::StatusOr<PolicyConfig> ToPolicyConfig(const sim::v1::Configuration& config,
                                            const std::string& path) {
  PolicyConfig result;
  if (config.actions_size() > 0) result.actions = StringList(config.actions());
  if (config.filters_size() > 0) result.filters = StringList(config.filters());
  if (config.scores_size() > 0) result.scores = StringList(config.scores());
  if (config.job_orders_size() > 0) result.job_orders = StringList(config.job_orders());
  Configure(config.lifecycle(), &result.lifecycle);
  Configure(config.fair_share(), &result.fair_share);
  Configure(config.backfill(), &result.backfill);
  Configure(config.eviction(), &result.eviction);
  Configure(config.shortest_first(), &result.shortest_first);
  Configure(config.least_attained(), &result.least_attained);
  Configure(config.migration(), &result.migration);
  if (config.reliable_first().has_min_tasks()) {
    result.reliable_first.min_tasks = config.reliable_first().min_tasks();
  }
  result.image_locality.devices = config.image_locality().devices();
  result.prediction.enabled = config.prediction().enabled();
  result.sharing.policy = ToSharing(config.sharing().policy());
  if (config.topology().degraded() == sim::v1::TopologyParameters::EXCLUDE) {
    result.topology.degraded = DegradedDomains::kExclude;
  }
  const auto policies = Policies::Create(result);
  if (!policies.ok()) return Under(path, policies.status());
  return result;
}

absl::StatusOr<NodeSpec> ToNodeSpec(const sim::v1::Node& node, const std::string& name,
                                    bool healthy, const std::string& path) {
  NodeSpec spec;
  spec.name = spec.address = name;
  spec.cpu_millis = node.cpu_millis();
  spec.memory_bytes = node.memory_bytes();
  spec.freezes = !node.has_freezes() || node.freezes();
  spec.checkpoints_devices = spec.freezes;
  std::map<std::string, int> numbers;
  sim::v1::Devices gpus;
  gpus.set_kind("gpu");
  gpus.set_count(node.gpus());
  gpus.set_max_tasks(node.tasks_per_gpu());
  auto status = AddNodeDevices(gpus, healthy, absl::StrCat(path, ".gpus"), &numbers, &spec);
  for (int i = 0; i < node.devices_size() && status.ok(); ++i) {
    status = AddNodeDevices(node.devices(i), healthy, absl::StrCat(path, ".devices[", i, "]"),
                            &numbers, &spec);
  }
  if (!status.ok()) return status;
  std::sort(spec.devices.begin(), spec.devices.end(), [](const Device& a, const Device& b) {
    return std::tie(a.kind, a.pci_bus_id) < std::tie(b.kind, b.pci_bus_id);
  });
  if (status = SetTopology(node, path, &spec); !status.ok()) return status;
  spec.extended = AmountsFrom(node.extended());
  AddScratch(std::max<int64_t>(node.scratch_bytes(), 0), &spec.extended);
  spec.labels = LabelsFrom(node.labels());
  for (const v1::Taint& taint : node.taints()) {
    spec.taints.push_back({.key = taint.key(),
                           .value = taint.value(),
                           .evicts = taint.effect() == v1::Taint::NO_EXECUTE});
  }
  return spec;
}

absl::StatusOr<QueueSpec> ToQueueSpec(const sim::v1::Queue& queue, const ClusterState& state,
                                      const std::string& path) {
  QueueSpec spec;
  spec.name = queue.name();
  if (!queue.parent().empty()) {
    const Queue* parent = state.FindQueue(queue.parent());
    if (parent == nullptr) return Wrong(path + ".parent", "no queue \"", queue.parent(), "\"");
    spec.parent = parent->id;
  }
  auto guarantee = ToAmounts(queue.guarantee(), true, path + ".guarantee");
  auto deserved = ToAmounts(queue.deserved(), true, path + ".deserved");
  auto limit = ToAmounts(queue.limit(), false, path + ".limit");
  for (const auto* amounts : {&guarantee, &deserved, &limit}) {
    if (!amounts->ok()) return amounts->status();
  }
  spec.guarantee = *std::move(guarantee);
  spec.deserved = *std::move(deserved);
  spec.limit = *std::move(limit);
  if (queue.has_weight()) spec.weight = queue.weight();
  spec.priority = queue.priority();
  if (queue.has_reclaimable()) spec.reclaimable = queue.reclaimable();
  if (queue.order() == v1::QueueSpec::FIFO_STRICT) spec.order = QueueOrder::kFifoStrict;
  if (queue.user_fairness() == sim::v1::Queue::DRF) spec.user_fairness = UserFairness::kDrf;
  spec.strategy = StrategyFrom(queue.strategy());
  spec.device_strategy = StrategyFrom(queue.device_strategy());
  spec.surplus_only = queue.surplus_only();
  if (queue.has_slice()) spec.slice = DurationFrom(queue.slice());
  spec.max_jobs = queue.max_jobs();
  spec.max_running_jobs = queue.max_running_jobs();
  spec.labels = LabelsFrom(queue.labels());
  return spec;
}

}  // namespace berth
