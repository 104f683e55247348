#include <algorithm>
#include <cstring>
#include <utility>

#include "core/model/state_editor.h"

namespace berth {
namespace {

// A hash that is the same on every machine and in every run (absl's is seeded). 64-bit FNV-1a over
// words, with a final multiply-shift so that all bits of the last words count.
class Hasher {
 public:
  Hasher& Add(uint64_t word) {
    hash_ = (hash_ ^ word) * 0x100000001b3u;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  Hasher& Add(absl::string_view text) {
    Add(text.size());
    for (char c : text) Add(static_cast<uint8_t>(c));
    return *this;
  }
  Hasher& Add(Duration duration) {
    return Add(static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration)));
  }
  Hasher& Add(Time time) { return Add(static_cast<uint64_t>(absl::ToUnixNanos(time))); }
  template <class Enum>
  requires std::is_enum_v<Enum> Hasher& Add(Enum value) {
    return Add(static_cast<uint64_t>(value));
  }
  template <class Int>
  requires std::is_integral_v<Int> Hasher& Add(Int value) {
    return Add(static_cast<uint64_t>(value));
  }
  template <class Tag, class Number>
  Hasher& Add(Id<Tag, Number> id) {
    return Add(static_cast<uint64_t>(id.value));
  }
  Hasher& Add(const std::map<std::string, std::string>& labels) {
    Add(labels.size());
    for (const auto& [key, value] : labels)
      Add(absl::string_view(key)).Add(absl::string_view(value));
    return *this;
  }
  Hasher& Add(const std::vector<std::string>& names) {
    Add(names.size());
    for (const std::string& name : names) Add(absl::string_view(name));
    return *this;
  }
  Hasher& Add(const std::vector<NamedAmount>& amounts) {
    Add(amounts.size());
    for (const NamedAmount& a : amounts) Add(absl::string_view(a.name)).Add(a.amount);
    return *this;
  }
  uint64_t Value() const { return hash_ * 0x9e3779b97f4a7c15u ^ hash_ >> 32; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

// Amounts by name, without zeros: equal states may number kinds differently.
void AddResources(Hasher& h, const Interner& interner, const Resources& sum) {
  std::vector<std::pair<absl::string_view, int64_t>> named;
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    if (sum[kind] != 0) named.emplace_back(interner.KindName(kind), sum[kind]);
  }
  std::sort(named.begin(), named.end());
  h.Add(named.size());
  for (const auto& [name, amount] : named) h.Add(name).Add(amount);
}

void AddPolicies(Hasher& h, absl::Span<const LifecyclePolicy> policies) {
  h.Add(policies.size());
  for (const LifecyclePolicy& policy : policies) {
    h.Add(policy.event).Add(policy.action).Add(policy.after).Add(policy.exit_codes.size());
    for (int32_t code : policy.exit_codes) h.Add(code);
  }
}

void AddShape(Hasher& h, const TaskShape& shape) {
  h.Add(shape.cpu_millis).Add(shape.memory_bytes).Add(shape.devices.size());
  for (const DeviceRequest& request : shape.devices) {
    h.Add(absl::string_view(request.kind)).Add(request.count).Add(request.share);
    h.Add(request.by_memory).Add(request.oversubscribe);
    h.Add(request.min_memory_bytes).Add(request.min_compute_capability);
    h.Add(request.models).Add(request.deny_models).Add(request.allow_uuids).Add(request.deny_uuids);
    h.Add(request.min_link).Add(request.min_bandwidth_gbps);
  }
  h.Add(shape.extended).Add(shape.match_labels).Add(shape.exclude_nodes);
  h.Add(shape.tolerations.size());
  for (const Toleration& toleration : shape.tolerations) {
    h.Add(absl::string_view(toleration.key)).Add(absl::string_view(toleration.value));
  }
}

void AddQueue(Hasher& h, const Interner& interner, const Queue& queue) {
  h.Add(queue.id)
      .Add(absl::string_view(queue.spec.name))
      .Add(queue.spec.parent)
      .Add(queue.spec.limit)
      .Add(queue.spec.deserved)
      .Add(queue.spec.guarantee)
      .Add(queue.spec.weight)
      .Add(queue.spec.priority)
      .Add(queue.spec.reclaimable)
      .Add(queue.spec.order)
      .Add(queue.spec.user_fairness)
      .Add(queue.spec.strategy)
      .Add(queue.spec.surplus_only)
      .Add(queue.spec.device_strategy)
      .Add(queue.usage)
      .Add(queue.line)
      .Add(queue.longest_line)
      .Add(queue.line_waits);
  h.Add(queue.spec.max_jobs).Add(queue.spec.max_running_jobs).Add(queue.spec.labels);
  h.Add(queue.spec.max_tasks).Add(queue.spec.defaults.cpu_millis);
  h.Add(queue.spec.defaults.memory_bytes).Add(queue.spec.defaults.walltime);
  h.Add(queue.open).Add(queue.revision);
  AddResources(h, interner, queue.allocated);
  AddResources(h, interner, queue.pending);
  AddResources(h, interner, queue.nonpreemptible);
  AddResources(h, interner, queue.kept);
  h.Add(queue.occupying_jobs.size()).Add(queue.user_allocated.size());
  for (const auto& [user, sum] : queue.user_allocated) {
    h.Add(absl::string_view(user));
    AddResources(h, interner, sum);
  }
  h.Add(queue.active_jobs).Add(queue.running_jobs).Add(queue.held_jobs).Add(queue.jobs);
  for (QueueId child : queue.children) h.Add(child);
}

void AddTopology(Hasher& h, const DeviceTopology& topology) {
  h.Add(topology.links.size()).Add(topology.numa_nodes.size());
  for (const DeviceLink& link : topology.links) {
    h.Add(link.link).Add(link.count).Add(link.mb_per_s).Add(link.same_package);
  }
  h.Add(absl::string_view(topology.between));
  for (const NumaNode& numa : topology.numa_nodes) {
    h.Add(numa.id).Add(numa.package).Add(absl::string_view(numa.cpus)).Add(numa.memory_bytes);
  }
}

void AddUse(Hasher& h, const DeviceUse& use) {
  for (uint64_t word : use.whole.bits) h.Add(word);
  h.Add(use.shared.size());
  for (const SharedDevice& one : use.shared) h.Add(one.device).Add(one.tasks).Add(one.share);
}

void AddMix(Hasher& h, const RequestMix& mix) {
  h.Add(mix.models).Add(mix.types.size()).Add(mix.cpu_millis_per_device).Add(mix.priced);
  for (const RequestType& type : mix.types) {
    h.Add(type.request.devices).Add(type.request.share).Add(type.request.cpu_millis);
    h.Add(type.request.models).Add(type.weight).Add(type.value);
  }
  if (mix.mib_per_core != 0) h.Add(mix.mib_per_core);
  if (mix.score != MixScore::kPrices) h.Add(mix.score);
}

void AddNode(Hasher& h, const Interner& interner, const Node& node) {
  const NodeSpec& spec = node.spec;
  h.Add(node.id).Add(absl::string_view(spec.name)).Add(absl::string_view(spec.address));
  h.Add(spec.cpu_millis).Add(spec.memory_bytes).Add(spec.extended).Add(spec.labels);
  h.Add(absl::string_view(spec.os)).Add(absl::string_view(spec.architecture));
  for (const Device& device : spec.devices) {
    h.Add(absl::string_view(device.kind)).Add(absl::string_view(device.uuid));
    h.Add(absl::string_view(device.model)).Add(device.memory_bytes).Add(device.numa_node);
    h.Add(device.max_tasks).Add(device.oversubscription).Add(device.compute_capability);
    h.Add(absl::string_view(device.pci_bus_id)).Add(device.unhealthy);
  }
  AddTopology(h, spec.topology);
  h.Add(spec.divides_gpus).Add(spec.max_tasks);
  for (const Taint& taint : spec.taints) {
    h.Add(absl::string_view(taint.key)).Add(absl::string_view(taint.value));
  }
  const NodeStatus& status = node.status;
  h.Add(status.state)
      .Add(status.cordoned)
      .Add(status.draining)
      .Add(absl::string_view(status.reason));
  h.Add(status.epoch).Add(absl::string_view(status.agent_id));
  h.Add(absl::string_view(status.boot_id)).Add(absl::string_view(status.agent_version));
  h.Add(status.registered)
      .Add(status.refusals)
      .Add(status.refused_jobs)
      .Add(status.backoff_until)
      .Add(absl::string_view(status.refusal))
      .Add(node.revision);
  for (JobId job : status.refused_before) h.Add(job);
  AddResources(h, interner, node.capacity);
  AddResources(h, interner, node.allocated);
  AddUse(h, node.devices_used);
  for (uint64_t word : node.healthy.bits) h.Add(word);
  AddResources(h, interner, node.reserved);
  AddUse(h, node.devices_reserved);
  h.Add(node.tasks.size()).Add(node.nominated.size());
  for (HyperNodeId domain : node.domains) h.Add(domain);
}

void AddHyperNode(Hasher& h, const HyperNode& domain) {
  const HyperNodeSpec& spec = domain.spec;
  h.Add(domain.id).Add(absl::string_view(spec.name)).Add(absl::string_view(spec.kind));
  h.Add(spec.tier).Add(absl::string_view(spec.tier_name)).Add(spec.members.size());
  for (const HyperNodeMember& member : spec.members) {
    h.Add(member.type).Add(member.match).Add(absl::string_view(member.text));
  }
  h.Add(spec.bandwidth_gbps).Add(spec.latency_us).Add(spec.health);
  h.Add(absl::string_view(spec.health_reason)).Add(absl::string_view(spec.source));
  h.Add(domain.revision).Add(domain.parent).Add(domain.children.size()).Add(domain.nodes.size());
  for (HyperNodeId child : domain.children) h.Add(child);
  for (NodeId node : domain.nodes) h.Add(node);
}

void AddTopology(Hasher& h, const TopologyConstraint& topology) {
  h.Add(topology.mode).Add(topology.highest_tier).Add(topology.patience);
  h.Add(absl::string_view(topology.highest_tier_name)).Add(absl::string_view(topology.kind));
}

void AddTask(Hasher& h, const Task& task) {
  h.Add(task.state)
      .Add(task.before_lost)
      .Add(task.end_cause)
      .Add(task.exit_signal)
      .Add(task.requeue)
      .Add(task.own_fault)
      .Add(task.nobodys_fault)
      .Add(task.claimed);
  h.Add(task.exit_code).Add(task.attempt).Add(task.node).Add(task.port).Add(task.rank);
  h.Add(task.moves).Add(task.next_node);
  h.Add(task.next_devices.bits[0]).Add(task.next_devices.bits[1]);
  h.Add(task.devices.bits[0]).Add(task.devices.bits[1]).Add(task.since).Add(task.start);
}

void AddStatus(Hasher& h, const JobStatus& status) {
  h.Add(status.state).Add(status.outcome).Add(status.retries).Add(status.starts).Add(status.start);
  h.Add(status.bound);
  h.Add(status.end).Add(status.hold_until).Add(status.suspended).Add(status.cancelled);
  h.Add(status.forced);
  h.Add(status.evictions).Add(status.eviction.time).Add(status.eviction.reason);
  h.Add(status.eviction.beneficiary).Add(status.eviction.tasks);
  h.Add(absl::string_view(status.eviction.detail));
  h.Add(absl::string_view(status.message)).Add(status.delayed.size());
  const Refusals& refusals = status.refusals;
  h.Add(refusals.own).Add(refusals.starts).Add(refusals.spare).Add(refusals.nodes.size());
  for (NodeId node : refusals.nodes) h.Add(node);
  h.Add(refusals.until).Add(refusals.rests).Add(status.attained).Add(status.line_from);
  for (const DelayedAction& action : status.delayed) {
    h.Add(action.action).Add(action.task).Add(action.attempt).Add(action.due);
    h.Add(absl::string_view(action.message));
  }
}

void AddJob(Hasher& h, const ClusterState& state, const Job& job) {
  h.Add(job.id).Add(absl::string_view(job.name)).Add(job.queue).Add(job.priority);
  h.Add(job.min_available).Add(job.max_retries).Add(job.on_node_loss).Add(job.walltime);
  h.Add(job.retry_backoff).Add(job.prepare_timeout).Add(job.kill_grace).Add(job.ttl_after_finished);
  h.Add(job.preemptible).Add(job.preempts).Add(job.strategy).Add(job.device_strategy);
  h.Add(absl::string_view(job.user));
  h.Add(job.checkpoint_interval).Add(job.deadline);
  h.Add(job.prediction.expected_s).Add(job.prediction.harmonic_s);
  h.Add(job.prediction.low_s).Add(job.prediction.high_s);
  h.Add(job.line.work).Add(job.line.before);
  h.Add(job.submit).Add(job.start_after).Add(job.revision).Add(job.labels).Add(job.occupying);
  for (size_t g = 0; g < job.groups.size(); ++g) {
    const Group& group = job.groups[g];
    h.Add(absl::string_view(group.name)).Add(group.replicas).Add(group.min_available);
    AddShape(h, state.interner().Shape(group.shape).shape);
    h.Add(group.partition_size).Add(group.strategy);
    h.Add(group.near_groups.size()).Add(group.apart_from.size());
    for (uint32_t other : group.near_groups) h.Add(other);
    for (uint32_t other : group.apart_from) h.Add(other);
    h.Add(group.affinity_tier).Add(group.communication).Add(group.has_image);
    h.Add(group.preemptible).Add(group.device_strategy);
    h.Add(group.spread.tier).Add(group.spread.max_skew);
    h.Add(group.priority.has_value()).Add(group.priority.value_or(0));
    AddTopology(h, group.topology);
    AddTopology(h, group.partition_topology);
    AddPolicies(h, group.policies);
    for (const GroupDependency& d : group.depends_on) h.Add(d.group).Add(d.condition);
    for (int32_t count : job.tallies[g].count) h.Add(count);
  }
  AddTopology(h, *job.topology);
  for (const AffinityTerm& term : job.affinity) {
    h.Add(term.apart).Add(term.tier).Add(term.all_queues);
    for (const LabelPair& label : term.labels) {
      h.Add(absl::string_view(label.first)).Add(absl::string_view(label.second));
    }
  }
  AddPolicies(h, job.policies);
  for (const JobDependency& d : job.dependencies) h.Add(d.job).Add(d.condition);
  AddStatus(h, job.status);
  for (uint32_t t = 0; t < job.tasks.size(); ++t) {
    AddTask(h, job.tasks[t]);
    h.Add(state.TaskMessage({job.id, t}));
  }
  h.Add(job.pending_class != ClassId{});
}

}  // namespace

uint64_t Fingerprint(const ClusterState& state) {
  Hasher h;
  const Interner& interner = state.interner();
  h.Add(state.next_job_id()).Add(state.next_node_id()).Add(state.next_queue_id());
  h.Add(state.next_hyper_node_id());
  state.queues().ForEach([&](QueueId, const Queue& queue) { AddQueue(h, interner, queue); });
  state.hyper_nodes().ForEach(
      [&](HyperNodeId, const HyperNode& domain) { AddHyperNode(h, domain); });
  state.nodes().ForEach([&](NodeId, const Node& node) { AddNode(h, interner, node); });
  state.jobs().ForEach([&](JobId, const Job& job) { AddJob(h, state, job); });
  AddMix(h, state.request_mix());
  state.run_history().ForEach([&](RunId id, const FinishedRun& run) {
    h.Add(id).Add(absl::string_view(run.user)).Add(run.request.walltime_s);
    h.Add(run.request.devices).Add(run.request.cpu_millis).Add(run.run_ms);
  });
  h.Add(state.usage_charged());
  AddResources(h, interner, state.capacity());
  for (const auto& [id, reservation] : state.reservations()) {
    h.Add(id).Add(reservation.start).Add(reservation.end).Add(reservation.places.size());
    h.Add(reservation.firm_from);
    for (const Placement& place : reservation.places) {
      h.Add(place.task).Add(place.node);
      h.Add(place.devices.bits[0]).Add(place.devices.bits[1]);
    }
  }
  h.Add(state.planned_ends().size()).Add(state.nominated_jobs().size());
  h.Add(state.releasing().size());
  for (size_t s = 0; s < kJobStates; ++s) h.Add(state.jobs_in(static_cast<JobState>(s)));
  for (size_t s = 0; s < kTaskStates; ++s) h.Add(state.tasks_in(static_cast<TaskState>(s)));
  h.Add(state.pending().job_count());
  return h.Value();
}

}  // namespace berth
