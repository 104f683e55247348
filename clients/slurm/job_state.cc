#include "clients/slurm/job_state.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

constexpr SlurmState kPending = {"PENDING", "PD", false};
constexpr SlurmState kConfiguring = {"CONFIGURING", "CF", false};
constexpr SlurmState kRunning = {"RUNNING", "R", false};
constexpr SlurmState kRequeued = {"REQUEUED", "RQ", false};
constexpr SlurmState kCompleting = {"COMPLETING", "CG", false};
constexpr SlurmState kCompleted = {"COMPLETED", "CD", true};
constexpr SlurmState kFailed = {"FAILED", "F", true};
constexpr SlurmState kCancelled = {"CANCELLED", "CA", true};
constexpr SlurmState kTimeout = {"TIMEOUT", "TO", true};
constexpr SlurmState kOutOfMemory = {"OUT_OF_MEMORY", "OOM", true};
constexpr SlurmState kNodeFail = {"NODE_FAIL", "NF", true};
constexpr SlurmState kPreempted = {"PREEMPTED", "PR", true};
// Known names of states that no job of Berth is in.
constexpr SlurmState kSuspended = {"SUSPENDED", "S", false};
constexpr SlurmState kBootFail = {"BOOT_FAIL", "BF", true};
constexpr SlurmState kDeadline = {"DEADLINE", "DL", true};
constexpr SlurmState kStopped = {"STOPPED", "ST", false};
constexpr SlurmState kResizing = {"RESIZING", "RS", false};
constexpr SlurmState kRevoked = {"REVOKED", "RV", true};
constexpr SlurmState kSpecialExit = {"SPECIAL_EXIT", "SE", false};

constexpr const SlurmState* kAll[] = {
    &kPending,   &kConfiguring, &kRunning,     &kRequeued, &kCompleting, &kCompleted, &kFailed,
    &kCancelled, &kTimeout,     &kOutOfMemory, &kNodeFail, &kPreempted,  &kSuspended, &kBootFail,
    &kDeadline,  &kStopped,     &kResizing,    &kRevoked,  &kSpecialExit};

// "worker-0 was lost on n3": what follows the task.
absl::string_view BehindTask(absl::string_view message) {
  const size_t blank = message.find(' ');
  return blank == absl::string_view::npos ? "" : message.substr(blank + 1);
}

const SlurmState& FailureOf(absl::string_view message) {
  const absl::string_view rest = BehindTask(message);
  if (absl::StartsWith(message, "walltime of ") || absl::StartsWith(message, "run limit"))
    return kTimeout;
  if (absl::StartsWith(message, "cannot start any more: ")) return kCancelled;
  if (absl::StartsWith(rest, "ran out of memory")) return kOutOfMemory;
  if (absl::StartsWith(rest, "was lost")) return kNodeFail;
  if (absl::StartsWith(rest, "was evicted")) return kPreempted;
  return kFailed;
}

const char* ReasonName(v1::WaitReason::Code code) {
  switch (code) {
    case v1::WaitReason::INSUFFICIENT_RESOURCES:
    case v1::WaitReason::RESERVED:
    case v1::WaitReason::GUARANTEE_KEPT:
    case v1::WaitReason::NODES_BACKING_OFF:
    case v1::WaitReason::NODE_FENCING:
    case v1::WaitReason::WAITS_FOR_BETTER_TIER:
    case v1::WaitReason::JOB_AFFINITY:
      return "Resources";
    case v1::WaitReason::QUEUE_LIMIT:
    case v1::WaitReason::NON_PREEMPTIBLE_QUOTA:
      return "QOSGrpCpuLimit";
    case v1::WaitReason::QUEUE_RUNNING_JOBS:
      return "QOSMaxJobsPerUserLimit";
    case v1::WaitReason::QUEUE_CLOSED:
      return "PartitionDown";
    case v1::WaitReason::NO_MATCHING_NODE:
    case v1::WaitReason::NEVER_FITS:
      return "BadConstraints";
    case v1::WaitReason::DEPENDENCY:
    case v1::WaitReason::GROUP_DEPENDENCY:
      return "Dependency";
    case v1::WaitReason::START_TIME:
    case v1::WaitReason::RETRY_BACKOFF:
      return "BeginTime";
    case v1::WaitReason::USER_HOLD:
      return "JobHeldUser";
    case v1::WaitReason::BEHIND_HEAD:
    case v1::WaitReason::NOT_CONSIDERED:
      return "Priority";
    default:
      return "None";
  }
}

}  // namespace

const SlurmState& StateOf(const v1::Job& job) {
  switch (job.status().state()) {
    case v1::JOB_BINDING:
      return kConfiguring;
    case v1::JOB_RUNNING:
      return kRunning;
    case v1::JOB_RESTARTING:
      return kRequeued;
    case v1::JOB_COMPLETING:
      return kCompleting;
    case v1::JOB_SUCCEEDED:
      return kCompleted;
    case v1::JOB_CANCELLED:
      return kCancelled;
    case v1::JOB_FAILED:
      return FailureOf(job.status().message());
    default:
      return kPending;  // also on hold: it has no places
  }
}

std::string ReasonOf(const v1::Job& job) {
  const SlurmState& state = StateOf(job);
  if (&state == &kCancelled && job.status().state() == v1::JOB_FAILED)
    return "DependencyNeverSatisfied";
  if (&state == &kTimeout) return "TimeLimit";
  if (&state == &kFailed) return "NonZeroExitCode";
  if (&state == &kOutOfMemory) return "OutOfMemory";
  if (&state == &kNodeFail) return "NodeDown";
  if (&state != &kPending) return "None";
  if (job.spec().suspended() || job.status().state() == v1::JOB_SUSPENDED) return "JobHeldUser";
  if (job.status().reasons().empty()) return "None";
  return ReasonName(job.status().reasons(0).code());
}

absl::StatusOr<std::set<std::string>> ParseStates(const std::string& text) {
  std::set<std::string> states;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::string name = absl::AsciiStrToUpper(part);
    if (name == "ALL") return std::set<std::string>();
    const size_t before = states.size();
    for (const SlurmState* state : kAll) {
      if (name == state->name || name == state->brief) states.insert(state->name);
    }
    if (states.size() > before || name == "NODE_FAIL") continue;
    std::vector<std::string> known;
    for (const SlurmState* state : kAll) known.emplace_back(state->name);
    return absl::InvalidArgumentError(absl::StrCat(
        "Invalid job state specified: ", part, "; the states are ", absl::StrJoin(known, ", ")));
  }
  return states;
}

}  // namespace berth
