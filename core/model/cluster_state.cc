#include "core/model/cluster_state.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace berth {
namespace {

template <class T>
void SortUnique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}
void SortUnique(bool&) {}

}  // namespace

ClusterState::ClusterState() {
  Queue& root = queues_.Insert(kRootQueue, Queue{});
  root.spec.name = "root";
  root.limit.amount.fill(std::numeric_limits<int64_t>::max());
  root.deserved_bound = root.limit;
  queue_names_.emplace(root.spec.name, kRootQueue);
}
ClusterState::ClusterState(ClusterState&&) noexcept = default;
ClusterState& ClusterState::operator=(ClusterState&&) noexcept = default;
ClusterState::~ClusterState() = default;

const Job* ClusterState::FindJob(absl::string_view name) const {
  const auto found = job_names_.find(name);
  return found == job_names_.end() ? nullptr : jobs_.Find(found->second);
}

const Node* ClusterState::FindNode(absl::string_view name) const {
  const auto found = node_names_.find(name);
  return found == node_names_.end() ? nullptr : nodes_.Find(found->second);
}

const Queue* ClusterState::FindQueue(absl::string_view name) const {
  const auto found = queue_names_.find(name);
  return found == queue_names_.end() ? nullptr : queues_.Find(found->second);
}

const HyperNode* ClusterState::FindHyperNode(absl::string_view name) const {
  const auto found = hyper_node_names_.find(name);
  return found == hyper_node_names_.end() ? nullptr : hyper_nodes_.Find(found->second);
}

HyperNodeId ClusterState::ClaimantOf(absl::string_view hyper_node) const {
  const auto found = claimants_.find(hyper_node);
  return found == claimants_.end() ? HyperNodeId{} : found->second;
}

ClusterState::TierUse ClusterState::TierNamed(absl::string_view kind,
                                              absl::string_view tier_name) const {
  const auto found = tier_names_.find(std::make_pair(std::string(kind), std::string(tier_name)));
  return found == tier_names_.end() ? TierUse{} : found->second;
}

const HyperNode* ClusterState::DomainOf(const Node& node, absl::string_view kind) const {
  for (HyperNodeId id : node.domains) {
    const HyperNode& domain = hyper_nodes_.At(id);
    if (domain.spec.kind == kind) return &domain;
  }
  return nullptr;
}

std::vector<JobId> ClusterState::Dependents(JobId job) const {
  std::vector<JobId> waiting;
  for (auto it = dependents_.lower_bound({job, JobId{}});
       it != dependents_.end() && it->first == job; ++it) {
    waiting.push_back(it->second);
  }
  return waiting;
}

std::vector<JobId> ClusterState::MembersOf(JobId series, size_t most) const {
  std::vector<JobId> members;
  for (auto it = members_.lower_bound({series, JobId{}});
       it != members_.end() && it->first == series && members.size() < most; ++it) {
    members.push_back(it->second);
  }
  return members;
}

std::optional<JobId> ClusterState::NextMember(JobId series, JobId from) const {
  const auto found = members_.lower_bound({series, from});
  if (found == members_.end() || found->first != series) return std::nullopt;
  return found->second;
}

std::optional<JobId> ClusterState::NextMemberBack(JobId series, JobId from) const {
  auto found = members_.upper_bound({series, from});
  if (found == members_.begin() || std::prev(found)->first != series) return std::nullopt;
  return std::prev(found)->second;
}

absl::string_view ClusterState::TaskMessage(TaskKey task) const {
  const auto found = task_messages_.find(task);
  return found == task_messages_.end() ? absl::string_view() : absl::string_view(found->second);
}

bool ClusterState::WithinLimits(QueueId queue, const Resources& request) const {
  for (QueueId id = queue;; id = queues_.At(id).spec.parent) {
    const Queue& at = queues_.At(id);
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      const bool over = at.limit.amount[i] - at.allocated.amount[i] < request.amount[i];
      if (over && request.amount[i] > 0) return false;  // a lowered limit blocks only requests
    }
    if (id == kRootQueue) return true;
  }
}

bool ClusterState::Open(QueueId queue) const {
  for (QueueId id = queue;; id = queues_.At(id).spec.parent) {
    if (!queues_.At(id).open) return false;
    if (id == kRootQueue) return true;
  }
}

Dirty ClusterState::TakeDirty() {
  std::apply([](auto&... list) { (SortUnique(list), ...); }, FieldsOf(dirty_));
  return std::exchange(dirty_, Dirty{});
}

void ClusterState::StampDirty(uint64_t revision) {
  for (QueueId id : dirty_.queues) {
    if (Queue* queue = queues_.Find(id); queue != nullptr) queue->revision = revision;
  }
  for (HyperNodeId id : dirty_.hyper_nodes) {
    if (HyperNode* domain = hyper_nodes_.Find(id); domain != nullptr) domain->revision = revision;
  }
  for (NodeId id : dirty_.nodes) {
    if (Node* node = nodes_.Find(id); node != nullptr) node->revision = revision;
  }
  for (const std::vector<JobId>* list : {&dirty_.jobs, &dirty_.new_jobs}) {
    for (JobId id : *list) {
      if (Job* job = jobs_.Find(id); job != nullptr) job->revision = revision;
    }
  }
}

JobSpec SpecOf(const ClusterState& state, const Job& job) {
  static_assert(kFields<JobSpec> == 41, "return the new field");
  JobSpec spec;
  spec.name = job.name;
  spec.queue = job.queue;
  spec.priority = job.priority;
  spec.min_available = job.min_available;
  for (const Group& group : job.groups) {
    spec.groups.push_back(WithShape(group, state.interner().Shape(group.shape).shape));
  }
  spec.policies.assign(job.policies.begin(), job.policies.end());
  spec.dependencies = job.dependencies;
  spec.labels = job.labels;
  spec.max_retries = job.max_retries;
  spec.on_node_loss = job.on_node_loss;
  spec.suspended = job.status.suspended;
  spec.preemptible = job.preemptible;
  spec.preempts = job.preempts;
  spec.preempt_mode = job.preempt_mode;
  spec.strategy = job.strategy;
  spec.device_strategy = job.device_strategy;
  spec.topology = *job.topology;
  spec.affinity.assign(job.affinity.begin(), job.affinity.end());
  spec.user = job.user;
  spec.owner = job.owner;
  spec.priority_class = job.priority_class;
  spec.checkpoint_interval = job.checkpoint_interval;
  spec.walltime_notice = job.walltime_notice;
  spec.watchdog = job.watchdog;
  spec.dump_wait = job.dump_wait;
  spec.saved_exit_codes = job.saved_exit_codes;
  spec.saves_before_drain = job.saves_before_drain;
  spec.may_migrate = job.may_migrate;
  spec.suspends_idle = job.suspends_idle;
  spec.checkpoints_devices = job.checkpoints_devices;
  spec.deadline = job.deadline;
  spec.walltime = job.walltime;
  spec.retry_backoff = job.retry_backoff;
  spec.prepare_timeout = job.prepare_timeout;
  spec.kill_grace = job.kill_grace;
  spec.ttl_after_finished = job.ttl_after_finished;
  spec.start_after = job.start_after;
  spec.min_success = job.min_success;
  spec.run_limit = job.run_limit;
  spec.series = job.series;
  spec.member = job.member;
  return spec;
}

}  // namespace berth
