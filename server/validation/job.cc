#include "server/validation/job.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "server/validation/containers.h"
#include "server/validation/group.h"
#include "server/validation/lifecycle.h"
#include "server/validation/resources.h"
#include "server/validation/series.h"
#include "server/validation/spares.h"
#include "server/validation/text.h"
#include "server/validation/topology.h"
#include "server/validation/values.h"
#include "support/request_id.h"

namespace berth {
namespace {

constexpr absl::Duration kZero = absl::ZeroDuration();

void CheckJobName(const FieldPath& path, const std::string& name, Findings& findings) {
  if (name.empty()) return;
  CheckDnsLabel(path, name, findings);
  if (IsGivenJobName(name)) {
    findings.Invalid(path,
                     absl::StrCat("names of the form job-NUMBER are reserved for the server; omit ",
                                  Quoted(name), " or choose another name"));
  }
}

void RefuseOutputFields(const FieldPath& path, const v1::Job& job, Findings& findings) {
  constexpr char kOutputOnly[] = "is set by the server; leave it out";
  if (job.uid() != 0) findings.Invalid({path, "uid"}, kOutputOnly);
  if (job.has_status()) findings.Invalid({path, "status"}, kOutputOnly);
  if (!job.etag().empty()) findings.Invalid({path, "etag"}, kOutputOnly);
}

void CheckTimes(const FieldPath& path, const v1::JobSpec& spec, const config::v1::Limits& limits,
                Findings& findings) {
  constexpr absl::Duration kLeast = absl::Milliseconds(1);
  if (spec.has_walltime()) {
    CheckDuration({path, "walltime"}, spec.walltime(), kLeast, kMaxDuration, findings);
  }
  if (spec.has_start_after()) CheckTimestamp({path, "start_after"}, spec.start_after(), findings);
  if (spec.has_run_limit()) {
    CheckDuration({path, "run_limit"}, spec.run_limit(), absl::Seconds(1), kMaxDuration, findings);
  }
  if (spec.has_deadline()) CheckTimestamp({path, "deadline"}, spec.deadline(), findings);
  CheckDuration({path, "ttl_after_finished"}, spec.ttl_after_finished(), kZero, kMaxDuration,
                findings);
  CheckDuration({path, "retry_backoff"}, spec.retry_backoff(), kZero, absl::Hours(24), findings);
  CheckGrace({path, "kill_grace"}, spec.kill_grace(), absl::Hours(1), limits, findings);
  if (spec.has_prepare_timeout()) {
    CheckDuration({path, "prepare_timeout"}, spec.prepare_timeout(), kLeast, absl::Hours(24),
                  findings);
  }
}

void CheckDependencies(const FieldPath& path, const v1::Job& job, Findings& findings) {
  const auto& dependencies = job.spec().dependencies();
  if (dependencies.size() > kMaxDependencies) {
    findings.Invalid({path, "dependencies"}, absl::StrCat("at most ", kMaxDependencies,
                                                          " entries, has ", dependencies.size()));
    return;
  }
  absl::flat_hash_set<absl::string_view> names;
  for (int i = 0; i < dependencies.size(); ++i) {
    const v1::JobDependency& dependency = dependencies[i];
    const FieldPath entry(path, "dependencies", i);
    CheckEnum({entry, "condition"}, dependency.condition(), findings);
    if (dependency.condition() == v1::JobDependency::CONDITION_UNSPECIFIED) {
      findings.Invalid({entry, "condition"}, "required: AFTER_OK, AFTER_ANY or AFTER_NOT_OK");
    }
    CheckJobReference({entry, "job"}, dependency.job(), findings);
    if (!names.insert(dependency.job()).second) {
      findings.Invalid({entry, "job"}, absl::StrCat(Quoted(dependency.job()), " is named twice"));
    }
  }
}

// Limits of the job as a whole, after its groups.
void CheckGang(const FieldPath& path, const v1::JobSpec& spec, const config::v1::Limits& limits,
               Findings& findings) {
  int64_t tasks = 0;
  int64_t least = 0;
  for (const v1::TaskGroup& group : spec.groups()) {
    tasks += ReplicasOf(group);
    least += MinAvailableOf(spec, group);
  }
  if (tasks > limits.tasks_per_job()) {
    findings.Invalid({path, "groups"},
                     absl::StrCat("at most ", limits.tasks_per_job(),
                                  " tasks in one job (limits.tasks_per_job), has ", tasks));
  }
  const int32_t wanted = spec.min_available();
  if (wanted == 0 || (wanted >= least && wanted <= tasks)) return;
  findings.Invalid(
      {path, "min_available"},
      wanted > tasks
          ? absl::StrCat("a gang of ", wanted, " is larger than the job's ", tasks,
                         " tasks; at most ", tasks)
          : absl::StrCat("must be at least ", least,
                         ", the sum of the groups' min_available, or 0 for that, is ", wanted));
}

void CheckMinSuccess(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  if (spec.min_success() == 0) return;
  int64_t tasks = 0;
  for (const v1::TaskGroup& group : spec.groups()) {
    if (group.role() == v1::ROLE_UNSPECIFIED || group.role() == v1::WORKER)
      tasks += ReplicasOf(group);
  }
  CheckRange({path, "min_success"}, spec.min_success(), 1, std::max<int64_t>(tasks, 1), findings);
}

void CheckPreemptMode(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  CheckEnum(path, spec.preempt_mode(), findings);
  if (spec.preempt_mode() != v1::PAUSE || !spec.has_preemptible() || spec.preemptible()) return;
  findings.Invalid(path, "PAUSE needs a job that is preemptible: leave `preemptible` out, or true");
}

// Groups that wait for others come later: only their minimums count when the job starts.
void CheckReachableMinimum(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  int64_t reach = 0, tasks = 0;
  for (const v1::TaskGroup& group : spec.groups()) {
    const int32_t replicas = ReplicasOf(group);
    tasks += replicas;
    reach += group.depends_on().empty() ? replicas : MinAvailableOf(spec, group);
  }
  if (spec.min_available() <= reach || spec.min_available() > tasks) return;
  findings.Invalid({path, "min_available"},
                   absl::StrCat("must be at most ", reach, ", is ", spec.min_available(),
                                ": groups that depend on others count only with their "
                                "min_available"));
}

void CheckGroups(const FieldPath& path, const v1::JobSpec& spec, const config::v1::Limits& limits,
                 Findings& findings) {
  if (spec.groups().empty() || spec.groups_size() > kMaxGroups) {
    findings.Invalid({path, "groups"},
                     absl::StrCat("must be 1..", kMaxGroups, " groups, has ", spec.groups_size()));
    return;
  }
  ResourceTotals totals;
  for (int i = 0; i < spec.groups_size(); ++i) {
    CheckGroup({path, "groups", i}, spec, spec.groups(i), limits, totals, findings);
  }
  CheckTotals({path, "groups"}, totals, findings);
  CheckGang(path, spec, limits, findings);
  CheckReachableMinimum(path, spec, findings);
  CheckCoordinator(path, spec, findings);
  CheckSpareGroups(path, spec, findings);
  CheckGroupGraph(path, spec, findings);
  CheckHostNames(path, spec, findings);
}

// Whether the spares can be added to the job's groups.
bool CheckSpares(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  bool good = true;
  for (int i = 0; i < spec.groups_size(); ++i) {
    const v1::TaskGroup& group = spec.groups(i);
    if (group.spares() == 0) continue;
    good = CheckSparesOf({path, "groups", i}, spec, group, findings) && good;
  }
  return good;
}

bool CheckAllCopies(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  bool good = true;
  for (int i = 0; i < spec.groups_size(); ++i) {
    if (!spec.groups(i).has_copies_of()) continue;
    good = CheckCopies({path, "groups", i}, spec, spec.groups(i), findings) && good;
  }
  return good;
}

// The groups as the job will have them.
void CheckExpanded(const FieldPath& path, const v1::JobSpec& spec, const config::v1::Limits& limits,
                   Findings& findings) {
  const bool spares = CheckSpares(path, spec, findings);
  if (!CheckAllCopies(path, spec, findings) || !spares || !AnyShorthand(spec)) {
    return CheckGroups(path, spec, limits, findings);
  }
  v1::JobSpec expanded = spec;
  ExpandShorthand(&expanded);
  CheckGroups(path, expanded, limits, findings);
}

void CheckPriorityClass(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  if (spec.priority_class().empty()) return;
  CheckDnsLabel(path, spec.priority_class(), findings);
  if (spec.priority() == 0) return;
  findings.Invalid(
      path, absl::StrCat("sets the priority; leave out priority, which is ", spec.priority()));
}

void CheckSpec(const FieldPath& path, const v1::Job& job, const config::v1::Limits& limits,
               Findings& findings) {
  const v1::JobSpec& spec = job.spec();
  if (!spec.queue().empty()) CheckDnsLabel({path, "queue"}, spec.queue(), findings);
  CheckRange({path, "priority"}, spec.priority(), -kMaxPriority, kMaxPriority, findings);
  CheckPriorityClass({path, "priority_class"}, spec, findings);
  CheckTimes(path, spec, limits, findings);
  CheckExpanded(path, spec, limits, findings);
  CheckMinSuccess(path, spec, findings);
  CheckSeries(path, spec, limits, findings);
  CheckPolicies(path, spec.policies(), spec.has_watchdog(), findings);
  CheckRange({path, "max_retries"}, spec.max_retries(), 0, kMaxRetries, findings);
  CheckDependencies(path, job, findings);
  CheckEnum({path, "on_node_loss"}, spec.on_node_loss(), findings);
  CheckEnum({path, "strategy"}, spec.strategy(), findings);
  CheckEnum({path, "migration"}, spec.migration(), findings);
  CheckEnum({path, "preemption_policy"}, spec.preemption_policy(), findings);
  CheckPreemptMode({path, "preempt_mode"}, spec, findings);
  CheckDeviceStrategy({path, "device_strategy"}, spec.device_strategy(), findings);
  CheckSignal({path, "kill_signal"}, spec.kill_signal(), findings);
  if (spec.has_checkpoint()) {
    CheckCheckpoint({path, "checkpoint"}, spec, limits, findings);
  }
  CheckEscalation(path, spec, findings);
  if (spec.has_idle()) CheckIdle({path, "idle"}, spec, findings);
  if (spec.has_interactive()) CheckInteractive({path, "interactive"}, spec.interactive(), findings);
  if (spec.has_pause()) CheckPausePolicy({path, "pause"}, spec, findings);
  if (spec.has_watchdog()) CheckWatchdog({path, "watchdog"}, spec.watchdog(), findings);
  if (!spec.user().empty() && !IsUserName(spec.user())) {
    findings.Invalid({path, "user"},
                     absl::StrCat("must be at most 128 letters, digits, '.', '_', '-', '@' and "
                                  "'+', is ",
                                  Quoted(spec.user())));
  }
  if (!spec.run_as().empty() && !IsUserName(spec.run_as())) {
    findings.Invalid({path, "run_as"},
                     absl::StrCat("must be at most 128 letters, digits, '.', '_', '-', '@' and "
                                  "'+', is ",
                                  Quoted(spec.run_as())));
  }
  CheckLabels(path, "labels", spec.labels(), findings);
  CheckAnnotations(path, "annotations", spec.annotations(), findings);
  if (spec.has_topology()) CheckTopology({path, "topology"}, spec.topology(), findings);
  CheckJobAffinity({path, "affinity"}, spec.affinity(), findings);
}

}  // namespace

void CheckJob(const FieldPath& path, const v1::Job& job, size_t bytes,
              const config::v1::Limits& limits, Findings& findings) {
  CheckJobName({path, "name"}, job.name(), findings);
  RefuseOutputFields(path, job, findings);
  const FieldPath spec_path(path, "spec");
  if (static_cast<int64_t>(bytes) > limits.job_bytes()) {
    findings.Invalid(spec_path, absl::StrCat("at most ", limits.job_bytes(),
                                             " bytes (limits.job_bytes), has ", bytes));
    return;
  }
  CheckSpec(spec_path, job, limits, findings);
}

void CheckRequestId(absl::string_view request_id, Findings& findings) {
  if (request_id.size() <= kMaxRequestIdBytes) return;
  const FieldPath root;
  findings.Invalid({root, "request_id"},
                   absl::StrCat("at most ", kMaxRequestIdBytes, " bytes, has ", request_id.size()));
}

absl::Status ValidateUpdateJob(const v1::UpdateJobRequest& request) {
  Findings findings;
  const FieldPath root;
  const FieldPath job(root, "job");
  const FieldPath spec(job, "spec");
  CheckJobReference({job, "name"}, request.job().name(), findings);
  const auto& paths = request.update_mask().paths();
  if (paths.empty()) {
    findings.Invalid({root, "update_mask"},
                     "required: one or more of spec.priority, spec.labels, spec.walltime");
  }
  for (int i = 0; i < paths.size(); ++i) {
    if (paths[i] == "spec.priority") {
      CheckRange({spec, "priority"}, request.job().spec().priority(), -kMaxPriority, kMaxPriority,
                 findings);
    } else if (paths[i] == "spec.labels") {
      CheckLabels(spec, "labels", request.job().spec().labels(), findings);
    } else if (paths[i] == "spec.walltime") {
      if (!request.job().spec().has_walltime()) continue;  // removes the walltime
      CheckDuration({spec, "walltime"}, request.job().spec().walltime(), absl::Milliseconds(1),
                    kMaxDuration, findings);
    } else if (KnownField(v1::Job::descriptor(), paths[i])) {
      findings.Unbuilt({root, "update_mask"}, absl::StrCat("changing ", paths[i], " of a job"));
    } else {
      findings.Invalid({root, "update_mask"},
                       absl::StrCat("a job has no field ", Quoted(paths[i])));
    }
  }
  return findings.ToStatus();
}

}  // namespace berth
