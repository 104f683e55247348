#include "server/validation/queue.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/convert/queue.h"
#include "server/validation/group.h"
#include "server/validation/job.h"
#include "server/validation/resources.h"
#include "server/validation/text.h"
#include "server/validation/values.h"
#include "support/errors.h"

namespace berth {
namespace {

void CheckShares(const FieldPath& path, const v1::QueueSpec& spec, Findings& findings) {
  CheckResourceList({path, "deserved"}, spec.deserved(), findings);
  CheckResourceList({path, "guarantee"}, spec.guarantee(), findings);
  CheckRange({path, "weight"}, spec.weight(), 0, kMaxQueueWeight, findings);
  CheckRange({path, "priority"}, spec.priority(), -kMaxPriority, kMaxPriority, findings);
  CheckEnum({path, "order"}, spec.order(), findings);
  CheckEnum({path, "user_fairness"}, spec.user_fairness(), findings);
  CheckEnum({path, "strategy"}, spec.strategy(), findings);
  CheckDeviceStrategy({path, "device_strategy"}, spec.device_strategy(), findings);
}

// No amount of the share exceeds the limit, if there is one.
void CheckWithinLimit(const FieldPath& spec, absl::string_view field,
                      const std::vector<NamedAmount>& share, const std::vector<NamedAmount>& limit,
                      Findings& findings) {
  for (const NamedAmount& part : share) {
    const auto cap = std::find_if(limit.begin(), limit.end(),
                                  [&](const NamedAmount& l) { return l.name == part.name; });
    if (cap == limit.end() || part.amount <= cap->amount) continue;
    findings.Invalid(
        {spec, field},
        absl::StrCat(part.name, ": ", AmountText(part.amount, UnitOf(part.name)),
                     " is more than the limit of ", AmountText(cap->amount, UnitOf(part.name))));
  }
}

void CheckQueueSpec(const FieldPath& path, const v1::QueueSpec& spec, Findings& findings) {
  if (!spec.parent().empty() && spec.parent() != kRootQueueName) {
    CheckDnsLabel({path, "parent"}, spec.parent(), findings);
  }
  CheckResourceList({path, "limit"}, spec.limit(), findings);
  CheckRange({path, "max_jobs"}, spec.max_jobs(), 0, INT32_MAX, findings);
  CheckRange({path, "max_running_jobs"}, spec.max_running_jobs(), 0, INT32_MAX, findings);
  CheckRange({path, "max_tasks"}, spec.max_tasks(), 0, INT32_MAX, findings);
  CheckQueueDefaults({path, "defaults"}, spec.defaults(), findings);
  CheckLabels(path, "labels", spec.labels(), findings);
  if (spec.has_slice()) {
    CheckDuration({path, "slice"}, spec.slice(), absl::Seconds(10), absl::Hours(24), findings);
  }
  CheckShares(path, spec, findings);
}

constexpr absl::string_view kUpdatable[] = {"spec.limit",
                                            "spec.deserved",
                                            "spec.guarantee",
                                            "spec.weight",
                                            "spec.priority",
                                            "spec.reclaimable",
                                            "spec.order",
                                            "spec.user_fairness",
                                            "spec.strategy",
                                            "spec.max_jobs",
                                            "spec.max_running_jobs",
                                            "spec.labels",
                                            "spec.max_tasks",
                                            "spec.defaults",
                                            "spec.surplus_only",
                                            "spec.device_strategy",
                                            "spec.slice"};

bool Updatable(absl::string_view path) {
  return std::find(std::begin(kUpdatable), std::end(kUpdatable), path) != std::end(kUpdatable);
}

int Depth(const ClusterState& state, const Queue* queue) {
  int depth = 0;
  for (; queue->id != kRootQueue; queue = &state.queues().At(queue->spec.parent)) ++depth;
  return depth;
}

absl::Status CheckParent(const ClusterState& state, const v1::Queue& queue) {
  const std::string& name = queue.spec().parent();
  const bool root = name.empty() || name == kRootQueueName;
  if (root) return absl::OkStatus();
  const Queue* parent = state.FindQueue(name);
  if (parent == nullptr) {
    return ViolationsError(
        absl::StatusCode::kNotFound,
        {{"queue.spec.parent", absl::StrCat("there is no queue ", Quoted(name))}});
  }
  if (parent->children.empty() && parent->jobs > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("queue ", Quoted(name), " has ", parent->jobs,
                     " jobs, so it cannot become a parent: only leaf queues have jobs"));
  }
  if (Depth(state, parent) >= kMaxQueueDepth) {
    return absl::FailedPreconditionError(
        absl::StrCat("queues can be nested at most ", kMaxQueueDepth, " deep"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateCreateQueue(const v1::CreateQueueRequest& request) {
  Findings findings;
  const FieldPath root;
  const FieldPath queue(root, "queue");
  CheckRequestId(request.request_id(), findings);
  CheckDnsLabel({queue, "name"}, request.queue().name(), findings);
  if (request.queue().name() == kRootQueueName) {
    findings.Invalid({queue, "name"}, "\"root\" is the parent of all queues; choose another name");
  }
  if (request.queue().has_status()) {
    findings.Invalid({queue, "status"}, "is set by the server; leave it out");
  }
  if (!request.queue().etag().empty()) {
    findings.Invalid({queue, "etag"}, "is set by the server; leave it out");
  }
  CheckQueueSpec({queue, "spec"}, request.queue().spec(), findings);
  CheckQueueShares(QueueSpecFrom(request.queue()), findings);
  return findings.ToStatus();
}

void CheckQueueDefaults(const FieldPath& path, const v1::QueueDefaults& defaults,
                        Findings& findings) {
  CheckRange({path, "cpu_millis"}, defaults.cpu_millis(), 0, kMaxDefaultAmount, findings);
  CheckRange({path, "memory_bytes"}, defaults.memory_bytes(), 0, kMaxDefaultAmount, findings);
  if (defaults.has_walltime()) {
    CheckDuration({path, "walltime"}, defaults.walltime(), absl::Milliseconds(1), kMaxDuration,
                  findings);
  }
}

void CheckQueueShares(const QueueSpec& spec, Findings& findings) {
  const FieldPath root;
  const FieldPath queue(root, "queue");
  const FieldPath path(queue, "spec");
  CheckWithinLimit(path, "deserved", spec.deserved, spec.limit, findings);
  CheckWithinLimit(path, "guarantee", spec.guarantee, spec.limit, findings);
  const std::vector<NamedAmount> task = {{"cpu", spec.defaults.cpu_millis},
                                         {"memory", spec.defaults.memory_bytes}};
  CheckWithinLimit(path, "defaults", task, spec.limit, findings);
}

absl::Status CheckQueueKinds(const ClusterState& state, const v1::QueueSpec& spec) {
  std::vector<absl::string_view> kinds;
  for (const auto* list : {&spec.limit(), &spec.deserved(), &spec.guarantee()}) {
    for (const auto& [kind, amount] : list->counts()) kinds.push_back(kind);
  }
  return state.interner().CanAddKinds(kinds);
}

absl::Status ValidateUpdateQueue(const v1::UpdateQueueRequest& request) {
  Findings findings;
  const FieldPath root;
  const FieldPath queue(root, "queue");
  CheckDnsLabel({queue, "name"}, request.queue().name(), findings);
  const auto& paths = request.update_mask().paths();
  if (paths.empty()) {
    findings.Invalid({root, "update_mask"},
                     absl::StrCat("required: one or more of ", absl::StrJoin(kUpdatable, ", ")));
  }
  for (const std::string& path : paths) {
    if (Updatable(path)) continue;
    if (KnownField(v1::Queue::descriptor(), path)) {
      findings.Unbuilt({root, "update_mask"}, absl::StrCat("changing ", path, " of a queue"));
    } else {
      findings.Invalid({root, "update_mask"}, absl::StrCat("a queue has no field ", Quoted(path)));
    }
  }
  CheckQueueSpec({queue, "spec"}, request.queue().spec(), findings);
  return findings.ToStatus();
}

absl::Status CheckQueueFits(const ClusterState& state, const v1::Queue& queue) {
  if (state.FindQueue(queue.name()) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("queue ", Quoted(queue.name()), " already exists"));
  }
  if (state.queues().size() > kMaxQueues) {
    return RetryLaterError(absl::StatusCode::kResourceExhausted,
                           absl::StrCat("at most ", kMaxQueues, " queues"), absl::Minutes(1));
  }
  if (absl::Status status = CheckParent(state, queue); !status.ok()) return status;
  return CheckQueueKinds(state, queue.spec());
}

absl::Status CheckQueueEmpty(const ClusterState& state, const Queue& queue) {
  if (!queue.children.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "queue ", Quoted(queue.spec.name), " has ", queue.children.size(), " children, such as ",
        Quoted(state.queues().At(queue.children[0]).spec.name), "; delete them first"));
  }
  if (queue.jobs > 0) {
    return absl::FailedPreconditionError(absl::StrCat("queue ", Quoted(queue.spec.name), " has ",
                                                      queue.jobs, " jobs (", queue.active_jobs,
                                                      " not ended); delete them first"));
  }
  return absl::OkStatus();
}

}  // namespace berth
