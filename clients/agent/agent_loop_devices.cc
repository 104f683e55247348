// AgentLoop: devices that change while it runs, and the division of GPUs.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/agent/agent_config.h"
#include "clients/agent/agent_loop.h"
#include "clients/agent/changed_devices.h"
#include "clients/agent/device_inventory.h"
#include "support/log.h"

namespace berth {
namespace {

using Devices = google::protobuf::RepeatedPtrField<v1::Device>;

constexpr char kTaintPrefix[] = "health/";
constexpr int kMaxTaints = 32;  // the registration limit

int CountUnhealthy(const v1::NodeInventory& inventory) {
  return static_cast<int>(
      std::count_if(inventory.devices().begin(), inventory.devices().end(),
                    [](const v1::Device& device) { return device.unhealthy(); }));
}

std::string UuidsText(const Devices& devices) {
  std::set<std::string> uuids;
  for (const v1::Device& device : devices) uuids.insert(device.uuid());
  return absl::StrJoin(uuids, "\n");
}

}  // namespace

void AgentLoop::HandleDevices() {
  HandleDivision();
  if (look_again_.exchange(false) && scout_ != nullptr) scout_->ScanNow();
  std::optional<DeviceScout::Look> look;
  {
    absl::MutexLock lock(&mutex_);
    look.swap(look_);
  }
  if (look) ApplyScan(*std::move(look));
}

void AgentLoop::Divide(const v1::DivideGpu& wish) { wish_ = {link_->connection(), wish}; }

// A request on a connection that has since been abandoned is outdated.
void AgentLoop::HandleDivision() {
  if (division_.Expired(SystemClock().Steady())) ApplyDevices();
  const std::optional<Wish> wish = std::exchange(wish_, std::nullopt);
  if (!wish || wish->connection != link_->connection()) return;
  const auto in_use = [this](const std::string& uuid) { return logic_->DeviceInUse(uuid); };
  const absl::StatusOr<GpuDivision::Step> step =
      scout_ == nullptr
          ? absl::FailedPreconditionError("discovery is disabled on this node")
          : division_.On(wish->message, {metrics_.inventory, mig_, in_use}, SystemClock().Steady());
  if (!step.ok()) {
    LogWarn("GPU division declined", {{"node", config_.node_name()}, {"reason", step.status()}});
    return;
  }
  const bool divide = *step == GpuDivision::Step::kDivide;
  LogInfo(divide ? "dividing a GPU" : "holding a GPU for division",
          {{"node", config_.node_name()},
           {"gpu", wish->message.gpu()},
           {"parts", wish->message.parts_size()}});
  if (divide) scout_->Divide(wish->message);
  ApplyDevices();
}

bool AgentLoop::NoteDivision(const DividedGpu& divided) {
  division_.Ended();
  std::map<std::string, std::string> failing;
  if (divided.status.ok()) {
    LogInfo("GPU divided", {{"node", config_.node_name()}, {"gpu", divided.gpu}});
  } else {
    LogWarn("GPU division failed",
            {{"node", config_.node_name()}, {"gpu", divided.gpu}, {"error", divided.status}});
    failing[divided.gpu] = std::string(divided.status.message());
  }
  return health_.Set(kMigCheck, v1::NodeCondition::NOTE, failing);
}

// A failed scan changes nothing: the devices stay as last seen.
void AgentLoop::ApplyScan(DeviceScout::Look look) {
  for (const std::string& line : look.found.lines) {
    if (lines_.insert(line).second)
      LogWarn("devices", {{"node", config_.node_name()}, {"warning", line}});
  }
  bool changed = NoteResult(
      {.check = kDiscoveryCheck,
       .good = look.found.read,
       .message = look.found.lines.empty() ? "discovery failed" : look.found.lines.back()});
  if (look.divided) changed |= NoteDivision(*look.divided);
  if (look.found.read) {
    division_.Looked();
    std::erase_if(lines_, [&](const std::string& line) {
      const auto& now = look.found.lines;
      return std::find(now.begin(), now.end(), line) == now.end();
    });
    changed |= health_.Set(kDevicesCheck, EffectOfCheck(config_.health(), kDevicesCheck),
                           look.found.vanished);
    const bool others = UuidsText(look.devices) != UuidsText(inventory_.devices());
    inventory_.mutable_devices()->Swap(&look.devices);
    *inventory_.mutable_labels() = look.labels;
    KeepMemory(inventory_.topology(), &look.found.topology);
    *inventory_.mutable_topology() = look.found.topology;
    isolation_->SetDevices(inventory_.devices(), look.found);
    mig_ = std::move(look.found.mig);
    runner_->SetHasGpus(HasGpus(inventory_.devices()));
    SaveKnown(look.found.known);
    if (others || look.asked) checks_->LookAgain(look.asked);
  }
  if (changed) logic_->SetConditions(health_.Conditions());
  ApplyDevices();
}

void AgentLoop::SaveKnown(const v1::NodeInventory& known) {
  if (ChangedDevices(known_, known).empty()) return;
  known_ = known;
  const absl::Status status = SaveKnownDevices(known, config_.state_directory());
  if (!status.ok()) LogWarn("devices", {{"node", config_.node_name()}, {"error", status}});
}

void AgentLoop::AddTaints(v1::NodeInventory* inventory) const {
  const v1::NodeConditions conditions = health_.Conditions();
  for (const v1::NodeCondition& condition : conditions.conditions()) {
    if (!TaintsNode(config_.health(), condition.name())) continue;
    if (inventory->taints_size() >= kMaxTaints) return;
    v1::Taint* taint = inventory->add_taints();
    taint->set_key(absl::StrCat(kTaintPrefix, condition.name()));
    taint->set_effect(v1::Taint::NO_SCHEDULE);
  }
}

// Registers again if the schedulable devices or the taints differ from what the server has.
void AgentLoop::ApplyDevices() {
  const std::set<std::string> unfit = health_.UnfitDevices();
  v1::NodeInventory inventory = inventory_;
  for (v1::Device& device : *inventory.mutable_devices()) {
    const auto mig = mig_.find(device.uuid());
    const std::string& gpu = mig == mig_.end() ? device.uuid() : mig->second.gpu;
    if (unfit.contains(device.uuid()) || unfit.contains(gpu) || division_.Holds(gpu))
      device.set_unhealthy(true);
    // Nor is it a divided GPU: it is a GPU that nobody can use.
    if (unfit.contains(device.uuid()) && device.kind() == kMigDevices && mig == mig_.end())
      device.set_kind("gpu");
  }
  AddTaints(&inventory);
  const std::string changed = ChangedDevices(sent_inventory_, inventory);
  if (changed.empty()) return;
  sent_inventory_ = inventory;
  LogInfo("devices or taints changed: registering again",
          {{"node", config_.node_name()},
           {"changed", changed},
           {"taints", inventory.taints_size()},
           {"devices", inventory.devices_size()},
           {"unhealthy", CountUnhealthy(inventory)}});
  metrics_.inventory = inventory;
  ShowMetrics();
  logic_->SetInventory(Now(), std::move(inventory));
}

}  // namespace berth
