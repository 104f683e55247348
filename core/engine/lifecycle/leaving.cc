// Nodes and devices that tasks must leave although they run well there.
#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"
#include "core/model/taints.h"

namespace berth {
namespace {

std::string TaintText(const Taint& taint) {
  return absl::StrCat(taint.key, taint.value.empty() ? "" : "=", taint.value);
}

}  // namespace

bool MayLeave(const Task& task) { return Holds(task) && task.state != TaskState::kLost; }

const Taint* TaintAgainst(const Look& look, uint32_t task, const Node& node) {
  if (!HasEvictingTaint(node.spec)) return nullptr;
  const Group& group = look.job.groups[GroupOf(look.job, task)];
  return EvictingTaint(node.spec, look.state.interner().Shape(group.shape).shape.tolerations);
}

Step LeaveTainted(const Look& look) {
  if (look.state.expelling_nodes().empty()) return {};
  TaskList leaving;
  std::string message;
  for (uint32_t i = 0; i < look.job.tasks.size(); ++i) {
    if (!MayLeave(look.job.tasks[i]) || !look.state.Expels(look.job.tasks[i].node)) continue;
    const Node& node = look.state.nodes().At(look.job.tasks[i].node);
    const Taint* taint = TaintAgainst(look, i, node);
    if (taint == nullptr) continue;
    if (leaving.empty()) {
      message = absl::StrCat(TaskLabel(look.job, i), " had to leave ", node.spec.name,
                             ": it does not tolerate the taint ", TaintText(*taint));
    }
    leaving.push_back(i);
  }
  if (leaving.empty()) return {};
  return Displace(look, leaving, ReleaseReason::kDrain, message);
}

// As reported by its agent: devices that an operator drains are not unhealthy.
const Device* UnhealthyDevice(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  if (!Occupies(task.state) || !look.state.Expels(task.node)) return nullptr;
  const Node& node = look.state.nodes().At(task.node);
  DeviceSet missing = task.devices;
  missing -= node.healthy;
  if (missing.Empty()) return nullptr;
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (node.spec.devices[i].unhealthy && task.devices.Has(i)) return &node.spec.devices[i];
  }
  return nullptr;
}

std::string HowItsDeviceFails(const Look& look, uint32_t task) {
  const Device* device = UnhealthyDevice(look, task);
  if (device == nullptr) return HowItFailed(look, task);
  const Node& node = look.state.nodes().At(look.job.tasks[task].node);
  return absl::StrCat(TaskLabel(look.job, task), ": device ", device->uuid, " of ", node.spec.name,
                      " is unhealthy");
}

}  // namespace berth
