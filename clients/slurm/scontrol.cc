#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/topology/node_names.h"
#include "clients/slurm/commands.h"
#include "clients/slurm/hosts.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/job_label.h"
#include "clients/slurm/job_rows.h"
#include "clients/slurm/job_state.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/scontrol_show.h"
#include "clients/slurm/values.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

// "123", "job=123", "JobId=123".
absl::string_view NumberWord(absl::string_view word) {
  const size_t equals = word.find('=');
  return equals == absl::string_view::npos ? word : word.substr(equals + 1);
}

// The jobs that words name; with `members`, the jobs that an array has made, in place of it.
absl::StatusOr<std::vector<v1::Job>> NamedJobs(SlurmContext& context, const Words& words,
                                               bool members) {
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return client.status();
  std::vector<v1::Job> jobs;
  for (const std::string& word : words) {
    for (absl::string_view part : absl::StrSplit(NumberWord(word), ',', absl::SkipEmpty())) {
      const auto numbers = ParseJobNumbers(part);
      if (!numbers.ok()) return numbers.status();
      for (const JobNumber& number : *numbers) {
        auto job = JobByNumber(**client, number);
        if (!job.ok()) return job.status();
        if (!members || !job->spec().has_array()) {
          jobs.push_back(*std::move(job));
          continue;
        }
        const auto rows =
            FindRows(context, {.numbers = {number}, .states = {"RUNNING", "CONFIGURING"}}, {});
        if (!rows.ok()) return rows.status();
        for (const JobRow& row : *rows) jobs.push_back(row.job);
      }
    }
  }
  return jobs;
}

absl::Status Hold(SlurmContext& context, const v1::Job& job) {
  const v1::JobState state = job.status().state();
  const bool waits = state == v1::JOB_PENDING || state == v1::JOB_HELD ||
                     state == v1::JOB_SUSPENDED || job.spec().has_array();
  if (!waits) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", NumberOf(job), " does not wait: use scontrol requeuehold to stop it"));
  }
  v1::SuspendJobRequest request;
  request.set_name(job.name());
  return context.Call(&JobStub::SuspendJob, request).status();
}

absl::Status Release(SlurmContext& context, const v1::Job& job) {
  v1::ResumeJobRequest request;
  request.set_name(job.name());
  return context.Call(&JobStub::ResumeJob, request).status();
}

bool MayRequeue(const v1::Job& job) {
  return std::none_of(job.spec().policies().begin(), job.spec().policies().end(),
                      [](const v1::LifecyclePolicy& policy) {
                        return policy.event() == v1::LifecyclePolicy::NODE_LOST &&
                               policy.action() == v1::LifecyclePolicy::ABORT;
                      });
}

absl::Status Requeue(SlurmContext& context, const v1::Job& job) {
  if (!MayRequeue(job)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", NumberOf(job), " was submitted with --no-requeue"));
  }
  if (job.status().state() == v1::JOB_PENDING || job.status().state() == v1::JOB_HELD)
    return absl::FailedPreconditionError(
        absl::StrCat("job ", NumberOf(job), " is pending execution"));
  v1::RequeueJobRequest request;
  request.set_name(job.name());
  return context.Call(&JobStub::RequeueJob, request).status();
}

absl::Status RequeueHeld(SlurmContext& context, const v1::Job& job) {
  if (!MayRequeue(job)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", NumberOf(job), " was submitted with --no-requeue"));
  }
  v1::SuspendJobRequest request;
  request.set_name(job.name());
  return context.Call(&JobStub::SuspendJob, request).status();
}

using Change = absl::Status (*)(SlurmContext&, const v1::Job&);

int ForJobs(SlurmContext& context, const Words& words, bool members, Change change) {
  if (words.empty()) return context.Fail(absl::InvalidArgumentError("name a job"));
  const auto jobs = NamedJobs(context, words, members);
  if (!jobs.ok()) return context.Fail(jobs.status());
  int code = 0;
  for (const v1::Job& job : *jobs) {
    const absl::Status status = change(context, job);
    if (!status.ok()) code = context.Fail(status);
  }
  return code;
}

// ---- update

absl::Status SetUpdate(const std::string& key, const std::string& value, const v1::Job& old,
                       v1::UpdateJobRequest* request) {
  v1::JobSpec& spec = *request->mutable_job()->mutable_spec();
  const std::string name = absl::AsciiStrToLower(key);
  if (name == "timelimit") {
    const auto limit = ParseSlurmTime(value);
    if (!limit.ok()) return limit.status();
    if (*limit != absl::InfiniteDuration()) ToProto(*limit, spec.mutable_walltime());
    request->mutable_update_mask()->add_paths("spec.walltime");
    return absl::OkStatus();
  }
  if (name == "priority" || name == "nice") {
    int32_t number = 0;
    if (!absl::SimpleAtoi(value, &number))
      return absl::InvalidArgumentError(absl::StrCat(key, ": expected a number, got ", value));
    spec.set_priority(name == "nice" ? -number : number);
    request->mutable_update_mask()->add_paths("spec.priority");
    return absl::OkStatus();
  }
  const char* label = name == "jobname" || name == "name" ? kNameLabel
                      : name == "account"                 ? kAccountLabel
                                                          : nullptr;
  if (label == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(key,
                     " cannot be changed: only TimeLimit, Priority, Nice, JobName and Account can; "
                     "cancel the job and submit it again"));
  }
  if (spec.labels().empty()) *spec.mutable_labels() = old.spec().labels();
  auto& labels = *spec.mutable_labels();
  for (auto at = labels.begin(); at != labels.end();)
    at = absl::StartsWith(at->first, label) ? labels.erase(at) : std::next(at);
  request->mutable_update_mask()->add_paths("spec.labels");
  return SetTextLabel(&spec, label, value);
}

int Update(SlurmContext& context, const Words& words) {
  std::string number;
  std::vector<std::pair<std::string, std::string>> changes;
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const std::string key = absl::AsciiStrToLower(parts.first);
    if (key == "jobid" || key == "job") {
      number = parts.second;
    } else if (key == "nodename" || key == "partitionname" || key == "reservationname") {
      return context.Fail(absl::UnimplementedError(
          absl::StrCat(parts.first, " is not built: use berth node drain, or berth queue update")));
    } else {
      changes.push_back(parts);
    }
  }
  if (number.empty() || changes.empty())
    return context.Fail(absl::InvalidArgumentError("expected JobId=NUMBER NAME=VALUE..."));
  const auto jobs = NamedJobs(context, {number}, false);
  if (!jobs.ok()) return context.Fail(jobs.status());
  for (const v1::Job& job : *jobs) {
    v1::UpdateJobRequest request;
    request.mutable_job()->set_name(job.name());
    for (const auto& [key, value] : changes) {
      const absl::Status set = SetUpdate(key, value, job, &request);
      if (!set.ok()) return context.Fail(set);
    }
    const auto updated = context.Call(&JobStub::UpdateJob, request);
    if (!updated.ok()) return context.Fail(updated.status());
  }
  return 0;
}

// ---- show

int ShowHostnames(SlurmContext& context, const Words& words) {
  const char* own = std::getenv("SLURM_JOB_NODELIST");
  const std::string list = words.empty() ? own == nullptr ? "" : own : words.front();
  NameLists lists;
  const auto names = lists.Expand(list);
  if (!names.ok()) return context.Fail(names.status());
  for (const std::string& name : *names) context.out() << name << "\n";
  return 0;
}

int ShowHostlist(SlurmContext& context, const Words& words) {
  if (words.empty()) return context.Fail(absl::InvalidArgumentError("expected names of hosts"));
  NameLists lists;
  const auto names = lists.Expand(words.front());
  if (!names.ok()) return context.Fail(names.status());
  context.out() << CompressHosts(*names) << "\n";
  return 0;
}

int Show(SlurmContext& context, const SlurmArguments& arguments, Words words) {
  if (words.empty()) return context.Fail(absl::InvalidArgumentError("show what? job, node ..."));
  std::string what = absl::AsciiStrToLower(words.front());
  if (const size_t equals = what.find('='); equals != std::string::npos) {  // show job=123
    words.insert(words.begin() + 1, words.front().substr(equals + 1));
    what = what.substr(0, equals);
  }
  words.erase(words.begin());
  const ShowStyle style{.one_line = arguments.Has("oneliner"), .json = arguments.Has("json")};
  if (what == "hostnames" || what == "hostname") return ShowHostnames(context, words);
  if (what == "hostlist" || what == "hostlistsorted") return ShowHostlist(context, words);
  if (what == "job" || what == "jobs" || what == "jobid") return ShowJobs(context, words, style);
  if (what == "node" || what == "nodes") return ShowNodes(context, words, style);
  if (what == "partition" || what == "partitions") return ShowPartitions(context, words, style);
  if (what == "config") return ShowConfig(context);
  return context.Fail(absl::UnimplementedError(absl::StrCat(
      "show ", what, " is not built: job, node, partition, config, hostnames and hostlist are")));
}

}  // namespace

int RunScontrol(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, ScontrolCommand(), words);
  if (begun.done) return begun.exit_code;
  Words rest = begun.arguments.operands;
  if (rest.empty()) {
    return context.Fail(absl::UnimplementedError(
        "it has no prompt: write the command after scontrol, such as scontrol show job 123"));
  }
  const std::string verb = absl::AsciiStrToLower(rest.front());
  rest.erase(rest.begin());
  if (verb == "show") return Show(context, begun.arguments, rest);
  if (verb == "hold" || verb == "uhold") return ForJobs(context, rest, false, Hold);
  if (verb == "release") return ForJobs(context, rest, false, Release);
  if (verb == "requeue") return ForJobs(context, rest, true, Requeue);
  if (verb == "requeuehold") return ForJobs(context, rest, true, RequeueHeld);
  if (verb == "update") return Update(context, rest);
  if (verb == "ping") return Ping(context);
  if (verb == "version") {
    context.out() << "slurm 23.11.0\n";
    return 0;
  }
  const bool stops = verb == "suspend" || verb == "resume";
  return context.Fail(absl::UnimplementedError(absl::StrCat(
      verb, " is not built: ",
      stops ? "Berth does not stop processes in place; use scontrol requeuehold and release"
            : "use berth; the verbs here are show, hold, release, requeue, requeuehold, update, "
              "ping")));
}

}  // namespace berth
