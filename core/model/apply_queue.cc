#include "core/model/apply_internal.h"
#include "core/model/state_editor.h"
#include "core/model/transitions.h"

namespace berth::apply_internal {
namespace {

absl::Status CheckSpec(const ClusterState& state, const QueueSpec& spec) {
  const std::string whose = absl::StrCat("queue ", spec.name);
  for (const auto* amounts : {&spec.limit, &spec.deserved, &spec.guarantee}) {
    if (auto status = CheckAmounts(*amounts, whose); !status.ok()) return status;
  }
  if (spec.weight < 0 || spec.weight > kMaxQueueWeight) {
    return Invalid(whose, ": weight must be 0 to ", kMaxQueueWeight, ", not ", spec.weight);
  }
  if (spec.max_jobs < 0 || spec.max_running_jobs < 0 || spec.max_tasks < 0) {
    return Invalid(whose, ": max_jobs, max_running_jobs and max_tasks must not be negative");
  }
  if (spec.defaults.cpu_millis < 0 || spec.defaults.memory_bytes < 0 ||
      spec.defaults.cpu_millis > kMaxDefaultAmount ||
      spec.defaults.memory_bytes > kMaxDefaultAmount ||
      spec.defaults.walltime <= absl::ZeroDuration()) {
    return Invalid(whose, ": defaults of cpu and memory must be 0 to ", kMaxDefaultAmount,
                   ", and of walltime more than 0");
  }
  std::vector<absl::string_view> names;
  for (const auto* amounts : {&spec.limit, &spec.deserved, &spec.guarantee}) {
    for (const NamedAmount& amount : *amounts) names.push_back(amount.name);
  }
  return state.interner().CanAddKinds(names);
}

absl::Status CheckKnown(const ClusterState& state, QueueId id) {
  if (state.queues().Find(id) != nullptr) return absl::OkStatus();
  return NotFound("no queue ", id.value);
}

}  // namespace

absl::Status ApplyBody(ClusterState& state, const QueueCreated& event, Time) {
  const QueueSpec& spec = event.spec;
  if (event.id != state.next_queue_id()) {
    return Refused("the next queue is ", state.next_queue_id().value, ", not ", event.id.value);
  }
  if (spec.name.empty()) return Invalid("a queue needs a name");
  if (state.FindQueue(spec.name) != nullptr) return Exists("queue ", spec.name, " exists");
  const Queue* parent = state.queues().Find(spec.parent);
  if (parent == nullptr) {
    return NotFound("queue ", spec.name, ": no parent queue ", spec.parent.value);
  }
  if (parent->children.empty() && parent->jobs > 0) {
    return Refused(NameOf(*parent), " has ", parent->jobs, " jobs: only a leaf has jobs");
  }
  if (auto status = CheckSpec(state, spec); !status.ok()) return status;
  StateEditor(state).AddQueue(event.id, spec);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const QueueUpdated& event, Time) {
  if (auto status = CheckKnown(state, event.id); !status.ok()) return status;
  const Queue& queue = state.queues().At(event.id);
  if (event.spec.name != queue.spec.name || event.spec.parent != queue.spec.parent) {
    return Invalid(NameOf(queue), ": name and parent cannot change");
  }
  if (auto status = CheckSpec(state, event.spec); !status.ok()) return status;
  StateEditor(state).SetQueueSpec(event.id, event.spec);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const QueueOpened& event, Time) {
  if (auto status = CheckKnown(state, event.id); !status.ok()) return status;
  StateEditor(state).SetQueueOpen(event.id, event.open);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const QueueDeleted& event, Time) {
  if (auto status = CheckKnown(state, event.id); !status.ok()) return status;
  const Queue& queue = state.queues().At(event.id);
  if (event.id == kRootQueue) return Invalid("the root queue cannot be deleted");
  if (!queue.children.empty()) {
    return Refused(NameOf(queue), " has ", queue.children.size(), " child queues");
  }
  if (queue.jobs > 0) return Refused(NameOf(queue), " has ", queue.jobs, " jobs");
  StateEditor(state).EraseQueue(event.id);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const UsageCharged& event, Time time) {
  if (event.elapsed <= absl::ZeroDuration() || event.half_life <= absl::ZeroDuration()) {
    return Invalid("usage is charged for a time, with a half-life");
  }
  StateEditor editor(state);
  for (auto id = state.queues().NextFrom(kRootQueue); id.has_value();
       id = state.queues().NextFrom(QueueId{id->value + 1})) {
    editor.SetQueueUsage(*id, ChargedUsage(state.interner(), state.queues().At(*id), event));
  }
  editor.SetUsageCharged(time);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const RequestMixChanged& event, Time) {
  if (auto status = CheckMix(event.mix); !status.ok()) return status;
  StateEditor(state).SetRequestMix(event.mix);
  return absl::OkStatus();
}

}  // namespace berth::apply_internal
