// A job whose device failed is kept out of that node for a day (core/model/avoided.h): the next
// device there often fails too, and one that is healthy again may fail again soon.
//
//   worker-3 on n7, a GPU of n7 is unhealthy     n7 is avoided, the gang restarts elsewhere
//   a day later                                  n7 may be used again
//
// Not if the other nodes could not hold the group even when empty: then the job would wait for
// nothing. Nor if its policy ignores bad devices.
#include <algorithm>

#include "core/engine/lifecycle/steps.h"
#include "core/model/taints.h"
#include "core/model/waiting.h"

namespace berth {
namespace {

bool IgnoresDevices(const Look& look, const Group& group) {
  const LifecyclePolicy* policy = PolicyOn(look.job, group, PolicyEvent::kDeviceUnhealthy);
  return policy != nullptr && policy->action == PolicyAction::kIgnore;
}

bool DeviceFailed(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  if (task.state == TaskState::kFailed && task.end_cause == EndCause::kDevice) return true;
  return UnhealthyDevice(look, index) != nullptr;
}

int64_t RoomFor(const ShapeEntry& entry, const Node& node) {
  int64_t room = TaskRoomIfEmpty(node);
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    const int64_t request = entry.least.amount[i];
    if (request > 0) room = std::min(room, node.capacity.amount[i] / request);
  }
  return room;
}

// Whether all of the group would fit on other nodes that take tasks, if these were empty.
bool OthersSuffice(const Look& look, const Group& group, const AvoidedNodes& avoided) {
  const ShapeEntry& entry = look.state.interner().Shape(group.shape);
  int64_t room = 0;
  const auto& nodes = look.state.nodes();
  for (auto id = nodes.NextFrom(NodeId{0}); id.has_value() && room < group.replicas;
       id = nodes.NextFrom(NodeId{id->value + 1})) {
    const Node& node = nodes.At(*id);
    if (Avoids(avoided, *id) || !TakesTasks(node.status)) continue;
    if (Selects(entry.shape, node.spec)) room += RoomFor(entry, node);
  }
  return room >= group.replicas;
}

bool EndsBefore(const AvoidedNode& a, const AvoidedNode& b) { return a.until < b.until; }

// `avoided` with the node, until then. If it is full, in place of the one that ends first, unless
// that ends no earlier: so a pass over many bad nodes does not replace what it has just added.
AvoidedNodes With(AvoidedNodes avoided, NodeId node, Time until) {
  if (avoided.size() >= kMaxAvoidedNodes) {
    const auto first = std::min_element(avoided.begin(), avoided.end(), EndsBefore);
    if (first->until >= until) return avoided;
    avoided.erase(first);
  }
  const auto at =
      std::lower_bound(avoided.begin(), avoided.end(), node,
                       [](const AvoidedNode& entry, NodeId before) { return entry.node < before; });
  avoided.insert(at, {.node = node, .until = until});
  return avoided;
}

}  // namespace

Step AvoidBadNodes(const Look& look) {
  if (look.state.expelling_nodes().empty() && TallyOf(look.job).In(TaskState::kFailed) == 0) {
    return {};
  }
  AvoidedNodes avoided = look.job.status.avoided;
  for (uint32_t i = 0; i < look.job.tasks.size(); ++i) {
    const NodeId node = look.job.tasks[i].node;
    if (!DeviceFailed(look, i) || Avoids(avoided, node)) continue;
    const Group& group = look.job.groups[GroupOf(look.job, i)];
    if (IgnoresDevices(look, group)) continue;
    AvoidedNodes with = With(avoided, node, look.now + kAvoidFor);
    if (OthersSuffice(look, group, with)) avoided = std::move(with);
  }
  if (avoided == look.job.status.avoided) return {};
  return {WithStatus(look, [&](JobStatus& status) { status.avoided = std::move(avoided); })};
}

Step EndAvoidance(const Look& look) {
  const auto over = [&](const AvoidedNode& one) { return one.until <= look.now; };
  const AvoidedNodes& avoided = look.job.status.avoided;
  if (std::none_of(avoided.begin(), avoided.end(), over)) return {};
  return {WithStatus(look, [&](JobStatus& status) {
    status.avoided.erase(std::remove_if(status.avoided.begin(), status.avoided.end(), over),
                         status.avoided.end());
  })};
}

}  // namespace berth
