#include "tests/property/naive_usage.h"

#include <algorithm>

#include "core/model/node.h"

namespace berth {
namespace {

int64_t Thousandths(const DeviceUse& use, size_t device) {
  const SharedDevice* shared = use.SharesOf(device);
  return (use.whole.Has(device) ? kWhole : 0) + (shared == nullptr ? 0 : shared->share);
}

// Adds what is in devices by model, and the rest.
void AddByModel(const ClusterState& state, const Node& node, const Resources& amounts,
                const DeviceUse& use, NaiveFigure figure, NaiveRates& rates) {
  Resources rest = amounts;
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    const Device& device = node.spec.devices[i];
    figure.resource = device.kind;
    figure.model = device.model;
    rates[figure] += Thousandths(use, i);
    rest[*state.interner().FindKind(device.kind)] -= Thousandths(use, i);
  }
  figure.model.clear();
  for (size_t i = 0; i < state.interner().kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    figure.resource = state.interner().KindName(kind);
    rates[figure] += rest[kind];
  }
}

void AddTask(const ClusterState& state, const Job& job, uint32_t index, NaiveRates& rates) {
  const Task& task = job.tasks[index];
  const ShapeEntry& shape = state.interner().Shape(job.groups[GroupOf(job, index)].shape);
  const auto add = [&](const Node& node, const Resources& amounts, const DeviceUse& use,
                       Measure measure) {
    const NaiveFigure figure{.key = UsageKeyOf(state, job),
                             .model = {},
                             .resource = {},
                             .figure = static_cast<size_t>(measure)};
    AddByModel(state, node, amounts, use, figure, rates);
  };
  if (task.state == TaskState::kPending) {
    const bool on_hold =
        job.status.state == JobState::kHeld || job.status.state == JobState::kSuspended;
    if (!on_hold) add(Node{}, shape.resources, {}, Measure::kWaiting);
    return;
  }
  if (Occupies(task.state)) {
    const Node& node = state.nodes().At(task.node);
    const DeviceUse use = UseOf(node, shape, DevicesHeld(task));
    add(node, HeldBy(shape, use, Frozen(task)), use, Measure::kHeld);
    if (Frozen(task)) add(node, HeldBy(shape, use, true), use, Measure::kPaused);
    if (task.pause == PauseState::kResuming) {
      const DeviceUse lent = UseOf(node, shape, task.devices_lent ? task.devices : DeviceSet{});
      add(node, LentBy(node, shape, task), lent, Measure::kReserved);
    }
  }
  const bool nominated = Reserves(task.state);
  if (!nominated && !task.moves) return;
  const Node& node = state.nodes().At(nominated ? task.node : task.next_node);
  const DeviceUse use = UseOf(node, shape, nominated ? task.devices : task.next_devices);
  add(node, HeldBy(shape, use, false), use, Measure::kReserved);
}

void DropZeros(NaiveRates& rates) {
  for (auto at = rates.begin(); at != rates.end();) {
    at = at->second == 0 ? rates.erase(at) : std::next(at);
  }
}

// One resource of a node, or one device: what is not held is in the first state that applies.
void AddCapacity(const Node& node, const NaiveFigure& of, int64_t total, int64_t held,
                 int64_t claimed, bool unhealthy, bool drained, NaiveRates& rates) {
  const auto add = [&](CapacityPart part, int64_t amount) {
    NaiveFigure figure = of;
    figure.figure = static_cast<size_t>(part);
    rates[figure] += amount;
  };
  add(CapacityPart::kTotal, total);
  add(CapacityPart::kHeld, held);
  if (held >= total) return add(CapacityPart::kOvercommitted, held - total);
  const int64_t rest = total - held;
  if (node.status.state != NodeState::kReady) return add(CapacityPart::kDown, rest);
  if (unhealthy) return add(CapacityPart::kUnhealthy, rest);
  const int64_t reserved = std::min(rest, std::max<int64_t>(claimed, 0));
  add(CapacityPart::kReserved, reserved);
  const bool cordoned = node.status.cordoned || node.status.draining || drained;
  const CapacityPart part = cordoned             ? CapacityPart::kCordoned
                            : node.tasks.empty() ? CapacityPart::kFree
                                                 : CapacityPart::kFragmented;
  add(part, rest - reserved);
}

}  // namespace

std::string PathTextOf(const ClusterState& state, QueueId queue) {
  std::string path;
  for (QueueId id = queue; id != kRootQueue; id = state.queues().At(id).spec.parent) {
    const std::string& name = state.queues().At(id).spec.name;
    path = path.empty() ? name : name + "/" + path;
  }
  return path;
}

UsageKey UsageKeyOf(const ClusterState& state, const Job& job) {
  const auto label = job.labels.find("label");
  return {.queue = PathTextOf(state, job.queue),
          .user = job.user,
          .account = label == job.labels.end() ? "" : label->second,
          .priority_class = job.priority_class};
}

NaiveRates AmountsOfTask(const ClusterState& state, const Job& job, uint32_t index,
                         const Task& task, size_t figure) {
  NaiveRates amounts;
  const Node& node = state.nodes().At(task.node);
  const ShapeEntry& shape = state.interner().Shape(job.groups[GroupOf(job, index)].shape);
  const DeviceUse use = UseOf(node, shape, task.devices);
  AddByModel(state, node, HeldBy(shape, use, false), use,
             {.key = UsageKeyOf(state, job), .model = {}, .resource = {}, .figure = figure},
             amounts);
  DropZeros(amounts);
  return amounts;
}

NaiveRates UsageRates(const ClusterState& state) {
  NaiveRates rates;
  state.jobs().ForEach([&](JobId, const Job& job) {
    if (Ended(job.status.state)) return;
    for (uint32_t index = 0; index < job.tasks.size(); ++index) AddTask(state, job, index, rates);
  });
  DropZeros(rates);
  return rates;
}

NaiveRates CapacityRates(const ClusterState& state) {
  NaiveRates rates;
  state.nodes().ForEach([&](NodeId, const Node& node) {
    std::map<std::string, int64_t> total = {{"cpu", node.spec.cpu_millis},
                                            {"memory", node.spec.memory_bytes}};
    for (const NamedAmount& extended : node.spec.extended) total[extended.name] += extended.amount;
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      const Device& device = node.spec.devices[i];
      const int64_t claimed = node.awaited.Has(i) ? kWhole : Thousandths(node.devices_reserved, i);
      AddCapacity(node, {.key = {}, .model = device.model, .resource = device.kind}, kWhole,
                  Thousandths(node.devices_used, i), claimed, device.unhealthy,
                  node.status.drain.devices.Has(i), rates);
    }
    for (size_t i = 0; i < state.interner().kind_count(); ++i) {
      const ResourceKind kind{static_cast<uint8_t>(i)};
      const std::string& name = state.interner().KindName(kind);
      const bool device = std::any_of(node.spec.devices.begin(), node.spec.devices.end(),
                                      [&](const Device& one) { return one.kind == name; });
      if (device) continue;
      AddCapacity(node, {.key = {}, .model = {}, .resource = name}, total[name],
                  node.allocated[kind], node.reserved[kind], false, false, rates);
    }
  });
  DropZeros(rates);
  return rates;
}

void NaiveSums::Add(const NaiveRates& rates, int64_t from_ms, int64_t to_ms, int64_t width_ms) {
  while (from_ms < to_ms) {
    const int64_t begin = PeriodOf(from_ms, width_ms);
    const int64_t until = std::min(to_ms, begin + width_ms);
    for (const auto& [figure, rate] : rates) {
      sums_[{Period{width_ms, begin}, figure}] += AmountTime(rate) * (until - from_ms);
    }
    from_ms = until;
  }
}

void NaiveSums::AddOnce(const NaiveFigure& figure, AmountTime amount, int64_t at_ms,
                        int64_t width_ms) {
  if (amount != 0) sums_[{Period{width_ms, PeriodOf(at_ms, width_ms)}, figure}] += amount;
}

}  // namespace berth
