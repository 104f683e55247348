#include "clients/slurm/job_fields.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/slurm/allocation.h"
#include "clients/slurm/hosts.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/job_label.h"
#include "clients/slurm/job_state.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using Row = const JobRow&;
using In = const FieldContext&;

constexpr int64_t kBytesOfMiB = int64_t{1} << 20;
constexpr RowNeeds kTasks = {.tasks = true};
constexpr RowNeeds kWhole = {.whole = true};
constexpr RowNeeds kNothing = {};

std::string Absent(In in) { return in.accounting ? "" : "(null)"; }
std::string NoTime(In in) { return in.accounting ? "Unknown" : "N/A"; }

std::string OrAbsent(const std::string& text, In in) { return text.empty() ? Absent(in) : text; }

// Its places were given to it and not taken away again.
bool HasStarted(Row row) {
  const SlurmState& state = StateOf(row.job);
  const bool waits =
      std::string(state.name) == "PENDING" || std::string(state.name) == "CONFIGURING";
  return row.job.status().has_start_time() && !waits;
}

absl::Duration ElapsedOf(Row row, In in) {
  if (!HasStarted(row)) return absl::ZeroDuration();
  const v1::JobStatus& status = row.job.status();
  const absl::Time end = status.has_end_time() ? TimeFrom(status.end_time()) : in.now;
  return std::max(end - TimeFrom(status.start_time()), absl::ZeroDuration());
}

const v1::ResourceRequest& ResourcesOf(Row row) { return row.job.spec().groups(0).resources(); }

int NodeCount(Row row) {
  const std::vector<std::string> nodes = row.Nodes();
  if (!nodes.empty()) return static_cast<int>(nodes.size());
  int tasks = 0;
  for (const v1::TaskGroup& group : row.job.spec().groups())
    tasks += group.has_replicas() ? group.replicas() : 1;
  return tasks;
}

int64_t CpuCount(Row row) {
  int64_t millis = 0;
  for (const v1::TaskGroup& group : row.job.spec().groups())
    millis += group.resources().cpu_millis() * (group.has_replicas() ? group.replicas() : 1);
  return (millis + 999) / 1000;
}

std::string MomentOf(bool has, const google::protobuf::Timestamp& time, In in) {
  return has ? SlurmMoment(TimeFrom(time), in.zone) : NoTime(in);
}

std::string Number(Row row, In) { return row.number; }
std::string RawNumber(Row row, In) { return absl::StrCat(row.job.uid()); }
std::string ArrayNumber(Row row, In) {
  const uint64_t array = ArrayOf(row.job);
  return absl::StrCat(array == 0 ? row.job.uid() : array);
}
std::string ArrayIndex(Row row, In) {
  if (!row.unmade.empty()) return row.unmade;
  return ArrayOf(row.job) == 0 ? "N/A" : absl::StrCat(row.job.status().member_of().index());
}
std::string Name(Row row, In) { return JobNameOf(row.job); }
std::string User(Row row, In in) { return OrAbsent(UserOf(row.job), in); }
std::string Account(Row row, In in) {
  return OrAbsent(TextLabel(row.job.spec(), kAccountLabel), in);
}
std::string Partition(Row row, In) { return PartitionOf(row.job); }
std::string Qos(Row row, In in) {
  const std::string qos = TextLabel(row.job.spec(), kQosLabel);
  return qos.empty() ? "normal" : OrAbsent(qos, in);
}
std::string State(Row row, In) { return StateOf(row.job).name; }
std::string BriefState(Row row, In) { return StateOf(row.job).brief; }
std::string Reason(Row row, In) { return ReasonOf(row.job); }
std::string Elapsed(Row row, In in) {
  const absl::Duration elapsed = ElapsedOf(row, in);
  return in.accounting ? SlurmElapsed(elapsed) : ShortElapsed(elapsed);
}
std::string ElapsedRaw(Row row, In in) {
  return absl::StrCat(absl::ToInt64Seconds(ElapsedOf(row, in)));
}
std::string TimeLimit(Row row, In in) {
  if (row.archived.has_value()) return "Unknown";
  if (!row.job.spec().has_walltime()) return "UNLIMITED";
  const absl::Duration limit = DurationFrom(row.job.spec().walltime());
  return in.accounting ? SlurmElapsed(limit) : ShortElapsed(limit);
}
std::string TimeLimitRaw(Row row, In) {
  if (row.archived.has_value()) return "";
  if (!row.job.spec().has_walltime()) return "UNLIMITED";
  return absl::StrCat(absl::ToInt64Minutes(DurationFrom(row.job.spec().walltime())));
}
std::string TimeLeft(Row row, In in) {
  if (!row.job.spec().has_walltime()) return "UNLIMITED";
  return ShortElapsed(DurationFrom(row.job.spec().walltime()) - ElapsedOf(row, in));
}
std::string SubmitMoment(Row row, In in) {
  return MomentOf(true, row.job.status().submit_time(), in);
}
std::string Eligible(Row row, In in) {
  return row.job.spec().has_start_after() ? MomentOf(true, row.job.spec().start_after(), in)
                                          : SubmitMoment(row, in);
}
std::string Start(Row row, In in) {
  if (row.estimate.has_value()) return SlurmMoment(*row.estimate, in.zone);
  return MomentOf(HasStarted(row), row.job.status().start_time(), in);
}
std::string End(Row row, In in) {
  const v1::JobStatus& status = row.job.status();
  if (status.has_end_time()) return MomentOf(true, status.end_time(), in);
  if (in.accounting || !HasStarted(row) || !row.job.spec().has_walltime()) return NoTime(in);
  return SlurmMoment(TimeFrom(status.start_time()) + DurationFrom(row.job.spec().walltime()),
                     in.zone);
}
std::string Nodes(Row row, In) { return absl::StrCat(NodeCount(row)); }
std::string NodeList(Row row, In in) {
  const std::vector<std::string> nodes = row.Nodes();
  if (!nodes.empty()) return CompressHosts(nodes);
  if (row.archived.has_value()) return HasStarted(row) ? "Unknown" : "None assigned";
  return in.accounting ? "None assigned" : "";
}
std::string BatchHost(Row row, In in) {
  const std::vector<std::string> nodes = row.Nodes();
  return nodes.empty() ? NoTime(in) : nodes.front();
}
std::string NodesOrReason(Row row, In in) {
  const std::string nodes = NodeList(row, in);
  return nodes.empty() || nodes == "None assigned" ? absl::StrCat("(", ReasonOf(row.job), ")")
                                                   : nodes;
}
std::string Cpus(Row row, In) { return absl::StrCat(CpuCount(row)); }
std::string CpusOfNode(Row row, In) {
  return absl::StrCat((ResourcesOf(row).cpu_millis() + 999) / 1000);
}
std::string Memory(Row row, In in) {
  const int64_t bytes = ResourcesOf(row).memory_bytes();
  return in.convert ? SlurmMemory(bytes) : absl::StrCat(bytes / kBytesOfMiB, "M");
}
std::string Gres(Row row, In) {
  for (const v1::DeviceRequest& device : ResourcesOf(row).devices()) {
    if (device.kind() != "gpu") continue;
    const std::string model = device.model().empty() ? "" : absl::StrCat(device.model(0), ":");
    return absl::StrCat("gres/gpu:", model, device.count());
  }
  return "N/A";
}
std::string Tres(Row row, In in) {
  if (in.accounting && !HasStarted(row)) return "";
  std::string text = absl::StrCat("billing=", CpuCount(row), ",cpu=", CpuCount(row));
  const int64_t memory = ResourcesOf(row).memory_bytes() * NodeCount(row);
  if (memory > 0) absl::StrAppend(&text, ",mem=", SlurmMemory(memory));
  absl::StrAppend(&text, ",node=", NodeCount(row));
  int gpus = 0;
  for (const v1::DeviceRequest& device : ResourcesOf(row).devices())
    if (device.kind() == "gpu") gpus += device.count() * NodeCount(row);
  if (gpus > 0) absl::StrAppend(&text, ",gres/gpu=", gpus);
  return text;
}
std::string Priority(Row row, In) {
  return row.archived.has_value() ? "" : absl::StrCat(row.job.spec().priority());
}
std::string Nice(Row row, In) { return absl::StrCat(-row.job.spec().priority()); }
std::string Exit(Row row, In) {
  const JobExit exit = row.archived.has_value() ? *row.archived : ExitOf(row.tasks);
  const bool ended = StateOf(row.job).ended;
  const bool cancelled = row.job.status().state() == v1::JOB_CANCELLED;
  if (!ended || (cancelled && exit.signal == 0)) return "0:0";
  return absl::StrCat(exit.code >= 128 && exit.signal != 0 ? 0 : exit.code, ":", exit.signal);
}
std::string Annotation(Row row, const char* key) {
  const auto found = row.job.spec().annotations().find(key);
  return found == row.job.spec().annotations().end() ? "" : found->second;
}
std::string Directory(Row row, In in) {
  return OrAbsent(Annotation(row, kDirectoryAnnotation), in);
}
std::string Comment(Row row, In in) { return OrAbsent(Annotation(row, kCommentAnnotation), in); }
std::string CommandText(Row row, In in) {
  return OrAbsent(Annotation(row, kCommandAnnotation), in);
}
std::string DependencyText(Row row, In in) {
  std::vector<std::string> parts;
  for (const v1::JobDependency& dependency : row.job.spec().dependencies()) {
    const char* kind = dependency.condition() == v1::JobDependency::AFTER_ANY      ? "afterany"
                       : dependency.condition() == v1::JobDependency::AFTER_NOT_OK ? "afternotok"
                                                                                   : "afterok";
    parts.push_back(absl::StrCat(kind, ":", absl::StripPrefix(dependency.job(), "job-")));
  }
  return OrAbsent(absl::StrJoin(parts, ","), in);
}
std::string Excluded(Row row, In in) {
  const auto& nodes = row.job.spec().groups(0).node_selector().exclude_nodes();
  return OrAbsent(CompressHosts({nodes.begin(), nodes.end()}), in);
}
std::string TaskCount(Row row, In) {
  const std::string tasks = TextLabel(row.job.spec(), kTasksLabel);
  return tasks.empty() ? absl::StrCat(NodeCount(row)) : tasks;
}
std::string Restarts(Row row, In) {
  return absl::StrCat(row.job.status().start_count() > 0 ? row.job.status().start_count() - 1 : 0);
}
std::string Cluster(Row, In in) { return in.cluster; }
std::string CpuSeconds(Row row, In in) {
  return absl::StrCat(CpuCount(row) * absl::ToInt64Seconds(ElapsedOf(row, in)));
}
std::string CpuTime(Row row, In in) { return SlurmElapsed(CpuCount(row) * ElapsedOf(row, in)); }
std::string Waited(Row row, In in) {
  const absl::Time submit = TimeFrom(row.job.status().submit_time());
  const absl::Time until = HasStarted(row) ? TimeFrom(row.job.status().start_time()) : in.now;
  return absl::StrCat(absl::ToInt64Seconds(until - submit));
}
std::string Output(Row row, In in) { return OrAbsent(Annotation(row, kOutputAnnotation), in); }
std::string ErrorFile(Row row, In in) { return OrAbsent(Annotation(row, kErrorAnnotation), in); }
// What has one value for every job of Berth, or none.
std::string Nothing(Row, In in) { return Absent(in); }
std::string NotApplicable(Row, In) { return "N/A"; }
std::string Any(Row, In) { return "*"; }
std::string Zero(Row, In) { return "0"; }
std::string Ok(Row, In) { return "OK"; }

constexpr JobField kFields[] = {
    {'i', "JobArrayID", "JobID", "JOBID", 12, kNothing, Number},
    {'A', "JobID", "JobIDRaw", "JOBID", 12, kNothing, RawNumber},
    {'F', "ArrayJobID", "", "ARRAY_JOB_ID", 12, kNothing, ArrayNumber},
    {'K', "ArrayTaskID", "", "ARRAY_TASK_ID", 12, kNothing, ArrayIndex},
    {'j', "Name", "JobName", "NAME", 10, kNothing, Name},
    {'u', "UserName", "User", "USER", 9, kNothing, User},
    {'U', "UserID", "UID", "UID", 9, kNothing, User},
    {'a', "Account", "Account", "ACCOUNT", 10, kNothing, Account},
    {'P', "Partition", "Partition", "PARTITION", 10, kNothing, Partition},
    {'q', "QOS", "QOS", "QOS", 10, kNothing, Qos},
    {'T', "State", "State", "STATE", 10, kNothing, State},
    {'t', "StateCompact", "", "ST", 2, kNothing, BriefState},
    {'r', "Reason", "Reason", "REASON", 22, kNothing, Reason},
    {'M', "TimeUsed", "Elapsed", "TIME", 10, kNothing, Elapsed},
    {0, "", "ElapsedRaw", "", 10, kNothing, ElapsedRaw},
    {'l', "TimeLimit", "Timelimit", "TIME_LIMIT", 10, kNothing, TimeLimit},
    {0, "", "TimelimitRaw", "", 12, kNothing, TimeLimitRaw},
    {'L', "TimeLeft", "", "TIME_LEFT", 10, kNothing, TimeLeft},
    {'V', "SubmitTime", "Submit", "SUBMIT_TIME", 19, kNothing, SubmitMoment},
    {0, "EligibleTime", "Eligible", "ELIGIBLE_TIME", 19, kNothing, Eligible},
    {'S', "StartTime", "Start", "START_TIME", 19, kNothing, Start},
    {'e', "EndTime", "End", "END_TIME", 19, kNothing, End},
    {'D', "NumNodes", "NNodes", "NODES", 8, kTasks, Nodes},
    {0, "", "AllocNodes", "", 10, kTasks, Nodes},
    {0, "", "ReqNodes", "", 8, kNothing, Nodes},
    {'N', "NodeList", "NodeList", "NODELIST", 15, kTasks, NodeList},
    {'B', "BatchHost", "", "EXEC_HOST", 10, kTasks, BatchHost},
    {'R', "ReasonList", "", "NODELIST(REASON)", 20, kTasks, NodesOrReason},
    {'C', "NumCPUs", "AllocCPUS", "CPUS", 10, kNothing, Cpus},
    {0, "", "NCPUS", "", 10, kNothing, Cpus},
    {0, "", "ReqCPUS", "", 8, kNothing, Cpus},
    {'c', "MinCpus", "", "MIN_CPUS", 8, kNothing, CpusOfNode},
    {'m', "MinMemory", "ReqMem", "MIN_MEMORY", 10, kNothing, Memory},
    {'b', "tres-per-node", "", "TRES_PER_NODE", 13, kNothing, Gres},
    {0, "tres-alloc", "AllocTRES", "TRES_ALLOC", 10, kNothing, Tres},
    {0, "", "ReqTRES", "", 10, kNothing, Tres},
    {'Q', "PriorityLong", "Priority", "PRIORITY", 10, kNothing, Priority},
    {'p', "Priority", "", "PRIORITY", 10, kNothing, Priority},
    {'y', "Nice", "", "NICE", 6, kNothing, Nice},
    {0, "exit_code", "ExitCode", "EXIT_CODE", 8, kTasks, Exit},
    {0, "", "DerivedExitCode", "", 15, kTasks, Exit},
    {'Z', "WorkDir", "WorkDir", "WORK_DIR", 20, kWhole, Directory},
    {'k', "Comment", "Comment", "COMMENT", 14, kWhole, Comment},
    {'o', "Command", "SubmitLine", "COMMAND", 20, kWhole, CommandText},
    {0, "STDOUT", "StdOut", "STDOUT", 20, kWhole, Output},
    {0, "STDERR", "StdErr", "STDERR", 20, kWhole, ErrorFile},
    {'E', "Dependency", "", "DEPENDENCY", 20, kNothing, DependencyText},
    {'x', "ExcNodes", "", "EXC_NODES", 10, kNothing, Excluded},
    {'n', "ReqNodes", "", "REQ_NODES", 10, kNothing, Nothing},
    {'Y', "SchedNodes", "", "SCHEDNODES", 10, kNothing, Nothing},
    {'f', "Feature", "Constraints", "FEATURES", 12, kNothing, Nothing},
    {'g', "GroupName", "Group", "GROUP", 9, kNothing, Nothing},
    {'G', "GroupID", "GID", "GROUP", 6, kNothing, Nothing},
    {'h', "OverSubscribe", "", "OVER_SUBSCRIBE", 14, kNothing, Ok},
    {'H', "NTPerSocket", "", "SOCKETS_PER_NODE", 16, kNothing, Any},
    {'I', "NTPerCore", "", "CORES_PER_SOCKET", 16, kNothing, Any},
    {'J', "NTPerBoard", "", "THREADS_PER_CORE", 16, kNothing, Any},
    {'z', "SCT", "", "S:C:T", 7, kNothing, Any},
    {'X', "CoreSpec", "", "CORE_SPEC", 9, kNothing, NotApplicable},
    {'d', "MinTmpDisk", "", "MIN_TMP_DISK", 12, kNothing, Zero},
    {'O', "Contiguous", "", "CONTIGUOUS", 10, kNothing, Zero},
    {'v', "Reservation", "Reservation", "RESERVATION", 12, kNothing, Nothing},
    {'w', "WCKey", "WCKey", "WCKEY", 10, kNothing, Nothing},
    {'W', "Licenses", "Licenses", "LICENSES", 10, kNothing, Nothing},
    {0, "NumTasks", "NTasks", "TASKS", 8, kNothing, TaskCount},
    {0, "RestartCnt", "Restarts", "RESTARTS", 8, kNothing, Restarts},
    {0, "Cluster", "Cluster", "CLUSTER", 10, kNothing, Cluster},
    {0, "", "CPUTimeRAW", "", 10, kNothing, CpuSeconds},
    {0, "", "CPUTime", "", 10, kNothing, CpuTime},
    {0, "PendingTime", "PlannedCPURAW", "PENDING_TIME", 12, kNothing, Waited},
    // Slurm has these of steps only; the row of a job is empty.
    {0, "", "MaxRSS", "", 10, kNothing, Nothing},
    {0, "", "MaxVMSize", "", 10, kNothing, Nothing},
    {0, "", "AveRSS", "", 10, kNothing, Nothing},
    {0, "", "AveCPU", "", 10, kNothing, Nothing},
    {0, "", "MaxDiskRead", "", 12, kNothing, Nothing},
    {0, "", "MaxDiskWrite", "", 12, kNothing, Nothing},
};

// Of sacct, and known to Slurm only.
constexpr const char* kUnknownToBerth[] = {"TotalCPU", "UserCPU", "SystemCPU", "ConsumedEnergy"};

std::string SameCase(absl::string_view text) { return absl::AsciiStrToLower(text); }

}  // namespace

std::span<const JobField> JobFields() { return kFields; }

absl::StatusOr<std::vector<JobColumn>> ParseLetters(absl::string_view format, std::string* after) {
  std::vector<JobColumn> columns;
  std::string literal;
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%' || at + 1 >= format.size()) {
      literal += format[at];
      continue;
    }
    JobColumn column{.before = std::move(literal)};
    literal.clear();
    ++at;
    column.right = format[at] == '.';
    if (column.right) ++at;
    while (at < format.size() && absl::ascii_isdigit(static_cast<unsigned char>(format[at])) &&
           column.width < 10'000) {
      column.width = column.width * 10 + (format[at++] - '0');
    }
    const char letter = at < format.size() ? format[at] : ' ';
    const auto field = std::find_if(std::begin(kFields), std::end(kFields),
                                    [&](const JobField& known) { return known.letter == letter; });
    if (field == std::end(kFields)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Invalid job format specification: %", std::string(1, letter)));
    }
    column.field = field;
    column.heading = field->heading;
    columns.push_back(std::move(column));
  }
  *after = literal;
  return columns;
}

namespace {

// NAME or NAME<mark>[-]WIDTH, joined by commas.
absl::StatusOr<std::vector<JobColumn>> ParseNames(absl::string_view format, char mark,
                                                  bool accounting) {
  constexpr int kQueueWidth = 20;
  std::vector<JobColumn> columns;
  for (absl::string_view part : absl::StrSplit(format, ',', absl::SkipWhitespace())) {
    part = absl::StripAsciiWhitespace(part);
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(part, absl::MaxSplits(mark, 1));
    const auto field = std::find_if(std::begin(kFields), std::end(kFields), [&](const JobField& f) {
      const char* name = accounting ? f.account : f.queue;
      return name[0] != '\0' && SameCase(name) == SameCase(words.first);
    });
    if (field == std::end(kFields)) {
      const bool known =
          std::any_of(std::begin(kUnknownToBerth), std::end(kUnknownToBerth),
                      [&](const char* name) { return SameCase(name) == SameCase(words.first); });
      return absl::InvalidArgumentError(
          absl::StrCat("Invalid field requested: \"", words.first, "\"",
                       known ? ": Berth does not measure it; use CPUTime" : ""));
    }
    JobColumn column{.field = field, .heading = accounting ? field->account : field->heading};
    column.width = accounting ? field->width : kQueueWidth;
    absl::string_view width = words.second;
    column.right = accounting && !absl::ConsumePrefix(&width, "-");
    if (!accounting) column.right = absl::ConsumePrefix(&width, ".");
    if (!width.empty() && !absl::SimpleAtoi(width, &column.width))
      return absl::InvalidArgumentError(absl::StrCat("Invalid width: ", part));
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

absl::StatusOr<std::vector<JobColumn>> ParseQueueNames(absl::string_view format) {
  return ParseNames(format, ':', false);
}

absl::StatusOr<std::vector<JobColumn>> ParseAccountNames(absl::string_view format) {
  return ParseNames(format, '%', true);
}

RowNeeds NeedsOf(const std::vector<JobColumn>& columns) {
  RowNeeds needs;
  for (const JobColumn& column : columns) {
    needs.tasks = needs.tasks || column.field->needs.tasks;
    needs.whole = needs.whole || column.field->needs.whole;
    needs.estimate = needs.estimate || column.field->needs.estimate;
  }
  return needs;
}

}  // namespace berth
