// The usage fold against the model: after every event its reduced state holds what the state holds,
// and its figures are those that an oracle gets from the state alone. The same after any reload.
#include "core/history/usage_fold.h"

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/transitions.h"
#include "tests/property/model_random.h"
#include "tests/property/naive_usage.h"

namespace berth {
namespace {

constexpr uint64_t kSeeds = 60;
constexpr int kEvents = 500;

std::string LabelOf(const std::map<std::string, std::string>& labels) {
  const auto found = labels.find("label");
  return found == labels.end() ? "" : found->second;
}

using Amounts = std::map<std::string, int64_t>;  // without zeros
Amounts Named(const Interner& interner, const Resources& resources) {
  Amounts named;
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    if (resources[kind] != 0) named[interner.KindName(kind)] = resources[kind];
  }
  return named;
}

// What Queue::allocated and pending are, from the fold's jobs.
struct QueueFold {
  Resources allocated, pending;
};
std::map<std::string, QueueFold> QueueSumsOf(const UsageFold& fold) {
  std::map<std::string, QueueFold> sums;
  fold.jobs().ForEach([&](JobId, const JobUsage& job) {
    QueueFold own;
    for (size_t g = 0; g < job.pending.size(); ++g) {
      const Group& group = job.shared->groups[g];
      own.pending += fold.interner().Shape(group.shape).resources.Times(job.pending[g]);
    }
    if (job.places != nullptr) {
      for (const auto& [index, placed] : job.places->tasks) {
        const Group& group = job.shared->groups[GroupOf(job.shared->groups, index)];
        own.allocated += fold.interner().Shape(group.shape).resources;
      }
    }
    std::string path = fold.FindQueue(job.queue)->path;
    while (true) {
      sums[path].allocated += own.allocated;
      sums[path].pending += own.pending;
      if (path.empty()) break;
      const size_t slash = path.rfind('/');
      path = slash == std::string::npos ? "" : path.substr(0, slash);
    }
  });
  return sums;
}

void RequireSameQueues(const ClusterState& state, const UsageFold& fold) {
  std::map<std::string, QueueFold> sums = QueueSumsOf(fold);
  state.queues().ForEach([&](QueueId id, const Queue& queue) {
    const QueueFold& own = sums[PathTextOf(state, id)];
    INFO("queue " << queue.spec.name);
    REQUIRE(Named(fold.interner(), own.allocated) == Named(state.interner(), queue.allocated));
    REQUIRE(Named(fold.interner(), own.pending) == Named(state.interner(), queue.pending));
  });
}

void RequireSameNodes(const ClusterState& state, const UsageFold& fold) {
  REQUIRE(state.nodes().size() == fold.nodes().size());
  state.nodes().ForEach([&](NodeId id, const Node& node) {
    const NodeUsage* mine = fold.FindNode(id);
    REQUIRE(mine != nullptr);
    INFO("node " << node.spec.name);
    REQUIRE(Named(fold.interner(), mine->allocated) == Named(state.interner(), node.allocated));
    REQUIRE(Named(fold.interner(), mine->reserved) == Named(state.interner(), node.reserved));
    REQUIRE(mine->devices_used == node.devices_used);
    REQUIRE(mine->devices_reserved == node.devices_reserved);
    REQUIRE(mine->lent == node.lent);
    REQUIRE(mine->awaited == node.awaited);
    REQUIRE(mine->status.state == node.status.state);
    REQUIRE(mine->status.drain == node.status.drain);
    REQUIRE(TakesTasks(mine->status) == TakesTasks(node.status));
    REQUIRE(mine->spec.devices == node.spec.devices);
    REQUIRE(mine->tasks.size() == node.tasks.size());
    REQUIRE(mine->nominated.size() == node.nominated.size());
    for (const CapacityShare& share : mine->split) {
      const auto part = [&](CapacityPart one) { return share.parts[static_cast<size_t>(one)]; };
      REQUIRE(part(CapacityPart::kTotal) + part(CapacityPart::kOvercommitted) ==
              part(CapacityPart::kHeld) + part(CapacityPart::kReserved) +
                  part(CapacityPart::kFree) + part(CapacityPart::kFragmented) +
                  part(CapacityPart::kCordoned) + part(CapacityPart::kDown) +
                  part(CapacityPart::kUnhealthy));
    }
  });
}

void RequireSameJobs(const ClusterState& state, const UsageFold& fold) {
  size_t active = 0;
  state.jobs().ForEach([&](JobId id, const Job& job) {
    const JobUsage* mine = fold.FindJob(id);
    REQUIRE((mine == nullptr) == Ended(job.status.state));
    if (mine == nullptr) return;
    ++active;
    REQUIRE(mine->state == job.status.state);
    REQUIRE(mine->life.evictions == job.status.evictions);
    REQUIRE(mine->life.starts == job.status.starts);
    for (uint32_t index = 0; index < job.tasks.size(); ++index) {
      const Task& task = job.tasks[index];
      const bool placed = Occupies(task.state) || Reserves(task.state) || task.moves;
      const PlacedTask* found = fold.FindTask({id, index});
      INFO("task " << index << " of job " << job.name);
      REQUIRE(placed == (found != nullptr));
      if (!placed) continue;
      REQUIRE(found->task.state == task.state);
      REQUIRE(found->task.node == task.node);
      REQUIRE(found->task.devices == task.devices);
      REQUIRE(found->task.pause == task.pause);
      REQUIRE(found->task.devices_lent == task.devices_lent);
      REQUIRE(found->task.moves == task.moves);
      REQUIRE(found->task.requeue == task.requeue);
    }
  });
  REQUIRE(active == fold.jobs().size());
}

// What a server stores of a fold, and what the fold told it.
struct Stored {
  std::map<QueueId, QueueSpec> queues;
  std::map<JobId, JobSpec> jobs;
  std::map<JobId, std::map<std::string, std::string>> labels;
};

UsageOptions OptionsForTest() { return {.account_of = LabelOf, .keys = 1000}; }

class Folded {
 public:
  explicit Folded(Time now) : fold_(std::in_place, OptionsForTest()), last_ms_(MsOf(now)) {
    fold_->Begin(now);
  }

  const UsageFold& fold() const { return *fold_; }

  void Take(const Event& event) {
    if (const auto* queue = std::get_if<QueueCreated>(&event.body)) {
      stored_.queues[queue->id] = queue->spec;
    }
    if (const auto* job = std::get_if<JobSubmitted>(&event.body)) {
      stored_.jobs[job->id] = ReducedSpec(job->spec);
    }
    if (const auto* job = std::get_if<JobUpdated>(&event.body)) {
      stored_.labels[job->id] = job->labels;
    }
    const absl::Status applied = fold_->Apply(event);
    INFO(std::string(applied.message()));
    REQUIRE(applied.ok());
    if (const auto* queue = std::get_if<QueueDeleted>(&event.body)) stored_.queues.erase(queue->id);
  }

  // `before`: the state until that time.
  void Elapse(const ClusterState& before, Time now) {
    const int64_t now_ms = std::max(MsOf(now), last_ms_);
    const NaiveRates rates = UsageRates(before);
    expected_.Add(rates, last_ms_, now_ms, kMsPerHour);
    expected_.Add(ByQueue(rates), last_ms_, now_ms, kMsPerMinute);
    const NaiveRates capacity = CapacityRates(before);
    for (const int64_t width : {kMsPerMinute, kMsPerHour}) {
      expected_capacity_.Add(capacity, last_ms_, now_ms, width);
    }
    last_ms_ = now_ms;
  }

  void ExpectLoss(const NaiveRates& amounts, int64_t work_ms) {
    for (const auto& [figure, amount] : amounts) {
      expected_.AddOnce(figure, AmountTime(amount) * work_ms, last_ms_, kMsPerHour);
    }
    for (const auto& [figure, amount] : ByQueue(amounts)) {
      expected_.AddOnce(figure, AmountTime(amount) * work_ms, last_ms_, kMsPerMinute);
    }
  }

  void TakeChanges() {
    HistoryChanges changes = fold_->TakeChanges();
    for (const UsageRow& row : changes.usage) Keep(row);
    for (const CapacityRow& row : changes.capacity) Keep(row);
    for (EndedJobFacts& job : changes.ended) ended_.push_back(std::move(job));
  }

  // As after a restart of the server.
  void Reload() {
    TakeChanges();
    const UsageFold& old = *fold_;
    UsageFold fresh(OptionsForTest());
    absl::Status status;
    for (const auto& [id, spec] : stored_.queues) status.Update(fresh.LoadQueue(id, spec));
    old.nodes().ForEach([&](NodeId id, const NodeUsage& node) {
      status.Update(fresh.LoadNode(id, node.spec, node.status));
    });
    old.jobs().ForEach([&](JobId id, const JobUsage& job) {
      status.Update(fresh.LoadJob(id, stored_.jobs.at(id), job.submit));
    });
    old.jobs().ForEach([&](JobId id, const JobUsage& job) {
      if (job.places == nullptr) return;
      for (const auto& [index, placed] : job.places->tasks) {
        status.Update(fresh.LoadPlacedTask({id, index}, placed));
      }
    });
    old.jobs().ForEach([&](JobId id, const JobUsage& job) {
      const auto labels = stored_.labels.find(id);
      status.Update(fresh.LoadJobUsage(id, old.StoredOf(job),
                                       labels == stored_.labels.end() ? nullptr : &labels->second));
    });
    fresh.Begin(old.now());
    for (const auto& [name, row] : open_usage_) status.Update(fresh.LoadRow(row));
    for (const auto& [name, row] : open_capacity_) status.Update(fresh.LoadRow(row));
    status.Update(fresh.FinishRows());
    INFO(std::string(status.message()));
    REQUIRE(status.ok());
    fold_.emplace(std::move(fresh));
  }

  void RequireSums() {
    while (!fold_->PassTime(TimeOfMs(last_ms_), 3)) TakeChanges();
    TakeChanges();
    NaiveSums::Sums sums = closed_, capacity = closed_capacity_;
    for (const auto& [name, row] : open_usage_) AddRow(row, sums);
    for (const auto& [name, row] : open_capacity_) AddRow(row, capacity);
    RequireEqual(sums, expected_.sums());
    RequireEqual(capacity, expected_capacity_.sums());
  }
  const std::vector<EndedJobFacts>& ended() const { return ended_; }
  const NaiveSums& expected() const { return expected_; }

 private:
  static void RequireEqual(const NaiveSums::Sums& a, const NaiveSums::Sums& b) {
    for (const auto* both : {&a, &b}) {
      for (const auto& [figure, sum] : *both) {
        const auto of = [&](const NaiveSums::Sums& sums) {
          const auto found = sums.find(figure);
          return found == sums.end() ? AmountTime(0) : found->second;
        };
        INFO(std::get<0>(figure.first)
             << " from " << std::get<1>(figure.first) << " queue " << figure.second.key.queue
             << " user " << figure.second.key.user << " " << figure.second.resource << " "
             << figure.second.model << " figure " << figure.second.figure);
        REQUIRE(static_cast<double>(of(a)) == static_cast<double>(of(b)));
        REQUIRE(of(a) == of(b));
      }
    }
  }

  static NaiveRates ByQueue(const NaiveRates& rates) {
    NaiveRates by_queue;
    for (const auto& [figure, rate] : rates) {
      NaiveFigure of{
          .key = {.queue = figure.key.queue, .user = {}, .account = {}, .priority_class = {}},
          .model = {},
          .resource = figure.resource,
          .figure = figure.figure};
      by_queue[of] += rate;
    }
    return by_queue;
  }

  template <class Row>
  static int64_t WidthOf(const Row& row) {
    return row.period == HistoryPeriod::kMinute ? kMsPerMinute : kMsPerHour;
  }
  static UsageKey KeyOfRow(const UsageRow& row) { return row.key; }
  static UsageKey KeyOfRow(const CapacityRow&) { return {}; }

  template <class Row>
  void AddRow(Row row, NaiveSums::Sums& sums) const {
    for (auto& [resource, meter] : row.meters) {
      if (row.open) meter.AddUp(last_ms_);
      for (size_t i = 0; i < meter.sum.size(); ++i) {
        if (meter.sum[i] == 0) continue;
        const NaiveFigure figure{
            .key = KeyOfRow(row), .model = row.model, .resource = resource, .figure = i};
        const auto added = sums.emplace(
            std::pair(NaiveSums::Period{WidthOf(row), row.begin_ms}, figure), meter.sum[i]);
        REQUIRE(added.second);  // a closed row is yielded once
      }
    }
  }

  template <class Row, class Open>
  void KeepRow(const Row& row, Open& open, NaiveSums::Sums& closed) {
    const auto name = std::tuple(row.period, KeyOfRow(row), row.model);
    if (!row.open) {
      AddRow(row, closed);
      const auto found = open.find(name);
      if (found != open.end() && found->second.begin_ms == row.begin_ms) open.erase(found);
      return;
    }
    open.erase(name);
    if (!row.meters.empty()) open.emplace(name, row);
  }
  void Keep(const UsageRow& row) { KeepRow(row, open_usage_, closed_); }
  void Keep(const CapacityRow& row) { KeepRow(row, open_capacity_, closed_capacity_); }

  std::optional<UsageFold> fold_;
  Stored stored_;
  int64_t last_ms_;
  NaiveSums expected_, expected_capacity_;
  NaiveSums::Sums closed_, closed_capacity_;
  std::map<std::tuple<HistoryPeriod, UsageKey, std::string>, UsageRow> open_usage_;
  std::map<std::tuple<HistoryPeriod, UsageKey, std::string>, CapacityRow> open_capacity_;
  std::vector<EndedJobFacts> ended_;
};

// Models, classes and accounts, of which the random events have none.
EventBody Varied(EventBody body) {
  if (auto* node = std::get_if<NodeRegistered>(&body)) {
    for (Device& device : node->spec.devices) {
      device.model = device.uuid.back() % 2 == 0 ? "H100" : "B200";
    }
  }
  if (auto* job = std::get_if<JobSubmitted>(&body)) {
    const uint64_t id = job->id.value;
    if (id % 2 == 0) job->spec.labels["label"] = "account" + std::to_string(id % 3);
    if (id % 3 == 0) job->spec.priority_class = "high";
    if (id % 4 == 0) job->spec.saved_exit_codes = {0, 85};
  }
  return body;
}

// Work that is lost when an attempt is cut, from the tasks before and after each event.
class LossOracle {
 public:
  void Before(const ClusterState& state) {
    before_.clear();
    state.jobs().ForEach([&](JobId id, const Job& job) {
      for (uint32_t index = 0; index < job.tasks.size(); ++index) {
        if (Occupies(job.tasks[index].state)) before_[{id, index}] = job.tasks[index];
      }
    });
    saved_.clear();
    for (const auto& [key, task] : before_) {
      saved_[key] = SavedAt(state.jobs().At(key.job), key.task);
    }
  }

  void After(const ClusterState& state, const Event& event, Folded& folded) {
    if (const auto* release = std::get_if<TasksReleased>(&event.body)) NoteRelease(*release);
    for (const auto& [key, task] : before_) {
      const Job& job = state.jobs().At(key.job);
      const Task& now = job.tasks[key.task];
      NoteFreeze(key, task, now, event.time);
      if (!Occupies(now.state)) Cut(state, key, task, now, event, folded);
    }
    const auto* bound = std::get_if<TasksBound>(&event.body);
    if (bound == nullptr) return;
    broken_by_[bound->job] = Loss::kNone;
    for (const Placement& placement : bound->placements) {
      bound_[{bound->job, placement.task}] = event.time;
      frozen_.erase({bound->job, placement.task});
      stopped_.erase({bound->job, placement.task});
    }
  }

 private:
  struct Interval {
    int64_t from_ms, to_ms;
  };

  void NoteRelease(const TasksReleased& release) {
    for (const uint32_t task : release.tasks) {
      Loss& loss = stopped_[{release.job, task}];
      loss = Loss::kNone;
      if (IsEviction(release.reason)) loss = Loss::kPreemption;
      switch (release.reason) {
        case ReleaseReason::kDrain:
        case ReleaseReason::kPrepareTimeout:
          loss = Loss::kFault;
          break;
        case ReleaseReason::kRestart:
        case ReleaseReason::kGangBroken:
        case ReleaseReason::kGangExpired:
          loss = broken_by_[release.job];
          break;
        default:
          break;
      }
    }
  }

  void NoteFreeze(TaskKey key, const Task& before, const Task& now, Time time) {
    if (!Frozen(before) && Frozen(now)) frozen_[key].push_back({MsOf(time), INT64_MAX});
    if (Frozen(before) && !Frozen(now)) frozen_[key].back().to_ms = MsOf(time);
  }

  Loss LossOf(const ClusterState& state, TaskKey key, const Task& before, const Task& now,
              const Event& event) {
    if (now.state == TaskState::kSucceeded) return Loss::kNone;
    const auto* silenced = std::get_if<NodeSilenced>(&event.body);
    const bool forced = state.jobs().At(key.job).status.forced;
    const bool by_force = silenced != nullptr && forced && silenced->ends_forced;
    if (by_force || std::holds_alternative<JobCancelled>(event.body)) return Loss::kNone;
    const bool told = Releasing(before) || std::holds_alternative<TasksReleased>(event.body);
    if (told) return stopped_[key];
    const bool nodes_fault =
        now.end_cause == EndCause::kNodeLost || now.end_cause == EndCause::kDevice ||
        (now.end_cause == EndCause::kRefused && !now.own_fault && !now.nobodys_fault);
    return nodes_fault ? Loss::kFault : Loss::kNone;
  }

  void Cut(const ClusterState& state, TaskKey key, const Task& before, const Task& now,
           const Event& event, Folded& folded) {
    const Loss loss = LossOf(state, key, before, now, event);
    broken_by_[key.job] = loss;
    if (loss == Loss::kNone) return;
    const bool ran = before.start != absl::InfinitePast();
    const int64_t from = MsOf(ran ? std::max(before.start, saved_[key]) : bound_[key]);
    const int64_t end = MsOf(event.time);
    int64_t work = end - from;
    for (const Interval& interval : frozen_[key]) {
      work -=
          std::max<int64_t>(0, std::min(end, interval.to_ms) - std::max(from, interval.from_ms));
    }
    const size_t figure =
        static_cast<size_t>(loss == Loss::kFault ? Measure::kFaulted : Measure::kPreempted);
    folded.ExpectLoss(AmountsOfTask(state, state.jobs().At(key.job), key.task, before, figure),
                      work);
  }

  std::map<TaskKey, Task> before_;
  std::map<TaskKey, Time> saved_, bound_;
  std::map<TaskKey, std::vector<Interval>> frozen_;
  std::map<TaskKey, Loss> stopped_;
  std::map<JobId, Loss> broken_by_;
};

QueueSpec QueueNamed(const std::string& name) {
  QueueSpec spec;
  spec.name = name;
  return spec;
}

TEST_CASE("usage: the fold's state and figures are those of the model", "[history][property]") {
  size_t ended = 0, lost = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    World world;
    RandomEvents events(world, seed);
    Folded folded(world.now);
    LossOracle losses;
    const auto take = [&](EventBody body) {
      const Event event{world.now, std::move(body)};
      folded.Elapse(world.state, event.time);
      losses.Before(world.state);
      if (!world.Try(event.body).ok()) return;
      losses.After(world.state, event, folded);
      folded.Take(event);
    };
    take(QueueCreated{world.state.next_queue_id(), QueueNamed("q0")});
    for (int i = 0; i < kEvents; ++i) {
      EventBody body = Varied(events.Next());
      INFO("seed " << seed << " event " << i << " kind " << body.index());
      take(std::move(body));
      RequireSameJobs(world.state, folded.fold());
      RequireSameNodes(world.state, folded.fold());
      RequireSameQueues(world.state, folded.fold());
      if (i % 50 == 49) folded.Reload();
      if (i % 100 == 0) folded.RequireSums();
    }
    folded.RequireSums();
    ended += folded.ended().size();
    for (const auto& [figure, sum] : folded.expected().sums()) {
      lost += figure.second.figure >= kMeasuredRates && sum > 0 ? 1 : 0;
    }
  }
  CHECK(ended > kSeeds);
  CHECK(lost > kSeeds);
}

}  // namespace
}  // namespace berth
