#include "clients/cli/job_view.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/human.h"
#include "clients/cli/job_files.h"
#include "clients/cli/job_progress.h"
#include "clients/cli/manifest.h"
#include "clients/cli/page.h"
#include "clients/cli/resource_names.h"
#include "clients/cli/series_view.h"

namespace berth {
namespace {

constexpr size_t kReasonWidth = 100;
// A page shows at most this many tasks, and a few of each kind.
constexpr size_t kDescribedTasks = 20;
constexpr size_t kOfEachKind = 5;

int64_t TasksInState(const v1::Job& job, const std::string& state) {
  int64_t count = 0;
  for (const v1::GroupStatus& group : job.status().groups()) {
    const auto found = group.tasks().find(state);
    if (found != group.tasks().end()) count += found->second;
  }
  return count;
}

int64_t Replicas(const v1::Job& job) {
  int64_t count = 0;
  for (const v1::TaskGroup& group : job.spec().groups()) count += group.replicas();
  return count;
}

// "3/4": tasks that are running or have succeeded, of all.
std::string RunningOrSucceeded(const v1::Job& job) {
  if (std::string series = SeriesCount(job); !series.empty()) return series;
  return absl::StrCat(TasksInState(job, "RUNNING") + TasksInState(job, "SUCCEEDED"), "/",
                      Replicas(job));
}

// Why the job is pending, or how it ended.
std::string Reason(const v1::Job& job) {
  const v1::JobStatus& status = job.status();
  if (!status.reasons().empty()) return HumanReason(status.reasons(0));
  if (!status.message().empty()) return status.message();
  if (status.has_series()) return SeriesCounts(status.series());
  return status.cancel_reason();
}

std::string Shortened(const std::string& text, bool whole) {
  return whole || text.size() <= kReasonWidth ? text : text.substr(0, kReasonWidth - 3) + "...";
}

std::string RunTime(const v1::JobStatus& status, absl::Time now) {
  if (!status.has_start_time()) return "-";
  const absl::Time end = status.has_end_time() ? TimeFrom(status.end_time()) : now;
  // Without its pauses.
  const absl::Time until = status.pause().has_since() ? TimeFrom(status.pause().since()) : end;
  return HumanDuration(until - TimeFrom(status.start_time()) -
                       DurationFrom(status.pause().total()));
}

Table JobTable(const std::vector<v1::Job>& jobs, const Session& session) {
  Table table({{"NAME"},
               {"QUEUE"},
               {"STATE"},
               {"TASKS", Column::kRight},
               {"PRIORITY", Column::kRight | Column::kWide},
               {"CLASS", Column::kWide},
               {"AGE", Column::kRight},
               {"RAN", Column::kRight},
               {"UID", Column::kRight | Column::kWide},
               {"STARTS", Column::kRight | Column::kWide},
               {"RETRIES", Column::kRight | Column::kWide},
               {"LABELS", Column::kWide},
               {"REASON", Column::kShorten}});
  // On a terminal, the width of the terminal decides.
  const bool whole = session.options.format == Format::kWide || session.io().width != 0;
  const absl::Time now = session.Now();
  for (const v1::Job& job : jobs) {
    const v1::JobStatus& status = job.status();
    table.AddRow({{job.name()},
                  {job.spec().queue()},
                  JobStateWord(status),
                  {RunningOrSucceeded(job)},
                  {absl::StrCat(job.spec().priority())},
                  {job.spec().priority_class().empty() ? "-" : job.spec().priority_class()},
                  {HumanAge(status.has_submit_time(), status.submit_time(), now)},
                  {RunTime(status, now)},
                  {absl::StrCat(job.uid())},
                  {absl::StrCat(status.start_count())},
                  {absl::StrCat(status.retries(), "/", job.spec().max_retries())},
                  {KeyValues(job.spec().labels())},
                  {Shortened(Reason(job), whole)}});
  }
  return table;
}

std::string TaskEnd(const v1::Task& task) {
  if (task.exit_signal() != 0) return absl::StrCat("signal ", task.exit_signal());
  return task.has_exit_code() ? absl::StrCat(task.exit_code()) : "-";
}

Table GroupTable(const v1::Job& job) {
  Table table({{"GROUP"},
               {"TASKS", Column::kRight},
               {"MIN", Column::kRight},
               {"EACH NEEDS"},
               {"STATES"},
               {"COMMAND"}});
  for (int i = 0; i < job.spec().groups_size(); ++i) {
    const v1::TaskGroup& group = job.spec().groups(i);
    std::string states = "-";
    for (const v1::GroupStatus& status : job.status().groups()) {
      if (status.name() == group.name()) states = KeyValues(status.tasks());
    }
    table.AddRow(
        {{group.name()},
         {absl::StrCat(group.replicas())},
         {absl::StrCat(group.has_min_available() ? group.min_available() : group.replicas())},
         {HumanResources(group.resources())},
         {states},
         {Shortened(absl::StrJoin(group.command(), " "), false)}});
  }
  return table;
}

std::string Reasons(const v1::Job& job, const Session& session) {
  std::string text;
  for (const v1::WaitReason& reason : job.status().reasons()) {
    absl::StrAppend(&text, HumanReasonUntil(reason, session.io().time_zone), "\n");
  }
  return text;
}

std::string Dependencies(const v1::JobSpec& spec) {
  std::vector<std::string> parts;
  for (const v1::JobDependency& dependency : spec.dependencies()) {
    parts.push_back(absl::StrCat(dependency.job(), " (",
                                 v1::JobDependency::Condition_Name(dependency.condition()), ")"));
  }
  return absl::StrJoin(parts, ", ");
}

void AddTimes(const v1::Job& job, const Session& session, Page* page) {
  const v1::JobStatus& status = job.status();
  const auto with_age = [&](bool has, const google::protobuf::Timestamp& time) {
    if (!has) return std::string();
    return absl::StrCat(HumanTime(true, time, session.io().time_zone), " (",
                        HumanAge(true, time, session.Now()), " ago)");
  };
  page->Add("Submitted", with_age(status.has_submit_time(), status.submit_time()));
  page->Add("Started", with_age(status.has_start_time(), status.start_time()));
  page->Add("Ended", with_age(status.has_end_time(), status.end_time()));
  page->Add("Ran", RunTime(status, session.Now()));
  if (job.spec().has_run_limit())
    page->Add("Run limit", HumanDuration(DurationFrom(job.spec().run_limit())));
  if (job.spec().has_walltime())
    page->Add("Walltime", HumanDuration(DurationFrom(job.spec().walltime())));
}

// "since 12:00:03, until 13:00:03 at most; for job bert: its priority 1 is below 5; 2m before that;
// others may use its GPUs"
std::string PauseText(const v1::JobStatus& status, const Session& session) {
  const v1::JobPause& pause = status.pause();
  std::vector<std::string> parts;
  if (pause.has_since()) {
    parts.push_back(absl::StrCat(
        "since ", HumanTime(true, pause.since(), session.io().time_zone),
        pause.has_until() ? ", until " : "",
        pause.has_until()
            ? absl::StrCat(HumanTime(true, pause.until(), session.io().time_zone), " at most")
            : ""));
  }
  if (!pause.beneficiary().empty()) {
    parts.push_back(absl::StrCat("for job ", pause.beneficiary(),
                                 pause.detail().empty() ? "" : ": ", pause.detail()));
  }
  if (pause.has_total()) {
    parts.push_back(absl::StrCat(HumanDuration(DurationFrom(pause.total())),
                                 pause.has_since() ? " before that" : " since it started"));
  }
  if (pause.devices_lent()) parts.push_back("others may use its GPUs");
  return absl::StrJoin(parts, "; ");
}

// "2; last 5m ago: preempted 4 tasks for job bert: higher priority"
std::string EvictionsText(const v1::JobStatus& status, const Session& session) {
  if (status.evictions() == 0) return "";
  const v1::Eviction& last = status.last_eviction();
  return absl::StrCat(status.evictions(), "; last ", HumanAge(true, last.time(), session.Now()),
                      " ago: ", absl::AsciiStrToLower(HumanEnum(last.reason())), " ", last.tasks(),
                      last.tasks() == 1 ? " task" : " tasks", " for job ", last.beneficiary(),
                      last.detail().empty() ? "" : ": ", last.detail());
}

std::string ConditionsText(const v1::JobStatus& status) {
  std::vector<std::string> parts;
  for (const v1::JobCondition& condition : status.conditions()) {
    parts.push_back(absl::StrCat(HumanEnum(condition.kind()), ": ", condition.detail()));
  }
  return absl::StrJoin(parts, "\n");
}

// "rdzv coordinates, worker rendezvous"
std::string MembershipText(const v1::JobSpec& spec) {
  std::vector<std::string> parts;
  for (const v1::TaskGroup& group : spec.groups()) {
    if (group.role() == v1::COORDINATOR) parts.push_back(group.name() + " coordinates");
    if (group.role() == v1::SPARE) {
      parts.push_back(absl::StrCat(group.name(), " in reserve for ", group.spare_of()));
    }
    if (group.membership() == v1::MEMBERSHIP_UNSPECIFIED) continue;
    parts.push_back(absl::StrCat(group.name(), " ",
                                 absl::AsciiStrToLower(v1::Membership_Name(group.membership()))));
  }
  return absl::StrJoin(parts, ", ");
}

// "restart task (2m), restart job; the latest failure was on rung 1"
std::string EscalationText(const v1::Job& job) {
  std::vector<std::string> rungs;
  for (const v1::Rung& rung : job.spec().escalation()) {
    rungs.push_back(HumanEnum(rung.action()));
    if (rung.has_for_())
      absl::StrAppend(&rungs.back(), " (", HumanDuration(DurationFrom(rung.for_())), ")");
  }
  std::string text = absl::StrJoin(rungs, ", ");
  if (job.status().rung() > 0)
    absl::StrAppend(&text, "; the latest failure was on rung ", job.status().rung());
  return text;
}

// "n3 until 2026-11-28 10:00 (a device failed there)"
std::string AvoidedText(const v1::Job& job, const Session& session) {
  std::vector<std::string> nodes;
  for (const v1::AvoidedNode& one : job.status().avoided_nodes()) {
    nodes.push_back(
        absl::StrCat(one.node(), " until ", HumanTime(true, one.until(), session.io().time_zone)));
  }
  return nodes.empty() ? "" : absl::StrCat(absl::StrJoin(nodes, ", "), " (a device failed there)");
}

std::string CheckpointText(const v1::Job& job, const Session& session) {
  const v1::JobSpec& spec = job.spec();
  if (!spec.has_checkpoint()) return "";
  std::vector<std::string> parts;
  const v1::CheckpointPolicy& checkpoint = spec.checkpoint();
  if (!checkpoint.signal().empty()) parts.push_back(checkpoint.signal());
  if (checkpoint.has_grace()) {
    parts.push_back(absl::StrCat("grace ", HumanDuration(DurationFrom(checkpoint.grace()))));
  }
  if (checkpoint.has_interval()) {
    parts.push_back(absl::StrCat("every ", HumanDuration(DurationFrom(checkpoint.interval()))));
  }
  if (checkpoint.has_walltime_notice() && spec.has_walltime()) {
    parts.push_back(absl::StrCat(HumanDuration(DurationFrom(checkpoint.walltime_notice())),
                                 " before the walltime ends"));
  }
  if (job.status().has_checkpoint_asked()) {
    parts.push_back(absl::StrCat(
        "asked ", HumanAge(true, job.status().checkpoint_asked(), session.Now()), " ago"));
  }
  return absl::StrJoin(parts, ", ");
}

void AddSharing(const v1::Job& job, const Session& session, Page* page) {
  const v1::JobSpec& spec = job.spec();
  if (spec.preemptible()) page->Add("Preemptible", "yes");
  if (spec.preempt_mode() == v1::PAUSE) page->Add("When preempted", "paused");
  if (spec.preemption_policy() == v1::NEVER) page->Add("Preempts", "never");
  page->Add("User", spec.user());
  page->Add("Owner", job.status().owner());
  if (spec.has_deadline()) {
    page->Add("Deadline", HumanTime(true, spec.deadline(), session.io().time_zone));
  }
  page->Add("Membership", MembershipText(spec));
  page->Add("Checkpoint", CheckpointText(job, session));
  if (job.status().has_reservation()) {
    page->Add("Reserved", ReservationText(job.status().reservation(), session));
  }
  page->Add("Paused", PauseText(job.status(), session));
  page->Add("Evictions", EvictionsText(job.status(), session));
}

// Kinds of tasks, the most interesting first: failed, pending or starting, running, done.
constexpr size_t kTaskKinds = 4;
size_t KindOf(v1::TaskState state) {
  switch (state) {
    case v1::TASK_FAILED:
    case v1::TASK_LOST:
    case v1::TASK_RELEASING:
      return 0;
    case v1::TASK_RUNNING:
      return 2;
    case v1::TASK_SUCCEEDED:
      return 3;
    default:
      return 1;
  }
}

// All tasks if there are few. Otherwise the first of each kind, then the most interesting ones, in
// the given order.
std::vector<v1::Task> MostInteresting(const std::vector<v1::Task>& tasks) {
  if (tasks.size() <= kDescribedTasks) return tasks;
  std::array<std::vector<size_t>, kTaskKinds> kinds;
  for (size_t i = 0; i < tasks.size(); ++i) kinds[KindOf(tasks[i].state())].push_back(i);
  std::set<size_t> chosen;
  for (const size_t most : {kOfEachKind, kDescribedTasks}) {
    for (const std::vector<size_t>& kind : kinds) {
      for (size_t i = 0; i < std::min(most, kind.size()); ++i) {
        if (chosen.size() < kDescribedTasks) chosen.insert(kind[i]);
      }
    }
  }
  std::vector<v1::Task> shown;
  for (const size_t i : chosen) shown.push_back(tasks[i]);
  return shown;
}

}  // namespace

Shape<v1::Job> JobShape() {
  return {"job", JobTable, [](const v1::Job& job) { return WriteManifest(job); }};
}

std::string ReservationText(const v1::Reservation& reservation, const Session& session) {
  const absl::TimeZone zone = session.io().time_zone;
  std::string text = absl::StrCat(
      "from ", HumanTime(reservation.has_start(), reservation.start(), zone),
      reservation.has_end() ? absl::StrCat(" to ", HumanTime(true, reservation.end(), zone)) : "");
  constexpr int kShown = 8;
  const int shown = std::min(reservation.nodes_size(), kShown);
  absl::StrAppend(
      &text, " on ",
      absl::StrJoin(reservation.nodes().begin(), reservation.nodes().begin() + shown, ", "));
  if (shown < reservation.nodes_size()) {
    absl::StrAppend(&text, " and ", reservation.nodes_size() - shown, " more nodes");
  }
  return text;
}

Table TaskTable(const std::vector<v1::Task>& tasks, const Session& session) {
  Table table({{"TASK"},
               {"RANK", Column::kRight},
               {"STATE"},
               {"NODE"},
               {"ATTEMPT", Column::kRight},
               {"AGE", Column::kRight},
               {"EXIT", Column::kRight},
               {"DEVICES", Column::kWide},
               {"MESSAGE"}});
  for (const v1::Task& task : tasks) {
    table.AddRow({{NameOfTask(task)},
                  {task.rank() < 0 ? "" : absl::StrCat(task.rank())},
                  TaskStateWord(task),
                  {task.next_node().empty() ? task.node()
                                            : absl::StrCat(task.node(), " -> ", task.next_node())},
                  {absl::StrCat(task.attempt())},
                  {HumanAge(task.has_start_time(), task.start_time(), session.Now())},
                  {TaskEnd(task)},
                  {absl::StrJoin(task.devices(), ",")},
                  {task.message()}});
  }
  return table;
}

std::string DescribeJob(const v1::Job& job, const std::vector<v1::Task>& tasks,
                        const Session& session) {
  const v1::JobSpec& spec = job.spec();
  Page page;
  page.Add("Name", job.name());
  page.Add("Uid", absl::StrCat(job.uid()));
  page.Add("Queue", spec.queue());
  page.Add("State", Paint(JobStateWord(job.status()), session.colors()));
  page.Add("Message", job.status().message());
  page.Add("Cancelled", job.status().cancel_reason());
  const std::string& of_class = spec.priority_class();
  page.Add("Priority", absl::StrCat(spec.priority(), of_class.empty() ? "" : " (class ", of_class,
                                    of_class.empty() ? "" : ")"));
  page.Add("Starts", absl::StrCat(job.status().start_count()));
  if (job.status().epoch() > job.status().start_count()) {  // members were replaced or added
    page.Add("Epoch", absl::StrCat(job.status().epoch()));
  }
  page.Add("Retries", absl::StrCat(job.status().retries(), " of ", spec.max_retries()));
  page.Add("Escalation", EscalationText(job));
  AddSeries(job, session, &page);
  page.Add("Kept out of", AvoidedText(job, session));
  AddTimes(job, session, &page);
  AddSharing(job, session, &page);
  AddJobProgress(job, session, &page);
  page.Add("After", Dependencies(spec));
  page.Add("Labels", KeyValues(spec.labels()));
  page.Add("Annotations", KeyValues(spec.annotations()));
  TableStyle style = session.table_style();
  style.headers = true;
  page.AddSection("Conditions", ConditionsText(job.status()));
  page.AddSection("Reasons", Reasons(job, session));
  page.AddSection("Groups", GroupTable(job).Render(style));
  page.AddSection("Containers", ContainersText(job.spec()));
  page.AddSection("Files", FilesText(job.spec()));
  const std::vector<v1::Task> shown = MostInteresting(tasks);
  page.AddSection("Tasks", TaskTable(shown, session).Render(style));
  std::string text = page.Text();
  if (shown.size() < tasks.size()) {
    absl::StrAppend(&text, "  ... and ", tasks.size() - shown.size(), " more: berth job tasks ",
                    job.name(), "\n");
  }
  return text;
}

}  // namespace berth
