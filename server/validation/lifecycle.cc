#include "server/validation/lifecycle.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "server/validation/job.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

// An older version refuses a job with it.
bool NewerEvent(v1::LifecyclePolicy::Event event) {
  using Policy = v1::LifecyclePolicy;
  return event == Policy::TASK_EVICTED || event == Policy::TASK_PENDING ||
         event == Policy::DEVICE_UNHEALTHY || event == Policy::TASK_HUNG;
}

// The values of these actions grow with their reach.
bool Restarts(v1::LifecyclePolicy::Action action) {
  return action >= v1::LifecyclePolicy::RESTART_TASK && action <= v1::LifecyclePolicy::RESTART_JOB;
}

// Policies that answer the failures for which there is an escalation.
void CheckNoOtherRestarts(const FieldPath& parent, const PolicyList& policies, Findings& findings) {
  using Policy = v1::LifecyclePolicy;
  for (int i = 0; i < policies.size(); ++i) {
    const Policy::Event event = policies[i].event();
    const bool same =
        event == Policy::TASK_FAILED || event == Policy::TASK_HUNG || event == Policy::ANY;
    if (!same || !Restarts(policies[i].action())) continue;
    const FieldPath policy(parent, "policies", i);
    findings.Invalid(
        {policy, "action"},
        absl::StrCat("the job's escalation says what restarts after ", Policy::Event_Name(event)));
  }
}

void CheckExitCodes(const FieldPath& path, const v1::LifecyclePolicy& policy, Findings& findings) {
  if (policy.exit_codes().empty()) return;
  if (policy.event() != v1::LifecyclePolicy::TASK_FAILED) {
    findings.Invalid({path, "exit_codes"}, "only with event TASK_FAILED");
  }
  if (policy.exit_codes_size() > 255) {
    findings.Invalid({path, "exit_codes"}, "at most 255 entries");
    return;
  }
  for (int i = 0; i < policy.exit_codes_size(); ++i) {
    CheckRange({path, "exit_codes", i}, policy.exit_codes(i), 1, 255, findings);
  }
}

void CheckPolicy(const FieldPath& path, const v1::LifecyclePolicy& policy, bool watched,
                 Findings& findings) {
  using Policy = v1::LifecyclePolicy;
  CheckEnum({path, "event"}, policy.event(), findings);
  CheckEnum({path, "action"}, policy.action(), findings);
  if (policy.event() == Policy::EVENT_UNSPECIFIED) findings.Invalid({path, "event"}, "required");
  if (policy.action() == Policy::ACTION_UNSPECIFIED) findings.Invalid({path, "action"}, "required");
  CheckExitCodes(path, policy, findings);
  CheckDuration({path, "after"}, policy.after(), absl::ZeroDuration(), kMaxDuration, findings);
  if (policy.event() == Policy::TASK_HUNG && !watched) {
    findings.Invalid({path, "event"}, "TASK_HUNG needs the job's watchdog");
  }
  if (policy.event() == Policy::TASK_PENDING &&
      (!policy.has_after() || DurationFrom(policy.after()) == absl::ZeroDuration())) {
    findings.Invalid({path, "after"}, "required with TASK_PENDING: how long a task may wait");
  }
}

using SavePolicy = v1::CheckpointPolicy;

void CheckStops(const FieldPath& path, const SavePolicy& checkpoint, Findings& findings) {
  std::set<int> seen;
  for (int i = 0; i < checkpoint.before_size(); ++i) {
    const SavePolicy::Stop stop = checkpoint.before(i);
    CheckEnum({path, "before", i}, stop, findings);
    if (stop == SavePolicy::STOP_UNSPECIFIED) findings.Invalid({path, "before", i}, "required");
    if (!seen.insert(stop).second) {
      findings.Invalid({path, "before", i}, absl::StrCat(SavePolicy::Stop_Name(stop), " twice"));
    }
  }
  if (!checkpoint.before().empty() && checkpoint.signal().empty() && !checkpoint.has_grace()) {
    findings.Invalid({path, "before"}, "needs a signal or a grace to give before these stops");
  }
}

void CheckNotice(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  const SavePolicy& checkpoint = spec.checkpoint();
  if (!checkpoint.has_walltime_notice()) return;
  const FieldPath field(path, "walltime_notice");
  CheckDuration(field, checkpoint.walltime_notice(), absl::Seconds(1), kMaxKillGrace, findings);
  if (checkpoint.signal().empty()) {
    findings.Invalid(field, "needs `signal`, which is sent then");
  } else if (!SavesBefore(checkpoint, SavePolicy::WALLTIME)) {
    findings.Invalid(field, "`before` does not list WALLTIME");
  }
  const absl::Duration notice = DurationFrom(checkpoint.walltime_notice());
  if (spec.has_walltime() && notice >= DurationFrom(spec.walltime())) {
    findings.Invalid(field, absl::StrCat("must be less than the walltime, ",
                                         absl::FormatDuration(DurationFrom(spec.walltime()))));
  }
}

void CheckSavedExitCodes(const FieldPath& path, const SavePolicy& checkpoint, Findings& findings) {
  if (checkpoint.saved_exit_codes_size() > kMaxSavedExitCodes) {
    findings.Invalid({path, "saved_exit_codes"},
                     absl::StrCat("at most ", kMaxSavedExitCodes, " entries, has ",
                                  checkpoint.saved_exit_codes_size()));
    return;
  }
  if (!checkpoint.saved_exit_codes().empty() && checkpoint.signal().empty()) {
    findings.Invalid({path, "saved_exit_codes"}, "needs `signal`, which asks the task to save");
  }
  for (int i = 0; i < checkpoint.saved_exit_codes_size(); ++i) {
    CheckRange({path, "saved_exit_codes", i}, checkpoint.saved_exit_codes(i), 0, 255, findings);
  }
}

}  // namespace

void CheckPolicies(const FieldPath& parent, const PolicyList& policies, bool watched,
                   Findings& findings) {
  if (policies.size() > kMaxPolicies) {
    findings.Invalid({parent, "policies"},
                     absl::StrCat("at most ", kMaxPolicies, " entries, has ", policies.size()));
    return;
  }
  for (int i = 0; i < policies.size(); ++i) {
    CheckPolicy({parent, "policies", i}, policies[i], watched, findings);
  }
}

void CheckMembership(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                     Findings& findings) {
  CheckEnum({path, "membership"}, group.membership(), findings);
  CheckEnum({path, "role"}, group.role(), findings);
  const bool declared = group.membership() != v1::MEMBERSHIP_UNSPECIFIED;
  if (group.role() == v1::COORDINATOR) {
    if (declared) {
      findings.Invalid({path, "membership"}, "a coordinator has none: it hosts the rendezvous");
    }
    if (ReplicasOf(group) != 1 || MinAvailableOf(spec, group) != 1) {
      findings.Invalid({path, "role"},
                       "a coordinator is one task that the gang needs: replicas "
                       "and min_available must be 1");
    }
  } else if (group.membership() == v1::RIGID && MinAvailableOf(spec, group) != ReplicasOf(group)) {
    findings.Invalid({path, "membership"},
                     absl::StrCat("RIGID needs min_available = replicas, ", ReplicasOf(group),
                                  ", is ", MinAvailableOf(spec, group),
                                  ": only RENDEZVOUS and INDEPENDENT groups run incomplete"));
  }
}

void CheckCoordinator(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  int first = -1;
  for (int i = 0; i < spec.groups_size(); ++i) {
    if (spec.groups(i).role() != v1::COORDINATOR) continue;
    const FieldPath group(path, "groups", i);
    if (spec.groups_size() == 1) {
      findings.Invalid({group, "role"}, "a coordinator needs another group to coordinate");
    }
    if (first >= 0) {
      findings.Invalid({group, "role"},
                       absl::StrCat("groups[", first, "] is the coordinator already"));
    }
    first = i;
  }
}

void CheckSignal(const FieldPath& path, const std::string& signal, Findings& findings) {
  if (signal.empty() || IsStopSignal(signal)) return;
  findings.Invalid(path,
                   absl::StrCat("must be a signal name such as SIGTERM, SIGINT or SIGUSR1, is ",
                                Quoted(signal)));
}

void CheckGrace(const FieldPath& path, const google::protobuf::Duration& grace, absl::Duration most,
                const config::v1::Limits& limits, Findings& findings) {
  const absl::Duration allowed = limits.has_kill_grace() ? DurationFrom(limits.kill_grace()) : most;
  if (DurationFrom(grace) <= allowed || DurationFrom(grace) > most) {
    return CheckDuration(path, grace, absl::ZeroDuration(), most, findings);
  }
  findings.Invalid(path, absl::StrCat("at most ", absl::FormatDuration(allowed),
                                      " here (the server's limits.kill_grace), is ",
                                      absl::FormatDuration(DurationFrom(grace))));
}

void CheckEscalation(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  if (spec.escalation().empty()) return;
  const int last = spec.escalation_size() - 1;
  if (spec.escalation_size() > kMaxRungs) {
    findings.Invalid({path, "escalation"},
                     absl::StrCat("at most ", kMaxRungs, " rungs, has ", spec.escalation_size()));
  }
  if (spec.max_retries() == 0) {
    findings.Invalid({path, "escalation"}, "needs max_retries: each restart uses one");
  }
  for (int i = 0; i <= last; ++i) {
    const FieldPath rung(path, "escalation", i);
    const v1::Rung& one = spec.escalation(i);
    CheckEnum({rung, "action"}, one.action(), findings);
    if (!Restarts(one.action())) {
      findings.Invalid({rung, "action"}, "must be a restart");
    } else if (i > 0 && one.action() <= spec.escalation(i - 1).action()) {
      findings.Invalid({rung, "action"}, "must reach further than the rung before");
    }
    if (i == last && one.has_for_()) {
      findings.Invalid({rung, "for"}, "the last rung has none: nothing comes after it");
    }
    if (i == last) continue;
    CheckDuration({rung, "for"}, one.for_(), absl::Seconds(1), absl::Hours(24 * 7), findings);
  }
  CheckNoOtherRestarts(path, spec.policies(), findings);
  for (int g = 0; g < spec.groups_size(); ++g) {
    CheckNoOtherRestarts({path, "groups", g}, spec.groups(g).policies(), findings);
  }
}

void CheckIdle(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  const v1::IdleRule& idle = spec.idle();
  if (idle.devices() != 0) CheckRange({path, "devices"}, idle.devices(), 1, 99, findings);
  if (idle.has_for_()) {
    CheckDuration({path, "for"}, idle.for_(), absl::Minutes(1), absl::Hours(24), findings);
  }
  CheckEnum({path, "action"}, idle.action(), findings);
  const auto& groups = spec.groups();
  const bool any = std::any_of(groups.begin(), groups.end(), [](const v1::TaskGroup& group) {
    return group.resources().devices_size() > 0;
  });
  if (!any) findings.Invalid(path, "no group asks for devices");
}

void CheckInteractive(const FieldPath& path, const v1::Interactive& interactive,
                      Findings& findings) {
  if (!interactive.has_idle()) {
    findings.Invalid({path, "idle"}, "required: how long the job may be unused");
  } else {
    CheckDuration({path, "idle"}, interactive.idle(), absl::Minutes(1), absl::Hours(24 * 7),
                  findings);
  }
  CheckEnum({path, "action"}, interactive.action(), findings);
}

namespace {

// cuda-checkpoint saves whole GPUs of one process.
std::string WhyNotLent(const v1::JobSpec& spec) {
  int64_t tasks = 0;
  bool any = false;
  for (const v1::TaskGroup& group : spec.groups()) {
    tasks += ReplicasOf(group) + group.spares();
    for (const v1::DeviceRequest& device : group.resources().devices()) {
      any = true;
      if (!device.mig().empty()) return "instances of MIG cannot be lent";
      if (RequestsShare(device)) return "a share of a GPU cannot be lent";
      if (device.kind() != "gpu")
        return absl::StrCat("a task with devices of kind ", device.kind(), " cannot lend its GPUs");
    }
  }
  if (tasks > 1) return absl::StrCat("only a job with one task can lend its GPUs; it has ", tasks);
  return any ? "" : "it asks for no GPU that it could lend";
}

}  // namespace

void CheckPausePolicy(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  CheckEnum({path, "devices"}, spec.pause().devices(), findings);
  if (spec.pause().devices() != v1::PausePolicy::CHECKPOINT) return;
  const std::string why = WhyNotLent(spec);
  if (!why.empty()) findings.Invalid({path, "devices"}, absl::StrCat("CHECKPOINT: ", why));
}

void CheckWatchdog(const FieldPath& path, const v1::Watchdog& watchdog, Findings& findings) {
  const absl::Duration second = absl::Seconds(1);
  if (!watchdog.has_timeout()) findings.Invalid({path, "timeout"}, "required");
  CheckDuration({path, "timeout"}, watchdog.timeout(), second, kMaxWatchdog, findings);
  if (watchdog.has_start()) {
    CheckDuration({path, "start"}, watchdog.start(), second, kMaxWatchdog, findings);
  }
  CheckSignal({path, "dump_signal"}, watchdog.dump_signal(), findings);
  CheckDuration({path, "dump_wait"}, watchdog.dump_wait(), absl::ZeroDuration(), kMaxDumpWait,
                findings);
}

std::string NeedsFormat(uint32_t store_format) {
  return absl::StrCat("needs store format ", kFormatOfProgress, ", and the store has ",
                      store_format, ": run `berth cluster finalize` first");
}

namespace {

// And what agents of the version before would leave out.
void CheckSeriesFormat(const FieldPath& path, const v1::JobSpec& spec, uint32_t store_format,
                       Findings& findings) {
  if (store_format >= kFormatOfSeries) return;
  const auto refuse = [&](const FieldPath& parent, const char* field) {
    findings.Refused({parent, field},
                     absl::StrCat("needs store format ", kFormatOfSeries, ", and the store has ",
                                  store_format, ": run `berth cluster finalize` first"));
  };
  if (spec.has_array()) refuse(path, "array");
  if (spec.has_schedule()) refuse(path, "schedule");
  if (spec.min_success() != 0) refuse(path, "min_success");
  if (spec.has_run_limit()) refuse(path, "run_limit");
  if (spec.has_interactive()) refuse(path, "interactive");
  if (spec.preempt_mode() == v1::PAUSE) refuse(path, "preempt_mode");
  if (spec.has_pause()) refuse(path, "pause");
  for (int g = 0; g < spec.groups_size(); ++g) {
    const FieldPath group(path, "groups", g);
    if (spec.groups(g).volumes_size() > 0) refuse(group, "volumes");
    if (spec.groups(g).terminal()) refuse(group, "terminal");
    if (spec.groups(g).containers_size() > 0) refuse(group, "containers");
    if (spec.groups(g).host_names_size() > 0) refuse(group, "host_names");
  }
}

void CheckEnvFormat(const FieldPath& path, const v1::TaskGroup& group, uint32_t store_format,
                    Findings& findings) {
  for (int i = 0; i < group.env_size(); ++i) {
    if (group.env(i).from_file().empty()) continue;
    const FieldPath entry(path, "env", i);
    findings.Refused({entry, "from_file"},
                     absl::StrCat("needs store format ", kFormatOfAccess, ", and the store has ",
                                  store_format, ": run `berth cluster finalize` first"));
  }
}

}  // namespace

void CheckLifecycleFormat(const FieldPath& path, const v1::JobSpec& spec, uint32_t store_format,
                          Findings& findings) {
  CheckSeriesFormat(path, spec, store_format, findings);
  for (int g = 0; g < spec.groups_size() && store_format < kFormatOfAccess; ++g) {
    CheckEnvFormat({path, "groups", g}, spec.groups(g), store_format, findings);
  }
  if (store_format >= kFormatOfProgress) return;
  const auto refuse = [&](const FieldPath& field) {
    findings.Refused(field, NeedsFormat(store_format));
  };
  const auto check_policies = [&](const FieldPath& parent, const PolicyList& policies) {
    for (int i = 0; i < policies.size(); ++i) {
      const FieldPath policy(parent, "policies", i);
      if (NewerEvent(policies[i].event())) refuse({policy, "event"});
      if (policies[i].action() == v1::LifecyclePolicy::RESTART_PARTITION) {
        refuse({policy, "action"});
      }
    }
  };
  if (spec.has_watchdog()) refuse({path, "watchdog"});
  check_policies(path, spec.policies());
  for (int g = 0; g < spec.groups_size(); ++g) {
    check_policies({path, "groups", g}, spec.groups(g).policies());
  }
}

void CheckCheckpoint(const FieldPath& path, const v1::JobSpec& spec,
                     const config::v1::Limits& limits, Findings& findings) {
  const SavePolicy& checkpoint = spec.checkpoint();
  if (checkpoint.signal().empty() && !checkpoint.has_grace() && !checkpoint.has_interval()) {
    findings.Invalid(path, "requires at least one of signal, grace and interval");
  }
  CheckSignal({path, "signal"}, checkpoint.signal(), findings);
  CheckGrace({path, "grace"}, checkpoint.grace(), kMaxKillGrace, limits, findings);
  if (checkpoint.has_interval()) {
    CheckDuration({path, "interval"}, checkpoint.interval(), absl::Milliseconds(1), kMaxDuration,
                  findings);
  }
  CheckStops(path, checkpoint, findings);
  CheckNotice(path, spec, findings);
  CheckSavedExitCodes(path, checkpoint, findings);
}

}  // namespace berth
