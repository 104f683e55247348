// Steps of series: arrays and schedules. What a series decides about other jobs (their submission,
// their cancellation) is applied after the cycle, so that such a step is the last of its look.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/cron.h"
#include "core/engine/lifecycle/steps.h"

namespace berth {
namespace {

// Of one look, so that a large array does not delay others.
constexpr int64_t kMostAtOnce = 1000;
// Of the cluster: above it, series make no more jobs.
constexpr int64_t kMostJobs = 1'000'000;
// Skipped times that are counted; further ones are not.
constexpr int64_t kMostCounted = 10'000;

EventBody WithSeries(const Look& look, SeriesStatus series) {
  return WithStatus(look, [&](JobStatus& status) { status.series = std::move(series); });
}

// Members that have ended since the last look.
bool CountEndedMembers(const Look& look, SeriesStatus& series) {
  const bool schedule = look.job.series->IsSchedule();
  const auto gone = [&](const MadeJob& member) {
    const Job* job = look.state.jobs().Find(member.job);
    if (job != nullptr && !Ended(job->status.state)) return false;
    const JobState outcome = job == nullptr ? JobState::kCancelled : job->status.state;
    if (outcome == JobState::kSucceeded) {
      ++series.succeeded;
    } else if (outcome == JobState::kCancelled) {
      ++series.cancelled;
    } else {
      ++series.failed;
      if (!schedule && series.failed_indexes.size() < kMaxFailedRanges) {
        AddIndex(member.index, series.failed_indexes);
      }
    }
    if (schedule && job != nullptr) series.ended.push_back(member);
    return true;
  };
  const auto end = std::stable_partition(series.live.begin(), series.live.end(),
                                         [&](const MadeJob& member) { return !gone(member); });
  const bool any = end != series.live.end();
  series.live.erase(end, series.live.end());
  return any;
}

// Without those that were made in this cycle.
int64_t RoomNow(const Look& look) {
  return RoomForMembers(look.state, look.job, {.jobs = look.made, .tasks = look.made_tasks});
}

// What a schedule of arrays makes.
SeriesSpec ArrayOf(const SeriesSpec& schedule) {
  return {.indexes = schedule.indexes,
          .parallelism = schedule.parallelism,
          .max_failed = schedule.max_failed};
}

JobSpec MemberSpec(const Look& look, int64_t index) {
  JobSpec spec = SpecOf(look.state, look.job);
  const SeriesSpec& series = *look.job.series;
  spec.name = MemberName(look.job.name, series, index);
  spec.series.reset();
  if (series.IsSchedule()) {
    spec.ttl_after_finished = absl::InfiniteDuration();  // it is its history
    if (series.HasIndexes()) spec.series = ArrayOf(series);
  }
  spec.member = MemberOf{.series = look.job.id, .index = index};
  spec.dependencies.clear();
  spec.start_after = absl::InfinitePast();
  spec.suspended = false;
  return spec;
}

// Submits one member, and notes it.
void MakeMember(const Look& look, int64_t index, SeriesStatus& series, Step* step) {
  const auto made = static_cast<uint64_t>(step->size());
  const JobId id{look.next_job.value + made};
  step->push_back(JobSubmitted{.id = id, .spec = MemberSpec(look, index)});
  series.live.push_back({.index = index, .job = id});
}

Step CancelMembers(const Look& look, const SeriesStatus& series, const std::string& reason) {
  Step step;
  for (const MadeJob& member : series.live) {
    const Job* job = look.state.jobs().Find(member.job);
    if (job == nullptr || Ended(job->status.state)) continue;
    const bool forced = look.job.status.forced;
    if (job->status.cancelled && (job->status.forced || !forced)) continue;
    if (job->status.state == JobState::kCompleting && !forced) continue;
    step.push_back(JobCancelled{.id = member.job, .reason = reason, .force = forced});
  }
  return step;
}

// Members follow the hold of the series.
Step HoldMembers(const Look& look, const SeriesStatus& series, bool hold) {
  Step step;
  for (const MadeJob& member : series.live) {
    const Job* job = look.state.jobs().Find(member.job);
    if (job == nullptr || Ended(job->status.state) || job->status.suspended == hold) continue;
    step.push_back(JobSuspended{.id = member.job, .suspended = hold, .why = ""});
  }
  return step;
}

// Its members end first, then it does.
Step EndSeries(const Look& look, const SeriesStatus& series, JobState outcome,
               const std::string& message) {
  if (Step step = CancelMembers(look, series, message); !step.empty()) return step;
  if (series.live.empty()) return Conclude(look, outcome, message);
  if (look.job.status.state == JobState::kCompleting) return {};
  return {WithStatus(look, [&](JobStatus& status) {
    status.state = JobState::kCompleting;
    status.outcome = outcome;
    status.message = message;
  })};
}

Step EnterSeries(const Look& look, JobState state) {
  if (look.job.status.state == state) return {};
  return {WithStatus(look, [&](JobStatus& status) { status.state = state; })};
}

std::string HowManyFailed(const SeriesStatus& series, int64_t all) {
  return absl::StrCat(series.failed, " of ", all, " failed: ", TextOf(series.failed_indexes, 200));
}

// ---- Arrays

Step ArrayStep(const Look& look, SeriesStatus series) {
  const SeriesSpec& spec = *look.job.series;
  const int64_t all = CountOf(spec.indexes);
  if (spec.max_failed >= 0 && series.failed > spec.max_failed) {
    return EndSeries(
        look, series, JobState::kFailed,
        absl::StrCat(HowManyFailed(series, all), "; at most ", spec.max_failed, " may"));
  }
  if (series.next == all && series.live.empty()) {
    if (series.failed > 0) return Conclude(look, JobState::kFailed, HowManyFailed(series, all));
    if (series.cancelled < all) return Conclude(look, JobState::kSucceeded, "");
    return Conclude(look, JobState::kCancelled, "all its jobs were cancelled");
  }
  const auto live = static_cast<int64_t>(series.live.size());
  const int64_t count = std::min({all - series.next, spec.parallelism - live, kMostAtOnce,
                                  live < spec.parallelism ? RoomNow(look) : 0});
  if (count <= 0) return EnterSeries(look, JobState::kRunning);
  Step step;
  for (int64_t i = 0; i < count; ++i) {
    MakeMember(look, IndexAt(spec.indexes, series.next++), series, &step);
  }
  step.push_back(WithStatus(look, [&](JobStatus& status) {
    status.state = JobState::kRunning;
    status.series = std::move(series);
  }));
  return step;
}

// ---- Schedules

// The latest time of the schedule that is past, and the next; the number of those before in
// `skipped`.
struct Times {
  Time latest = absl::InfinitePast();
  Time next = absl::InfiniteFuture();
  int64_t skipped = 0;
};

// When a schedule has its times.
class Calendar {
 public:
  // Nothing if the machine does not know the time zone.
  static std::optional<Calendar> Of(const SeriesSpec& spec) {
    std::string error;
    std::optional<Cron> cron = Cron::Parse(spec.cron, &error);
    const std::optional<absl::TimeZone> zone = FindTimeZone(spec.time_zone);
    if (!cron.has_value() || !zone.has_value()) return std::nullopt;
    return Calendar(*cron, *zone);
  }

  Time After(Time time) const { return cron_.Next(time, zone_); }

  // Of `due`, which is one of its times and past, and those after it.
  Times Until(Time due, Time now) const {
    Times times{.latest = Latest(due, now)};
    times.next = After(times.latest);
    for (Time time = due; time < times.latest && times.skipped < kMostCounted; time = After(time))
      ++times.skipped;
    return times;
  }

 private:
  Calendar(Cron cron, absl::TimeZone zone) : cron_(cron), zone_(zone) {}

  // The latest time until `now`: looked for in the last day, then in the last year, then in all.
  Time Latest(Time due, Time now) const {
    for (const Duration window : {absl::Hours(24), absl::Hours(24 * 366)}) {
      const Time begin = now - window;
      if (begin <= due) break;
      if (const Time first = After(begin); first <= now) return Last(first, now);
    }
    return Last(due, now);
  }
  Time Last(Time time, Time now) const {
    for (Time next = After(time); next <= now; next = After(next)) time = next;
    return time;
  }

  Cron cron_;
  absl::TimeZone zone_;
};

std::string NoZone(const SeriesSpec& spec) {
  return absl::StrCat("the server's machine does not know the time zone ", spec.time_zone,
                      ": install tzdata and restart berthd; the schedule waits");
}

// It waits: a job at the wrong hour would be worse. What passes meanwhile is not made up for.
Step AwaitZone(const Look& look, SeriesStatus series) {
  const std::string message = NoZone(*look.job.series);
  if (look.job.status.message == message) return {};
  series.due = absl::InfiniteFuture();
  return {WithStatus(look, [&](JobStatus& status) {
    status.state = JobState::kHeld;
    status.message = message;
    status.series = std::move(series);
  })};
}

// Its times count from now on.
Step StartAfresh(const Look& look, const Calendar& calendar, SeriesStatus series) {
  series.due = calendar.After(look.now);
  return {WithStatus(look, [&](JobStatus& status) {
    status.message.clear();
    status.series = std::move(series);
  })};
}

// The jobs of a series that nobody waits for, of which a look deletes a bounded number. Arrays of a
// schedule go after their jobs.
Step DeleteMembers(const Look& look, JobId series) {
  Step step;
  for (JobId member : look.state.MembersOf(series, kMostAtOnce)) {
    if (std::ssize(step) >= kMostAtOnce) break;
    if (!look.state.MembersOf(member, 1).empty()) {
      for (EventBody& deleted : DeleteMembers(look, member)) step.push_back(std::move(deleted));
    } else if (look.state.Dependents(member).empty()) {
      step.push_back(JobDeleted{.id = member});
    }
  }
  return step;
}

Step ForgetOldMembers(const Look& look, SeriesStatus& series) {
  Step step;
  const auto keep = static_cast<size_t>(look.job.series->history);
  while (series.ended.size() > keep) {
    const JobId oldest = series.ended.front().job;
    const Job* job = look.state.jobs().Find(oldest);
    if (job != nullptr && !look.state.Dependents(oldest).empty()) break;
    if (!look.state.MembersOf(oldest, 1).empty()) {
      if (step.empty()) step = DeleteMembers(look, oldest);
      break;
    }
    if (job != nullptr) step.push_back(JobDeleted{.id = oldest});
    series.ended.erase(series.ended.begin());
  }
  return step;
}

Step ScheduleStep(const Look& look, const Calendar& calendar, SeriesStatus series) {
  const SeriesSpec& spec = *look.job.series;
  if (Step step = ForgetOldMembers(look, series); !step.empty()) {
    step.push_back(WithSeries(look, std::move(series)));
    return step;
  }
  if (series.due > look.now) return EnterSeries(look, JobState::kHeld);
  const Times times = calendar.Until(series.due, look.now);
  const bool late = look.now - times.latest > spec.latest;
  const bool overlaps = !series.live.empty() && spec.overlap == Overlap::kForbid;
  const bool full = RoomNow(look) == 0;
  series.skipped += times.skipped;
  series.last = times.latest;
  series.due = times.next;
  Step step;
  if (late || overlaps || full) {
    ++series.skipped;
  } else {
    MakeMember(look, absl::ToUnixSeconds(times.latest), series, &step);
    if (spec.overlap == Overlap::kReplace) {
      SeriesStatus before = series;
      before.live.pop_back();
      for (EventBody& cancel :
           CancelMembers(look, before, "replaced by the next of its schedule")) {
        step.push_back(std::move(cancel));
      }
    }
  }
  step.push_back(WithSeries(look, std::move(series)));
  return step;
}

// ---- Both

// Not yet begun: dependencies, start time and hold, as of any job.
Step BeginSeries(const Look& look) {
  if (look.job.status.suspended) return EnterSeries(look, JobState::kHeld);
  Step step = Admit(look);
  const bool ready = step.empty() ? look.job.status.state == JobState::kPending : false;
  if (!ready) return step;
  SeriesStatus series;
  const bool schedule = look.job.series->IsSchedule();
  if (schedule) {
    const std::optional<Calendar> calendar = Calendar::Of(*look.job.series);
    series.due = calendar.has_value() ? calendar->After(look.now) : look.now;
  }
  return {WithStatus(look, [&](JobStatus& status) {
    status.state = schedule ? JobState::kHeld : JobState::kRunning;
    status.start = status.first_start = look.now;
    status.hold_until = absl::InfinitePast();
    status.series = std::move(series);
  })};
}

// It keeps its members' names and indexes: it goes after them.
Step ExpireSeries(const Look& look) {
  const JobStatus& status = look.job.status;
  if (status.end + look.job.ttl_after_finished > look.now) return {};
  if (!look.state.Dependents(look.job.id).empty()) return {};
  if (Step step = DeleteMembers(look, look.job.id); !step.empty()) return step;
  if (!look.state.MembersOf(look.job.id, 1).empty()) return {};
  return {JobDeleted{.id = look.job.id}};
}

}  // namespace

int64_t RoomForMembers(const ClusterState& state, const Job& series, JobsAndTasks made) {
  int64_t active = made.jobs;
  for (size_t s = 0; s < kJobStates; ++s) {
    const auto in = static_cast<JobState>(s);
    if (!Ended(in)) active += state.jobs_in(in);
  }
  int64_t room = kMostJobs - active;
  int64_t tasks = 0;
  // The array that a schedule makes has no tasks itself.
  const bool of_tasks = !series.series->IsSchedule() || !series.series->HasIndexes();
  for (const Group& group : series.groups) tasks += of_tasks ? group.replicas : 0;
  for (QueueId id = series.queue;; id = state.queues().At(id).spec.parent) {
    const Queue& queue = state.queues().At(id);
    if (!queue.open) return 0;
    if (queue.spec.max_jobs > 0) {
      room = std::min(room, queue.spec.max_jobs - queue.active_jobs - made.jobs);
    }
    if (queue.spec.max_tasks > 0 && tasks > 0) {
      room = std::min(room, (queue.spec.max_tasks - queue.active_tasks - made.tasks) / tasks);
    }
    if (id == kRootQueue) break;
  }
  return std::max<int64_t>(room, 0);
}

Step SeriesStep(const Look& look) {
  const JobStatus& status = look.job.status;
  if (Ended(status.state)) return ExpireSeries(look);
  SeriesStatus series = status.series ? *status.series : SeriesStatus{};
  if (CountEndedMembers(look, series)) return {WithSeries(look, std::move(series))};
  if (status.state == JobState::kCompleting) {
    return EndSeries(look, series, status.outcome, status.message);
  }
  if (status.cancelled) return EndSeries(look, series, JobState::kCancelled, status.message);
  if (Step step = EndAtRunLimit(look); !step.empty() && !look.job.series->IsSchedule()) {
    return EndSeries(look, series, JobState::kFailed, "its run_limit is used up");
  }
  if (!status.series) return BeginSeries(look);
  // Members that somebody holds by themselves stay so while the series runs.
  if (status.suspended || status.state == JobState::kSuspended) {
    if (Step step = HoldMembers(look, series, status.suspended); !step.empty()) return step;
  }
  if (!look.job.series->IsSchedule()) {
    return status.suspended ? EnterSeries(look, JobState::kSuspended)
                            : ArrayStep(look, std::move(series));
  }
  const std::optional<Calendar> calendar = Calendar::Of(*look.job.series);
  if (!calendar.has_value()) {
    return status.suspended ? EnterSeries(look, JobState::kSuspended)
                            : AwaitZone(look, std::move(series));
  }
  if (status.message == NoZone(*look.job.series))
    return StartAfresh(look, *calendar, std::move(series));
  if (!status.suspended) return ScheduleStep(look, *calendar, std::move(series));
  // Times that pass meanwhile are not made up for.
  if (series.due <= look.now) return StartAfresh(look, *calendar, std::move(series));
  return EnterSeries(look, JobState::kSuspended);
}

}  // namespace berth
