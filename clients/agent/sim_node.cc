#include "clients/agent/sim_node.h"

#include <signal.h>
#include <sys/utsname.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/agent_config.h"
#include "support/clock.h"
#include "support/device_preset.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr char kRunTimeVariable[] = "BERTH_SIM_RUN_TIME";
constexpr int kFirstPort = 20000;
constexpr int kPorts = 5000;

// Parses "1m30s", or a number of seconds; false for anything else.
bool ParseRunTime(const std::string& text, absl::Duration* out) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds))
    *out = absl::Seconds(seconds);
  else if (!absl::ParseDuration(text, out))
    return false;
  return *out >= absl::ZeroDuration();
}

TaskEvent Event(const TaskId& id, TaskEvent::Kind kind, std::string message = "") {
  TaskEvent event;
  event.id = id;
  event.kind = kind;
  event.message = std::move(message);
  return event;
}

}  // namespace

SimBehaviour ToBehaviour(const config::v1::SimulatedNodes& nodes) {
  SimBehaviour behaviour;
  if (nodes.has_run_time()) behaviour.run_time = DurationFrom(nodes.run_time());
  behaviour.run_time_jitter = DurationFrom(nodes.run_time_jitter());
  behaviour.failure_rate = nodes.failure_rate();
  behaviour.refusal_rate = nodes.refusal_rate();
  behaviour.prepare_delay = DurationFrom(nodes.prepare_delay());
  behaviour.start_delay = DurationFrom(nodes.start_delay());
  behaviour.step_time = DurationFrom(nodes.step_time());
  return behaviour;
}

namespace {

absl::Status AddTopology(const config::v1::SimulatedNodes& nodes, v1::NodeInventory* inventory) {
  if (nodes.device_topology().empty()) return absl::OkStatus();
  const absl::StatusOr<DevicePreset> preset = FindDevicePreset(nodes.device_topology());
  if (!preset.ok()) return preset.status();
  const auto of_kind = [&](const char* kind) {
    const auto found = nodes.devices().find(kind);
    return found == nodes.devices().end() ? 0 : found->second;
  };
  const int gpus = of_kind("gpu"), nics = of_kind("nic");
  if (gpus + nics != inventory->devices_size()) {
    return absl::InvalidArgumentError("deviceTopology requires nodes with GPUs and NICs only");
  }
  auto topology =
      PresetTopology(*preset, gpus, nics, nodes.cpu_millis() / 1000, nodes.memory_bytes());
  if (!topology.ok()) return topology.status();
  *inventory->mutable_topology() = *std::move(topology);
  for (int i = 0; i < inventory->devices_size(); ++i) {
    inventory->mutable_devices(i)->set_numa_node(preset->numa[static_cast<size_t>(i)]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::NodeInventory> SimInventory(const std::string& name,
                                               const config::v1::SimulatedNodes& nodes) {
  v1::NodeInventory inventory;
  inventory.set_cpu_millis(nodes.cpu_millis());
  inventory.set_memory_bytes(nodes.memory_bytes());
  *inventory.mutable_labels() = nodes.labels();
  inventory.set_address(name);
  inventory.set_os("simulated");
  inventory.set_freezes(true);
  inventory.set_checkpoints_devices(true);
  const std::map<std::string, int32_t> kinds(nodes.devices().begin(), nodes.devices().end());
  for (const auto& [kind, count] : kinds) {
    const auto model = nodes.models().find(kind);
    for (int i = 0; i < count; ++i) {
      v1::Device& device = *inventory.add_devices();
      device.set_kind(kind);
      device.set_uuid(absl::StrCat(name, "-", kind, "-", i));
      if (model != nodes.models().end()) device.set_model(model->second);
      device.set_numa_node(-1);
      if (kind != "gpu") continue;
      device.set_max_tasks(nodes.tasks_per_gpu());
      device.set_memory_bytes(nodes.gpu_memory_bytes());
      device.set_compute_capability(nodes.compute_capability());
    }
  }
  if (absl::Status status = AddTopology(nodes, &inventory); !status.ok()) return status;
  return inventory;
}

SimRunner::SimRunner(const SimBehaviour& behaviour, Random& random, SimCounters& counters,
                     After after)
    : behaviour_(behaviour), random_(random), counters_(counters), after_(std::move(after)) {}

void SimRunner::Prepare(const TaskId& id, const v1::TaskLaunch&, std::optional<int> port) {
  if (behaviour_.on_prepare) behaviour_.on_prepare(id);
  tasks_[id] = Phase::kPreparing;
  if (random_.Unit() < behaviour_.refusal_rate) {
    return after_(behaviour_.prepare_delay,
                  Event(id, TaskEvent::Kind::kRefused, "refused by refusal_rate"));
  }
  TaskEvent prepared = Event(id, TaskEvent::Kind::kPrepared);
  if (port.has_value()) prepared.port = *port > 0 ? *port : kFirstPort + next_port_++ % kPorts;
  after_(behaviour_.prepare_delay, std::move(prepared));
}

void SimRunner::Discard(const TaskId& id) { tasks_.erase(id); }

void SimRunner::Start(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start&) {
  absl::Duration run_time = behaviour_.run_time;
  for (const v1::EnvVar& variable : launch.env()) {
    absl::Duration own;
    if (variable.name() == kRunTimeVariable && ParseRunTime(variable.value(), &own)) run_time = own;
  }
  if (behaviour_.run_time_jitter > absl::ZeroDuration())
    run_time += behaviour_.run_time_jitter * random_.Unit();
  tasks_[id] = Phase::kStarting;
  after_(behaviour_.start_delay, Event(id, TaskEvent::Kind::kRunning));
  TaskEvent exited = Event(id, TaskEvent::Kind::kExited);
  if (random_.Unit() < behaviour_.failure_rate) {
    exited.exit_code = 1;
    exited.message = "failed by failure_rate";
  }
  after_(behaviour_.start_delay + run_time, std::move(exited));
}

void SimRunner::Kill(const TaskId& id, const std::string& signal, absl::Duration grace,
                     v1::TaskReport::Cause cause) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  frozen_.erase(id);
  TaskEvent exited = Event(id, TaskEvent::Kind::kExited);
  exited.exit_signal = grace > absl::ZeroDuration() && signal != "SIGKILL" ? SIGTERM : SIGKILL;
  exited.exit_code = 128 + exited.exit_signal;
  exited.cause = cause;
  after_(absl::ZeroDuration(), std::move(exited));
}

void SimRunner::Freeze(const TaskId& id, int64_t request, bool saves_devices) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end() || found->second != Phase::kRunning) return;
  const bool freezes = request != 0;
  if (!freezes && !frozen_.contains(id)) return;
  TaskEvent event = Event(id, freezes ? TaskEvent::Kind::kPaused : TaskEvent::Kind::kResumed);
  event.freeze_request = request;
  event.devices_released = freezes && saves_devices;
  after_(absl::ZeroDuration(), std::move(event));
  if (freezes) {
    frozen_.try_emplace(id, std::nullopt);
    return;
  }
  std::optional<TaskEvent> end = std::move(frozen_.at(id));
  frozen_.erase(id);
  if (end.has_value()) after_(absl::ZeroDuration(), *std::move(end));
}

void SimRunner::Adopt(const agent::v1::TaskRecord&) {}  // there is no journal to adopt from
void SimRunner::Remove(const TaskId& id) {
  notices_.erase(id);
  began_.erase(id);
}

bool SimRunner::Tell(const TaskId& id, absl::string_view datagram, absl::Duration now) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end() || found->second != Phase::kRunning) return false;
  notices_[id].Add(datagram, now);
  return true;
}

void SimRunner::MakeSteps(const TaskId& id) {
  const auto task = tasks_.find(id);
  if (task == tasks_.end() || task->second != Phase::kRunning) return;
  const absl::Duration now = SystemClock().Steady();
  const absl::Duration ran = now - began_.try_emplace(id, now).first->second;
  notices_[id].Add(
      absl::StrCat("X_BERTH_STEP=", ran / behaviour_.step_time,
                   "\nX_BERTH_STEP_TIME_US=", absl::ToInt64Microseconds(behaviour_.step_time)),
      now);
}

std::optional<TaskNotices> SimRunner::Read(const TaskId& id, NoticesVersion* version) {
  if (behaviour_.step_time > absl::ZeroDuration()) MakeSteps(id);
  const auto found = notices_.find(id);
  return found == notices_.end() ? std::nullopt : found->second.Read(version);
}

bool SimRunner::Accept(const TaskEvent& event) {
  const auto found = tasks_.find(event.id);
  if (found == tasks_.end()) return false;
  switch (event.kind) {
    case TaskEvent::Kind::kPreparing:
      return true;
    case TaskEvent::Kind::kPrepared:
      if (found->second != Phase::kPreparing) return false;
      found->second = Phase::kPrepared;
      return true;
    case TaskEvent::Kind::kRunning:
      found->second = Phase::kRunning;
      ++counters_.running;
      ++counters_.started;
      return true;
    case TaskEvent::Kind::kPaused:
    case TaskEvent::Kind::kResumed:
      return true;
    case TaskEvent::Kind::kRefused:
    case TaskEvent::Kind::kExited:
      if (const auto frozen = frozen_.find(event.id); frozen != frozen_.end()) {
        frozen->second = event;
        return false;
      }
      if (found->second == Phase::kRunning) --counters_.running;
      tasks_.erase(found);
      return true;
  }
  return false;
}

}  // namespace berth
