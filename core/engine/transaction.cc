#include "core/engine/transaction.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/model/apply.h"
#include "core/model/pauses.h"
#include "core/model/rank_order.h"
#include "core/model/release.h"
#include "core/model/transitions.h"

namespace berth {

Transaction::Transaction(ClusterState& state, Time now)
    : state_(state),
      now_(now),
      editor_(state, EditMode::kTentative),
      first_class_(state.pending().next_class()) {
  editor_.RememberClasses();
}

Transaction::~Transaction() { RollbackTo({}); }

Transaction::Mark Transaction::mark() const {
  BERTH_CHECK(placed_.empty());
  return {.edits = edits_.size(), .decisions = decisions_.size()};
}

void Transaction::RollbackTo(const Mark& mark) {
  BERTH_CHECK(mark.edits <= edits_.size() && mark.decisions <= decisions_.size());
  editor_.HoldOrder();
  while (edits_.size() > mark.edits) UndoLast();
  editor_.ReleaseOrder();
  if (decisions_.size() > mark.decisions) ++reservation_version_;
  for (size_t i = mark.decisions; i < decisions_.size(); ++i) {
    if (std::holds_alternative<TasksBound>(decisions_[i])) --binds_;
  }
  decisions_.erase(decisions_.begin() + static_cast<ptrdiff_t>(mark.decisions), decisions_.end());
  placed_.clear();
  if (mark.edits > 0) {
    editor_.Sync();
  } else {
    editor_.RestoreClasses();
  }
}

void Transaction::UndoLast() {
  const Edited kind = edits_.back().kind;
  edits_.pop_back();
  if (kind == Edited::kTask) {
    constexpr size_t kAhead = 8;
    if (tasks_.size() > kAhead) editor_.Prefetch(tasks_[tasks_.size() - kAhead].key.job);
    editor_.SetTask(tasks_.back().key, tasks_.back().task);
    tasks_.pop_back();
  } else if (kind == Edited::kStatus) {
    editor_.SetJobStatus(statuses_.back().job, std::move(statuses_.back().status));
    statuses_.pop_back();
  } else if (kind == Edited::kStart) {
    editor_.SetGangStart(starts_.back().job, starts_.back().start);
    starts_.pop_back();
  } else if (kind == Edited::kNode) {
    editor_.SetNodeStatus(nodes_.back().node, std::move(nodes_.back().status));
    nodes_.pop_back();
  } else if (kind == Edited::kReservation) {
    editor_.SetReservation(reservations_.back().job, std::move(reservations_.back().reservation));
    reservations_.pop_back();
  } else if (kind == Edited::kLift) {
    editor_.ReattachTask(lifted_.back());
    lifted_.pop_back();
  } else {
    editor_.SetQueueUsage(usages_.back().queue, std::move(usages_.back().usage));
    usages_.pop_back();
  }
}

void Transaction::SetTask(TaskKey key, const Task& task) {
  tasks_.push_back({key, editor_.SetTask(key, task)});
  Note(Edited::kTask);
}

void Transaction::SetStatus(JobId job, JobStatus status) {
  statuses_.push_back({job, editor_.SetJobStatus(job, std::move(status))});
  Note(Edited::kStatus);
}

void Transaction::SetNode(NodeId node, NodeStatus status) {
  nodes_.push_back({node, state_.nodes().At(node).status});
  editor_.SetNodeStatus(node, std::move(status));
  Note(Edited::kNode);
}

void Transaction::Place(JobId job, const Placement& placement) {
  const Task& before = state_.jobs().At(job).tasks[placement.task];
  BERTH_CHECK(Waits(before.state));
  bound_nominated_ |= Reserves(before.state);
  SetTask({job, placement.task}, BoundTask(before, placement, now_));
  placed_.push_back(placement);
}

void Transaction::UnplaceTo(size_t count) {
  BERTH_CHECK(count <= placed_.size());
  if (count == placed_.size()) return;
  editor_.HoldOrder();
  for (; placed_.size() > count; placed_.pop_back()) UndoLast();
  editor_.ReleaseOrder();
}

void Transaction::BindPlaced(JobId job, bool gang) {
  BERTH_CHECK(!placed_.empty());
  const JobStatus& status = state_.jobs().At(job).status;
  const uint32_t epoch = status.epoch + 1;
  std::vector<FormerPlace> former;  // Place added to both lists at the same time
  former.reserve(placed_.size());
  for (size_t i = tasks_.size() - placed_.size(); i < tasks_.size(); ++i) {
    former.push_back(FormerOf(tasks_[i].task));
  }
  const auto ranks = RanksFor(state_, state_.jobs().At(job), gang, epoch, placed_, former);
  for (size_t i = 0; i < placed_.size(); ++i) {
    editor_.SetMemberRank({job, placed_[i].task}, ranks[i]);
  }
  ++binds_;
  starts_.push_back({job, editor_.SetGangStart(job, AfterBind(status, gang, epoch, now_))});
  Note(Edited::kStart);
  // At once, because they are large and may be many; unused memory costs nothing.
  constexpr size_t kMany = 64, kMost = 1 << 16;
  if (decisions_.size() == kMany) decisions_.reserve(kMost);
  decisions_.push_back(
      TasksBound{.job = job, .gang = gang, .placements = std::move(placed_), .epoch = epoch});
  placed_.clear();
}

void Transaction::NominatePlaced(JobId job) {
  BERTH_CHECK(!placed_.empty());
  const std::vector<Placement> places = std::move(placed_);
  placed_.clear();
  for (const Placement& place : places) {
    const TaskKey key{job, place.task};
    Task waiting = state_.jobs().At(job).tasks[place.task];
    waiting.state = TaskState::kPending;
    waiting.devices = DeviceSet{};
    --waiting.attempt;
    SetTask(key, waiting);
  }
  Decide(TasksNominated{.job = job, .placements = places});
}

void Transaction::Vanish(JobId job, absl::Span<const uint32_t> tasks) {
  for (uint32_t index : tasks) {
    Task gone = state_.jobs().At(job).tasks[index];
    BERTH_CHECK(Occupies(gone.state) || Reserves(gone.state));
    gone = UnnominatedTask(gone, now_);
    gone.moves = false;
    SetTask({job, index}, gone);
  }
}

void Transaction::LetGo(TaskKey key) {
  const Task before = state_.jobs().At(key.job).tasks[key.task];
  BERTH_CHECK(before.state == TaskState::kReleasing);
  Task gone = UnnominatedTask(before, now_);
  gone.moves = false;
  if (before.moves) {
    gone = NominatedTask(gone, {key.task, before.next_node, before.next_devices}, now_);
  }
  SetTask(key, gone);
}

void Transaction::Freeze(JobId job, absl::Span<const uint32_t> tasks) {
  for (uint32_t index : tasks) {
    const Task& before = state_.jobs().At(job).tasks[index];
    BERTH_CHECK(before.state == TaskState::kRunning);
    Task frozen = FrozenTask(before);
    const bool can = state_.nodes().At(before.node).spec.checkpoints_devices;
    frozen.devices_lent |= can && MayLend(state_, state_.jobs().At(job), index);
    SetTask({job, index}, frozen);
  }
}

void Transaction::Lift(absl::Span<const TaskKey> tasks) {
  constexpr size_t kAhead = 8;
  editor_.HoldOrder();
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (i + kAhead < tasks.size()) editor_.Prefetch(tasks[i + kAhead].job);
    editor_.DetachTask(tasks[i]);
    lifted_.push_back(tasks[i]);
    Note(Edited::kLift);
  }
  editor_.ReleaseOrder();
}

void Transaction::Decide(EventBody decision) {
  BERTH_CHECK(placed_.empty());
  std::visit(
      [this](const auto& body) {
        if constexpr (requires { this->Enact(body); }) {
          Enact(body);
        } else {
          BERTH_CHECK(false);  // a fact from outside, or TasksBound: see Place
        }
      },
      decision);
  decisions_.push_back(std::move(decision));
}

void Transaction::Enact(const TasksStarted& decision) {
  for (uint32_t index : decision.tasks) {
    const TaskKey key{decision.job, index};
    SetTask(key, StartedTask(state_.jobs().At(decision.job).tasks[index], now_));
  }
}

void Transaction::Enact(const TasksPaused& decision) {
  const Job& job = state_.jobs().At(decision.job);
  for (uint32_t index : decision.tasks) {
    SetTask({decision.job, index}, PausingTask(job.tasks[index]));
  }
  SetStatus(decision.job, StoppedClock(job.status, decision, now_));
}

void Transaction::Enact(const TasksResumed& decision) {
  const Job& job = state_.jobs().At(decision.job);
  for (uint32_t index : decision.tasks) {
    const Task& task = job.tasks[index];
    SetTask({decision.job, index}, decision.waits ? ResumingTask(task) : ResumedTask(task));
  }
  if (NonePaused(job)) SetStatus(decision.job, ResumedClock(job.status, now_));
}

void Transaction::Enact(const TasksReleased& decision) {
  for (uint32_t index : decision.tasks) {
    SetTask({decision.job, index}, AfterRelease(state_, decision, index, now_));
  }
}

void Transaction::Enact(const TasksRequeued& decision) {
  for (uint32_t index : decision.tasks) {
    const TaskKey key{decision.job, index};
    SetTask(key, RequeuedTask(state_.jobs().At(decision.job).tasks[index], now_));
  }
}

void Transaction::Enact(const JobStatusChanged& decision) {
  SetStatus(decision.job, decision.status);
}

void Transaction::Enact(const NodeRefused& decision) {
  SetNode(decision.id, AfterRefusal(state_.nodes().At(decision.id).status, decision, now_));
}

void Transaction::Enact(const TasksNominated& decision) {
  for (const Placement& place : decision.placements) {
    const TaskKey key{decision.job, place.task};
    Task task = NominatedTask(state_.jobs().At(decision.job).tasks[place.task], place, now_);
    task.claimed = false;
    SetTask(key, task);
  }
  if (!decision.claims) return;
  const Job& job = state_.jobs().At(decision.job);
  for (const uint32_t task : TasksToClaim(job)) {
    SetTask({decision.job, task}, ClaimedTask(job.tasks[task]));
  }
}

void Transaction::Enact(const TasksUnnominated& decision) {
  for (uint32_t index : decision.tasks) {
    const TaskKey key{decision.job, index};
    SetTask(key, UnnominatedTask(state_.jobs().At(decision.job).tasks[index], now_));
  }
}

void Transaction::Enact(const JobReserved& decision) {
  const auto before = state_.reservations().find(decision.job);
  const bool had = before != state_.reservations().end();
  reservations_.push_back({decision.job, had ? before->second : Reservation{}});
  editor_.SetReservation(decision.job, decision.reservation);
  ++reservation_version_;
  Note(Edited::kReservation);
}

void Transaction::Enact(const UsageCharged& decision) {
  state_.queues().ForEach([&](QueueId id, const Queue& queue) {
    usages_.push_back({id, queue.usage});
    Note(Edited::kUsage);
  });
  for (const UsageBefore& before : usages_) {
    const Queue& queue = state_.queues().At(before.queue);
    editor_.SetQueueUsage(before.queue, ChargedUsage(state_.interner(), queue, decision));
  }
}

void Transaction::Enact(const NodeSteered& decision) {
  NodeStatus status = state_.nodes().At(decision.id).status;
  status.cordoned = decision.cordoned;
  status.draining = decision.draining;
  status.drain = decision.drain;
  status.reason = decision.reason;
  SetNode(decision.id, std::move(status));
}

bool Transaction::Adoptable() const {
  return !bound_nominated_ && !decisions_.empty() &&
         binds_ == static_cast<int64_t>(decisions_.size());
}

std::vector<EventBody> Transaction::Adopt() {
  BERTH_CHECK(placed_.empty() && Adoptable());
  editor_.Sync();
  editor_.KeepClasses(first_class_);
  StateEditor facts(state_);
  for (const EventBody& decision : decisions_) {
    const auto& bound = std::get<TasksBound>(decision);
    BERTH_CHECK(CheckBound(state_, bound, now_).ok());
    AdoptBound(facts, bound);
  }
  edits_.clear();
  tasks_.clear();
  starts_.clear();
  BERTH_CHECK(lifted_.empty() && statuses_.empty() && nodes_.empty() && reservations_.empty() &&
              usages_.empty());
  binds_ = 0;
  return std::exchange(decisions_, {});
}

std::vector<EventBody> Transaction::Commit() {
  BERTH_CHECK(placed_.empty());
  std::vector<EventBody> decisions = std::move(decisions_);
  decisions_.clear();
  RollbackTo({});
  return decisions;
}

}  // namespace berth
