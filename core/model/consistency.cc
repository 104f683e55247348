// CheckConsistency: recomputes everything derived in the simplest way, from facts alone.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/model/line.h"
#include "core/model/pauses.h"
#include "core/model/refusals.h"
#include "core/model/state_editor.h"
#include "core/model/taints.h"
#include "core/model/task_room.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

template <class... Parts>
absl::Status Differs(const Parts&... parts) {
  return absl::InternalError(absl::StrCat("inconsistent: ", parts...));
}

// Sums over the tasks, per node and queue.
struct Sums {
  struct OfNode : NodeSums {
    std::vector<TaskKey> tasks, nominated;
  };
  struct OfQueue : QueueSums {
    std::set<OrderKey> occupying_jobs, graded_jobs, giving_jobs;
    std::map<std::string, Resources> users;
    int64_t line_waits = 0;
  };
  std::map<NodeId, OfNode> nodes;
  std::map<QueueId, OfQueue> queues;
  std::array<int64_t, kJobStates> jobs_by_state{};
  std::array<int64_t, kTaskStates> tasks_by_state{};
  std::map<ClassId, std::set<OrderKey>> classes;
  std::set<std::pair<Time, JobId>> planned_ends;
  std::set<JobId> nominated_jobs, paused_jobs;
  std::set<TaskKey> releasing, resuming;
  size_t pending_jobs = 0;
  std::map<ShapeId, std::set<const JobTemplate*>> shapes;
};

// What the task that occupies a place adds to its node.
void CountAt(const ClusterState& state, const Job& job, uint32_t index, const ShapeEntry& shape,
             const DeviceUse& devices, Sums::OfNode& node) {
  const Task& task = job.tasks[index];
  const Resources held = HeldBy(shape, devices, Frozen(task));
  node.allocated += held;
  node.devices_used += devices;
  if (task.devices_lent) node.lent |= task.devices;
  if (task.pause == PauseState::kResuming) {
    node.reserved += LentBy(state.nodes().At(task.node), shape, task);
    if (task.devices_lent) node.awaited |= task.devices;
  }
  if (task.state == TaskState::kReleasing) {
    node.leaving += held;
    node.devices_leaving += devices;
    ++node.leaving_tasks;
  }
  if (BeingFrozen(task)) {
    const bool lends = LendsSoon(job, shape, task);
    node.leaving += GivenBack(shape, lends);
    if (lends) node.devices_leaving += devices;
  }
}

absl::Status AddTask(const ClusterState& state, const Job& job, uint32_t index, Sums& sums,
                     Sums::OfQueue& own) {
  const Task& task = job.tasks[index];
  const bool waits_for_nothing = Waits(task.state) && Ended(job.status.state);
  if (!waits_for_nothing) ++sums.tasks_by_state[static_cast<size_t>(task.state)];
  const Group& group = job.groups[GroupOf(job, index)];
  const ShapeEntry& shape = state.interner().Shape(group.shape);
  if (task.state == TaskState::kPending && !Ended(job.status.state)) own.pending += shape.resources;
  if (task.state == TaskState::kPending && job.wanting) own.wanted += shape.resources;
  if (task.state == TaskState::kReleasing) sums.releasing.insert({job.id, index});
  if (Reserves(task.state)) {
    sums.nominated_jobs.insert(job.id);
    own.nominated += shape.resources;
  }
  if (task.state == TaskState::kReleasing && !task.moves) {
    own.leaving += shape.resources;
    if (!Preemptible(job, group)) own.nonpreemptible_leaving += shape.resources;
  }
  if (task.claimed) {
    const bool leaves = Releasing(task) && !task.moves;
    if (leaves || !(Reserves(task.state) || Occupies(task.state))) {
      return Differs("job ", job.id.value, " task ", index, " claims a place but holds none");
    }
    own.claimed += shape.resources;
  }
  if (Reserves(task.state) || Occupies(task.state)) {
    own.allocated += shape.resources;
    if (!Preemptible(job, group)) own.nonpreemptible += shape.resources;
  }
  if (Reserves(task.state) || task.moves) {
    Sums::OfNode& there = sums.nodes[task.moves ? task.next_node : task.node];
    const DeviceUse devices = UseOf(state.nodes().At(task.moves ? task.next_node : task.node),
                                    shape, task.moves ? task.next_devices : task.devices);
    if (there.devices_reserved.Clashes(devices)) {
      return Differs("job ", job.id.value, " task ", index,
                     " waits for a device that another task waits for");
    }
    there.reserved += AmountsOf(shape, devices);
    there.devices_reserved += devices;
    there.nominated.push_back({job.id, index});
  }
  if (!MayPause(task)) return Differs("job ", job.id.value, " task ", index, " is paused");
  if (!Occupies(task.state)) return absl::OkStatus();
  own.running_jobs = 1;
  Sums::OfNode& node = sums.nodes[task.node];
  const DeviceUse devices = UseOf(state.nodes().At(task.node), shape, DevicesHeld(task));
  if (node.devices_used.Clashes(devices)) {
    return Differs("job ", job.id.value, " task ", index, " shares a device of node ",
                   task.node.value);
  }
  CountAt(state, job, index, shape, devices, node);
  if (task.pause == PauseState::kResuming) sums.resuming.insert({job.id, index});
  node.tasks.push_back({job.id, index});
  return absl::OkStatus();
}

absl::Status CheckTallies(const Job& job) {
  std::vector<GroupTally> tallies(job.groups.size());
  int32_t occupying = 0, leaving = 0;
  for (uint32_t t = 0; t < job.tasks.size(); ++t) {
    ++tallies[GroupOf(job, t)].count[static_cast<size_t>(TallyState(job.tasks[t]))];
    occupying += Occupies(job.tasks[t].state) ? 1 : 0;
    leaving += job.tasks[t].state == TaskState::kReleasing && !job.tasks[t].moves ? 1 : 0;
  }
  const bool same =
      std::equal(tallies.begin(), tallies.end(), job.tallies.begin(), job.tallies.end()) &&
      occupying == job.occupying && leaving == job.leaving;
  return same ? absl::OkStatus() : Differs("tallies of job ", job.id.value);
}

absl::Status CheckPendingClass(const ClusterState& state, const Job& job, Sums& sums) {
  const JobNeeds needs = NeedsOf(job);
  if (needs.empty() != (job.pending_class == ClassId{})) {
    return Differs("job ", job.id.value, needs.empty() ? " requests nothing, but is" : " is not",
                   " in the pending index");
  }
  if (needs.empty()) return absl::OkStatus();
  const PendingClass* c = state.pending().FindClass(job.pending_class);
  if (c == nullptr ||
      !(c->demand == DemandOf(state.queues().At(job.queue), job, needs, state.affinity()))) {
    return Differs("pending class of job ", job.id.value);
  }
  ++sums.pending_jobs;
  sums.classes[job.pending_class].insert(KeyOf(job));
  return absl::OkStatus();
}

absl::Status CheckTimer(const ClusterState& state, const Job& job) {
  if (!WellFormed(job.status.refusals)) return Differs("refusals of job ", job.id.value);
  if (!WellFormed(job.status.avoided)) return Differs("avoided nodes of job ", job.id.value);
  const Time due = NextDue(job, state.passed_time());
  const bool listed = state.timers().contains({due, job.id});
  const bool wanted = due != absl::InfiniteFuture();
  if (listed != wanted || job.has_timer != wanted) return Differs("timer of job ", job.id.value);
  const Time since = ShortSince(job);
  const bool is_short = since != absl::InfiniteFuture();
  if (state.short_jobs().contains({since, job.id}) != is_short) {
    return Differs("when job ", job.id.value, " fell below its minimum");
  }
  return absl::OkStatus();
}

absl::Status AddJob(const ClusterState& state, const Job& job, Sums& sums) {
  if (state.FindJob(job.name) != &job) return Differs("name of job ", job.id.value);
  if (auto status = CheckTallies(job); !status.ok()) return status;
  if (auto status = CheckPendingClass(state, job, sums); !status.ok()) return status;
  if (auto status = CheckTimer(state, job); !status.ok()) return status;
  ++sums.jobs_by_state[static_cast<size_t>(job.status.state)];
  for (const Group& group : job.groups) sums.shapes[group.shape].insert(job.shared);
  Sums::OfQueue own;
  own.jobs = 1;
  own.active_jobs = Ended(job.status.state) ? 0 : 1;
  own.active_tasks = own.active_jobs * static_cast<int64_t>(job.tasks.size());
  const JobState s = job.status.state;
  if (InLine(s)) sums.queues[job.queue].line_waits += job.line.work;
  if (ListedAsPaused(job.status)) sums.paused_jobs.insert(job.id);
  own.held_jobs = s == JobState::kHeld || s == JobState::kSuspended ? 1 : 0;
  const PendingClass* c = state.pending().FindClass(job.pending_class);
  const bool wanting = own.active_jobs > 0 && own.held_jobs == 0 && (c == nullptr || !c->never);
  if (job.wanting != wanting) return Differs("whether job ", job.id.value, " is demand");
  for (uint32_t t = 0; t < job.tasks.size(); ++t) {
    if (auto status = AddTask(state, job, t, sums, own); !status.ok()) return status;
  }
  if (job.leaving > 0 && job.leaving == job.occupying) own.leaving_jobs = 1;
  if (own.running_jobs > 0) {
    sums.queues[job.queue].occupying_jobs.insert(HolderKeyOf(job));
    if (HasGroupPriorities(job)) sums.queues[job.queue].graded_jobs.insert(HolderKeyOf(job));
    if (AnyPreemptible(job)) sums.queues[job.queue].giving_jobs.insert(HolderKeyOf(job));
    const Time end = PlannedEnd(job);
    if (end != absl::InfiniteFuture()) sums.planned_ends.insert({end, job.id});
  }
  const bool by_user = state.queues().At(job.queue).spec.user_fairness != UserFairness::kNone;
  if (by_user && !own.allocated.IsZero()) sums.queues[job.queue].users[job.user] += own.allocated;
  for (QueueId id = job.queue;; id = state.queues().At(id).spec.parent) {
    QueueSums::ForEach([](const char*, auto& sum, const auto& more) { sum += more; },
                       sums.queues[id], own);
    if (id == kRootQueue) return absl::OkStatus();
  }
}

// The first sum that differs.
template <class Sums>
absl::Status CheckSums(const Sums& sums, const Sums& rebuilt, const std::string& name) {
  absl::Status status;
  Sums::ForEach(
      [&](const char* sum, const auto& is, const auto& should_be) {
        if (!(is == should_be)) status.Update(Differs(sum, " of ", name));
      },
      sums, rebuilt);
  return status;
}

absl::Status CheckQueue(const ClusterState& state, const Queue& queue, const Sums::OfQueue& sums) {
  const std::string name = absl::StrCat("queue ", queue.spec.name);
  if (state.FindQueue(queue.spec.name) != &queue) return Differs("name of ", name);
  if (auto status = CheckSums<QueueSums>(queue, sums, name); !status.ok()) return status;
  if (!std::equal(queue.occupying_jobs.begin(), queue.occupying_jobs.end(),
                  sums.occupying_jobs.begin(), sums.occupying_jobs.end()) ||
      !std::equal(queue.graded_jobs.begin(), queue.graded_jobs.end(), sums.graded_jobs.begin(),
                  sums.graded_jobs.end()) ||
      !std::equal(queue.giving_jobs.begin(), queue.giving_jobs.end(), sums.giving_jobs.begin(),
                  sums.giving_jobs.end())) {
    return Differs("occupying jobs of ", name);
  }
  if (queue.line_waits != sums.line_waits) return Differs("the line of ", name);
  if (queue.user_allocated != sums.users) return Differs("users of ", name);
  std::vector<QueueId> children;
  Resources kept;
  state.queues().ForEach([&](QueueId id, const Queue& other) {
    if (id == kRootQueue || other.spec.parent != queue.id) return;
    children.push_back(id);
    kept += KeptFor(other);
  });
  if (!(queue.kept == kept)) return Differs("kept below ", name);
  return children == queue.children ? absl::OkStatus() : Differs("children of ", name);
}

Resources CapacityOf(const Interner& interner, const Node& node) {
  const NodeSpec& spec = node.spec;
  Resources capacity;
  capacity[kCpu] = spec.cpu_millis;
  capacity[kMemory] = spec.memory_bytes;
  for (const NamedAmount& e : spec.extended) capacity[*interner.FindKind(e.name)] += e.amount;
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    capacity[*interner.FindKind(spec.devices[i].kind)] += Unusable(node, i) ? 0 : kWhole;
  }
  return capacity;
}

// True if something is being released, and its release leaves room for a task.
bool RoomSoon(const Node& node) { return AnyLeaves(node) && TaskRoomAfterRelease(node) > 0; }

bool DrainEnds(const ClusterState& state, const Node& node) {
  const Time deadline = DrainDeadline(node.status);
  return deadline > state.passed_time() && deadline != absl::InfiniteFuture();
}

absl::Status CheckFree(const ClusterState& state, const Node& node) {
  const NodeStatus& status = node.status;
  const bool backing_off = status.backoff_until > state.passed_time();
  if (state.backoffs().contains({status.backoff_until, node.id}) != backing_off) {
    return Differs("back-off of node ", node.spec.name);
  }
  if (state.drain_ends().contains({DrainDeadline(status), node.id}) != DrainEnds(state, node)) {
    return Differs("deadline of the drain of node ", node.spec.name);
  }
  if (state.Expels(node.id) != MayExpel(node)) {
    return Differs("what makes tasks leave node ", node.spec.name);
  }
  const bool full = TaskRoom(node) == 0;
  if (state.full_nodes().contains(node.id) != full) {
    return Differs("room for tasks of node ", node.spec.name);
  }
  const bool takes = TakesTasks(status) && !backing_off;
  const bool wanted = takes && !full;
  if (state.free().Has(node.id) != wanted) {
    return Differs("node ", node.spec.name, wanted ? " is not" : " is", " in the free index");
  }
  const auto count = [&](const DeviceUse& taken) {
    int devices = 0;
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      if (!Unusable(node, i) && taken.FreeOf(i) > 0) ++devices;
    }
    return devices;
  };
  const FreeIndex::Key soon{
      FreeIndex::Room(count(TakenAfterRelease(node)), FreeAfterRelease(node)[kCpu]), node.id};
  if (state.free().soon().contains(soon) != (takes && RoomSoon(node))) {
    return Differs("free after release of node ", node.spec.name);
  }
  if (!wanted) return absl::OkStatus();
  const int devices = count(TakenDevices(node));
  const Resources free = FreeOf(node);
  const FreeIndex::Key key{FreeIndex::Room(devices, free[kCpu]), node.id};
  if (!state.free().nodes().contains(key) || !(state.free().FreeOf(node.id) == free)) {
    return Differs("free of node ", node.spec.name);
  }
  return absl::OkStatus();
}

std::vector<TaskKey> Sorted(std::vector<TaskKey> tasks) {
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

absl::Status CheckNode(const ClusterState& state, const Node& node, const Sums::OfNode& sums) {
  const std::string name = absl::StrCat("node ", node.spec.name);
  if (state.FindNode(node.spec.name) != &node) return Differs("name of ", name);
  if (!(node.capacity == CapacityOf(state.interner(), node))) {
    return Differs("capacity of ", name);
  }
  if (auto status = CheckSums<NodeSums>(node, sums, name); !status.ok()) return status;
  if (Sorted(node.tasks) != Sorted(sums.tasks)) return Differs("tasks of ", name);
  if (Sorted(node.nominated) != Sorted(sums.nominated)) return Differs("nominated of ", name);
  return CheckFree(state, node);
}

absl::Status CheckImageHolders(const ClusterState& state) {
  std::map<ImageId, absl::btree_set<NodeId>> holders;
  state.nodes().ForEach([&](NodeId id, const Node& node) {
    for (ImageId image : node.images) holders[image].insert(id);
  });
  if (holders.size() != state.held_images()) return Differs("number of images that nodes hold");
  for (const auto& [image, nodes] : holders) {
    const absl::btree_set<NodeId>* listed = state.FindHolders(image);
    if (listed != nullptr && *listed == nodes) continue;
    return Differs("nodes that hold image ", image.value);
  }
  return absl::OkStatus();
}

absl::Status CheckPending(const ClusterState& state, const Sums& sums) {
  if (state.pending().job_count() != sums.pending_jobs) return Differs("number of pending jobs");
  absl::Status status;
  size_t ready = 0;
  state.pending().classes().ForEach([&](ClassId id, const PendingClass& c) {
    const auto found = sums.classes.find(id);
    const size_t jobs = found == sums.classes.end() ? 0 : found->second.size();
    if (jobs != c.jobs.size()) status.Update(Differs("jobs of pending class ", id.value));
    if (c.jobs.empty() || jobs == 0) return;
    if (c.blocked == nullptr) ++ready;
    const PendingIndex& pending = state.pending();
    const auto& list = c.blocked == nullptr               ? pending.ready()
                       : c.blocked->wake == WakeOn::kRoom ? pending.short_of_room()
                                                          : pending.held_back();
    const auto queue = list.find(c.demand.queue);
    if (queue == list.end()) {
      status.Update(Differs("pending class ", id.value, ": its queue is not listed"));
      return;
    }
    const auto listed = queue->second.find(ClassKeyOf(c.demand, *found->second.begin()));
    if (listed == queue->second.end() || listed->second != id) {
      status.Update(Differs("pending class ", id.value, " is not listed under its first job"));
    }
  });
  if (status.ok() && ready != state.pending().ready_count()) {
    return Differs("number of ready classes");
  }
  return status;
}

absl::Status CheckDependents(const ClusterState& state) {
  std::set<std::pair<JobId, JobId>> wanted;
  std::set<JobId> named;
  state.jobs().ForEach([&](JobId id, const Job& job) {
    for (const JobDependency& dependency : job.dependencies) {
      named.insert(dependency.job);
      if (job.status.starts == 0 && !Ended(job.status.state)) wanted.insert({dependency.job, id});
    }
  });
  for (JobId id : named) {
    for (JobId waiting : state.Dependents(id)) {
      if (wanted.erase({id, waiting}) == 0) return Differs("dependents of job ", id.value);
    }
  }
  return wanted.empty() ? absl::OkStatus()
                        : Differs("dependents of job ", wanted.begin()->first.value);
}

absl::Status CheckLists(const ClusterState& state, const Sums& sums) {
  const auto same = [](const auto& a, const auto& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  if (!same(state.planned_ends(), sums.planned_ends)) return Differs("planned ends");
  if (!same(state.nominated_jobs(), sums.nominated_jobs)) return Differs("nominated jobs");
  if (!same(state.releasing(), sums.releasing)) return Differs("releasing tasks");
  if (!same(state.resuming(), sums.resuming)) return Differs("tasks that wait for their CPU");
  if (!same(state.paused_jobs(), sums.paused_jobs)) return Differs("paused jobs");
  if (!state.affinity().Equals(state.jobs())) return Differs("affinity");
  return absl::OkStatus();
}

// Parents, children and nodes, recomputed from the names in the specifications and the nodes'
// domains.
absl::Status CheckHyperNode(const ClusterState& state, const HyperNode& domain,
                            HyperNodeId parent) {
  const std::string& name = domain.spec.name;
  std::map<std::string, HyperNodeId> children;
  ForEachChildName(domain.spec, [&](const std::string& child) {
    const HyperNode* found = state.FindHyperNode(child);
    if (found != nullptr) children.emplace(child, found->id);
  });
  if (parent != domain.parent || parent != state.ClaimantOf(name))
    return Differs("parent of HyperNode ", name);
  const auto same = [](const auto& named, HyperNodeId id) { return named.second == id; };
  if (!std::equal(children.begin(), children.end(), domain.children.begin(), domain.children.end(),
                  same)) {
    return Differs("children of HyperNode ", name);
  }
  const ClusterState::TierUse use = state.TierNamed(domain.spec.kind, domain.spec.tier_name);
  if (!domain.spec.tier_name.empty() && use.tier != domain.spec.tier) {
    return Differs("tier name of HyperNode ", name);
  }
  return absl::OkStatus();
}

absl::Status CheckTopology(const ClusterState& state) {
  std::map<HyperNodeId, std::vector<NodeId>> nodes;
  absl::Status status;
  state.nodes().ForEach([&](NodeId id, const Node& node) {
    std::set<std::string> kinds;
    for (HyperNodeId domain : node.domains) {
      nodes[domain].push_back(id);
      const HyperNode* found = state.hyper_nodes().Find(domain);
      if (found == nullptr || !kinds.insert(found->spec.kind).second ||
          !std::is_sorted(node.domains.begin(), node.domains.end())) {
        status.Update(Differs("domains of node ", node.spec.name));
      }
    }
  });
  std::map<std::string, HyperNodeId> claimants;
  state.hyper_nodes().ForEach([&](HyperNodeId id, const HyperNode& domain) {
    ForEachChildName(domain.spec, [&](const std::string& child) { claimants.emplace(child, id); });
  });
  state.hyper_nodes().ForEach([&](HyperNodeId id, const HyperNode& domain) {
    if (status.ok()) status = CheckHyperNode(state, domain, claimants[domain.spec.name]);
    if (domain.nodes != nodes[id]) status.Update(Differs("nodes of HyperNode ", domain.spec.name));
  });
  return status;
}

// CheckFree finds each node under its current values; this checks that the indexes contain nothing
// else. A listed time that no job or node has is an extra entry, too.
absl::Status CheckNothingElse(const ClusterState& state) {
  size_t leaving = 0, jobs_due = 0, jobs_short = 0, backing_off = 0, full = 0, drain_ends = 0,
         expelling = 0;
  state.nodes().ForEach([&](NodeId, const Node& node) {
    leaving += MayHaveTasks(state, node) && RoomSoon(node) ? 1 : 0;
    full += TaskRoom(node) == 0 ? 1 : 0;
    drain_ends += DrainEnds(state, node) ? 1 : 0;
    expelling += MayExpel(node) ? 1 : 0;
    backing_off += node.status.backoff_until > state.passed_time() ? 1 : 0;
  });
  state.jobs().ForEach([&](JobId, const Job& job) {
    jobs_due += job.has_timer ? 1 : 0;
    jobs_short += ShortSince(job) != absl::InfiniteFuture() ? 1 : 0;
  });
  if (state.free().soon().size() != leaving) {
    return Differs("free after release lists ", state.free().soon().size(), " nodes, not ",
                   leaving);
  }
  if (state.timers().size() != jobs_due) return Differs("number of timers");
  if (state.short_jobs().size() != jobs_short) return Differs("number of jobs below their minimum");
  if (state.backoffs().size() != backing_off) return Differs("number of back-offs");
  if (state.drain_ends().size() != drain_ends) return Differs("number of deadlines of drains");
  if (state.expelling_nodes().size() != expelling) {
    return Differs("number of nodes that tasks may have to leave");
  }
  if (state.full_nodes().size() != full) return Differs("number of full nodes");
  return absl::OkStatus();
}

absl::Status CheckRuns(const ClusterState& state) {
  RunHistory again;
  state.run_history().ForEach([&](RunId id, const FinishedRun& run) { again.Add(id, run); });
  return again.SameAs(state.run_history()) ? absl::OkStatus() : Differs("run history");
}

absl::Status CheckAccess(const ClusterState& state) {
  const AccessChange rules = state.access().AsChange();
  AccessRules again;
  if (!again.Check(rules).ok()) return Differs("access rules");
  again.Apply(rules);
  for (const Grant& grant : rules.grant) {
    if (state.queues().Find(grant.queue) == nullptr) return Differs("queue of a grant");
  }
  return again == state.access() ? absl::OkStatus() : Differs("access rules");
}

absl::Status CheckPriorityClasses(const ClusterState& state) {
  const PriorityClassChange classes = state.priority_classes().AsChange();
  PriorityClasses again;
  if (!again.Check(classes).ok()) return Differs("priority classes");
  again.Apply(classes);
  return again == state.priority_classes() ? absl::OkStatus() : Differs("priority classes");
}

absl::Status CheckShapes(const ClusterState& state, const Sums& sums) {
  if (state.interner().shapes().size() != sums.shapes.size()) return Differs("shapes in use");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckConsistency(const ClusterState& state) {
  Sums sums;
  absl::Status status;
  state.jobs().ForEach([&](JobId, const Job& job) {
    if (status.ok()) status = AddJob(state, job, sums);
  });
  if (!status.ok()) return status;
  state.queues().ForEach([&](QueueId id, const Queue& queue) {
    if (status.ok()) status = CheckQueue(state, queue, sums.queues[id]);
  });
  Resources free, capacity;
  size_t listed = 0;
  int64_t shareable = 0, faulty = 0;
  state.nodes().ForEach([&](NodeId id, const Node& node) {
    if (status.ok()) status = CheckNode(state, node, sums.nodes[id]);
    bool shares = false;
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      shares = shares || (!Unusable(node, i) && node.spec.devices[i].max_tasks > 1);
    }
    shareable += shares ? 1 : 0;
    faulty += node.status.faults.thousandths > 0 ? 1 : 0;
    if (node.status.state == NodeState::kReady) capacity += node.capacity;
    if (!status.ok() || !state.free().Has(id)) return;
    free += FreeOf(node);
    ++listed;
  });
  if (!status.ok()) return status;
  if (!(free == state.free().total()) || listed != state.free().nodes().size()) {
    return Differs("sum of the free index");
  }
  if (!(capacity == state.capacity())) return Differs("capacity");
  if (shareable != state.shareable_nodes()) return Differs("number of shareable nodes");
  if (faulty != state.faulty_nodes()) return Differs("number of nodes that have failed");
  if (auto images = CheckImageHolders(state); !images.ok()) return images;
  for (size_t s = 0; s < kJobStates; ++s) {
    if (sums.jobs_by_state[s] != state.jobs_in(static_cast<JobState>(s))) {
      return Differs("number of jobs in state ", s);
    }
  }
  for (size_t s = 0; s < kTaskStates; ++s) {
    if (sums.tasks_by_state[s] != state.tasks_in(static_cast<TaskState>(s))) {
      return Differs("number of tasks in state ", s);
    }
  }
  status.Update(CheckPending(state, sums));
  status.Update(CheckDependents(state));
  status.Update(CheckShapes(state, sums));
  status.Update(CheckNothingElse(state));
  status.Update(CheckLists(state, sums));
  status.Update(CheckTopology(state));
  status.Update(CheckRuns(state));
  status.Update(CheckAccess(state));
  status.Update(CheckPriorityClasses(state));
  return status;
}

}  // namespace berth
