#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "core/base/fields.h"
#include "core/model/state_editor.h"

namespace berth {
namespace {

// A hash that is the same on every machine and in every run (absl's is seeded). 64-bit FNV-1a over
// words, with a final multiply-shift so that all bits of the last words count. Of plain structs it
// adds every field, so it cannot miss a new one.
class Hasher {
 public:
  explicit Hasher(const Interner& interner) : interner_(interner) {}

  template <class T>
  Hasher& Add(const T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      Word(static_cast<uint64_t>(value));
    } else if constexpr (requires { value.begin(); }) {
      Word(value.size());
      for (const auto& element : value) Add(element);
    } else {
      std::apply([&](const auto&... field) { (Add(field), ...); }, FieldsOf(value));
    }
    return *this;
  }
  template <class A, class B>
  Hasher& Add(const std::pair<A, B>& pair) {
    return Add(pair.first).Add(pair.second);
  }
  template <class T>
  Hasher& Add(const std::optional<T>& value) {
    return Add(value.has_value()).Add(value.value_or(T{}));
  }
  template <class T>
  Hasher& Add(const Boxed<T>& value) {
    Add(static_cast<bool>(value));
    return value ? Add(*value) : *this;
  }
  Hasher& Add(const std::string& text) { return Add(absl::string_view(text)); }
  Hasher& Add(absl::string_view text) {
    Word(text.size());
    for (char c : text) Word(static_cast<uint8_t>(c));
    return *this;
  }
  Hasher& Add(const Duration& duration) { return Add(absl::ToInt64Nanoseconds(duration)); }
  Hasher& Add(const Time& time) { return Add(absl::ToUnixNanos(time)); }
  // Interned values: equal states may number them differently. Amounts by name, without zeros.
  Hasher& Add(const ShapeId& shape) { return Add(interner_.Shape(shape).shape); }
  Hasher& Add(const Resources& sum) {
    std::vector<std::pair<absl::string_view, int64_t>> named;
    for (size_t i = 0; i < interner_.kind_count(); ++i) {
      const ResourceKind kind{static_cast<uint8_t>(i)};
      if (sum[kind] != 0) named.emplace_back(interner_.KindName(kind), sum[kind]);
    }
    std::sort(named.begin(), named.end());
    return Add(named);
  }
  void Add(const ResourceKind&) = delete;
  void Add(const ClassId&) = delete;

  uint64_t Value() const { return hash_ * 0x9e3779b97f4a7c15u ^ hash_ >> 32; }

 private:
  void Word(uint64_t word) {
    hash_ = (hash_ ^ word) * 0x100000001b3u;
    hash_ ^= hash_ >> 29;
  }

  const Interner& interner_;
  uint64_t hash_ = 0xcbf29ce484222325u;
};

// The structs below mix facts, sums and planning's caches. A new field goes here, unless it is a
// cache or follows from fields that are here; then the number changes.

void AddQueue(Hasher& h, const Queue& queue) {
  static_assert(kFields<Queue> == 22);
  h.Add(queue.id).Add(queue.spec).Add(queue.open).Add(queue.revision).Add(queue.usage);
  h.Add(queue.line).Add(queue.longest_line).Add(queue.line_waits);
  QueueSums sums = queue;
  sums.wanted = {};  // depends on what planning found out about classes
  QueueSums::ForEach([&](const char*, const auto& sum) { h.Add(sum); }, sums);
  h.Add(queue.kept).Add(queue.user_allocated).Add(queue.children);
  h.Add(queue.occupying_jobs.size()).Add(queue.graded_jobs.size());
}

void AddNode(Hasher& h, const Node& node) {
  static_assert(kFields<Node> == 15);
  h.Add(node.id).Add(node.spec).Add(node.status).Add(node.domains).Add(node.revision);
  h.Add(node.capacity).Add(node.healthy).Add(node.images);
  NodeSums::ForEach([&](const char*, const auto& sum) { h.Add(sum); }, node);
  h.Add(node.tasks.size()).Add(node.nominated.size());
}

void AddHyperNode(Hasher& h, const HyperNode& domain) {
  static_assert(kFields<HyperNode> == 6);
  h.Add(domain.id).Add(domain.spec).Add(domain.revision);
  h.Add(domain.parent).Add(domain.children).Add(domain.nodes);
}

void AddJob(Hasher& h, const ClusterState& state, const Job& job) {
  static_assert(kFields<Job> == 58);
  h.Add(job.id).Add(job.name).Add(job.queue).Add(job.priority).Add(job.labels).Add(job.user);
  h.Add(job.priority_class);
  h.Add(job.owner);
  h.Add(job.min_available).Add(job.max_retries).Add(job.on_node_loss);
  h.Add(job.preemptible).Add(job.preempts).Add(job.preempt_mode);
  h.Add(job.strategy).Add(job.device_strategy);
  h.Add(job.walltime).Add(job.walltime_updated).Add(job.retry_backoff).Add(job.prepare_timeout);
  h.Add(job.kill_grace).Add(job.ttl_after_finished).Add(job.checkpoint_interval);
  h.Add(job.walltime_notice).Add(job.saved_exit_codes).Add(job.watchdog).Add(job.dump_wait);
  h.Add(job.saves_before_drain)
      .Add(job.may_migrate)
      .Add(job.suspends_idle)
      .Add(job.checkpoints_devices)
      .Add(job.deadline)
      .Add(job.submit)
      .Add(job.start_after)
      .Add(job.revision);
  h.Add(job.min_success).Add(job.run_limit).Add(job.series).Add(job.member);
  h.Add(job.line).Add(job.prediction).Add(job.dependencies).Add(job.status);
  for (const Group& group : job.groups) h.Add(static_cast<const BasicGroup<ShapeId>&>(group));
  h.Add(*job.topology).Add(job.affinity).Add(job.policies);
  h.Add(job.tallies).Add(job.occupying).Add(job.leaving).Add(job.pending_class != ClassId{});
  for (uint32_t t = 0; t < job.tasks.size(); ++t) {
    h.Add(job.tasks[t]).Add(state.TaskMessage({job.id, t}));
  }
}

}  // namespace

uint64_t Fingerprint(const ClusterState& state) {
  Hasher h(state.interner());
  h.Add(state.next_job_id()).Add(state.next_node_id()).Add(state.next_queue_id());
  h.Add(state.next_hyper_node_id());
  state.queues().ForEach([&](QueueId, const Queue& queue) { AddQueue(h, queue); });
  state.hyper_nodes().ForEach(
      [&](HyperNodeId, const HyperNode& domain) { AddHyperNode(h, domain); });
  state.nodes().ForEach([&](NodeId, const Node& node) { AddNode(h, node); });
  state.jobs().ForEach([&](JobId, const Job& job) { AddJob(h, state, job); });
  state.run_history().ForEach([&](RunId id, const FinishedRun& run) { h.Add(id).Add(run); });
  h.Add(state.access().AsChange()).Add(state.priority_classes().AsChange());
  h.Add(state.request_mix()).Add(state.usage_charged()).Add(state.capacity());
  h.Add(state.reservations());
  h.Add(state.planned_ends().size()).Add(state.nominated_jobs().size());
  h.Add(state.releasing().size()).Add(state.resuming().size()).Add(state.paused_jobs().size());
  for (size_t s = 0; s < kJobStates; ++s) h.Add(state.jobs_in(static_cast<JobState>(s)));
  for (size_t s = 0; s < kTaskStates; ++s) h.Add(state.tasks_in(static_cast<TaskState>(s)));
  h.Add(state.pending().job_count());
  return h.Value();
}

}  // namespace berth
