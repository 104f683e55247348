#include <signal.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "clients/slurm/commands.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/job_rows.h"
#include "clients/slurm/job_signal.h"
#include "clients/slurm/job_state.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/values.h"

namespace berth {
namespace {

struct Cancelling {
  int signal = 0;  // 0: the job ends
  SignalTo to = SignalTo::kSteps;
  bool quiet = false;
};

absl::StatusOr<Cancelling> CancellingOf(const SlurmArguments& arguments) {
  Cancelling cancelling{.quiet = arguments.Has("quiet")};
  if (arguments.Has("batch")) cancelling.to = SignalTo::kBatch;
  if (arguments.Has("full")) cancelling.to = SignalTo::kBoth;
  if (const std::string* text = arguments.Find("signal")) {
    const auto signal = ParseSignal(*text);
    if (!signal.ok()) return signal.status();
    cancelling.signal = *signal;
  } else if (cancelling.to == SignalTo::kBatch) {
    return absl::InvalidArgumentError("--batch: needs --signal");
  }
  return cancelling;
}

absl::Status CancelNamed(SlurmContext& context, const std::string& name, bool force) {
  v1::CancelJobRequest request;
  request.set_name(name);
  request.set_reason("scancel");
  request.set_force(force);
  const auto cancelled = context.Call(&v1::JobService::StubInterface::CancelJob, request);
  // As in Slurm, a job that has ended is no error.
  if (absl::IsFailedPrecondition(cancelled.status())) return absl::OkStatus();
  return cancelled.status();
}

absl::Status CancelOne(SlurmContext& context, const v1::Job& job, const Cancelling& cancelling) {
  // Nothing survives KILL: the job ends.
  const bool kills = cancelling.signal == SIGKILL && cancelling.to != SignalTo::kBatch;
  if (cancelling.signal == 0 || kills)
    return CancelNamed(context, job.name(), kills && StateOf(job).brief == std::string("R"));
  if (job.status().state() != v1::JOB_RUNNING) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", NumberOf(job), " does not run: it gets no signal"));
  }
  return SignalSlurmJob(context, job, cancelling.signal, cancelling.to);
}

// The jobs of a number: an array's own are cancelled through the array.
absl::StatusOr<std::vector<v1::Job>> JobsOfNumber(SlurmContext& context, const std::string& text,
                                                  const Cancelling& cancelling) {
  const auto numbers = ParseJobNumbers(text, /*steps=*/false);
  if (!numbers.ok()) return numbers.status();
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return client.status();
  std::vector<v1::Job> jobs;
  for (const JobNumber& number : *numbers) {
    auto job = JobByNumber(**client, number);
    if (absl::IsNotFound(job.status()) && number.index.has_value() &&
        JobByNumber(**client, {.uid = number.uid, .index = {}}).ok()) {
      return absl::UnimplementedError(absl::StrCat("index ", *number.index, " of array ",
                                                   number.uid,
                                                   " has no job: it is not of the array, has been "
                                                   "deleted, or ends only with the array (scancel ",
                                                   number.uid, ")"));
    }
    if (!job.ok()) return job.status();
    if (!job->spec().has_array() || cancelling.signal == 0) {
      jobs.push_back(*std::move(job));
      continue;
    }
    const auto rows = FindRows(context, {.numbers = {number}, .states = {"RUNNING"}}, {});
    if (!rows.ok()) return rows.status();
    for (const JobRow& row : *rows) jobs.push_back(row.job);
  }
  return jobs;
}

bool HasFilter(const SlurmArguments& arguments) {
  for (const char* option :
       {"account", "jobname", "name", "me", "nodelist", "partition", "qos", "state", "user"}) {
    if (arguments.Has(option)) return true;
  }
  return false;
}

absl::StatusOr<std::vector<v1::Job>> SelectedJobs(SlurmContext& context,
                                                  const SlurmArguments& arguments,
                                                  const Cancelling& cancelling) {
  auto query = QueryOf(arguments);
  if (!query.ok()) return query.status();
  if (const std::string* state = arguments.Find("state")) {
    auto states = ParseStates(*state);
    if (!states.ok()) return states.status();
    query->states = *std::move(states);
  }
  for (const std::string& operand : arguments.operands) {
    const auto numbers = ParseJobNumbers(operand);
    if (!numbers.ok()) return numbers.status();
    query->numbers.insert(query->numbers.end(), numbers->begin(), numbers->end());
  }
  const auto rows = FindRows(context, *query, {});
  if (!rows.ok()) return rows.status();
  std::vector<v1::Job> jobs;
  for (const JobRow& row : *rows) {
    if (row.unmade.empty()) {
      jobs.push_back(row.job);
    } else if (cancelling.signal == 0 && query->states.empty()) {
      jobs.push_back(row.job);
    } else if (cancelling.signal == 0) {
      return absl::UnimplementedError(
          absl::StrCat("--state: the indexes ", row.unmade, " of array ", row.job.uid(),
                       " have no jobs yet and end only with the array: scancel ", row.job.uid()));
    }
  }
  return jobs;
}

}  // namespace

int RunScancel(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, ScancelCommand(), words);
  if (begun.done) return begun.exit_code;
  const SlurmArguments& arguments = begun.arguments;
  const auto cancelling = CancellingOf(arguments);
  if (!cancelling.ok()) return context.Fail(cancelling.status());
  const bool filtered = HasFilter(arguments);
  if (arguments.operands.empty() && !filtered)
    return context.Fail(absl::InvalidArgumentError("No job identification provided"));
  int code = 0;
  const auto end = [&](const absl::StatusOr<std::vector<v1::Job>>& jobs) {
    if (!jobs.ok()) {
      if (!cancelling->quiet || !absl::IsNotFound(jobs.status()))
        code = context.Fail(jobs.status());
      return;
    }
    for (const v1::Job& job : *jobs) {
      const absl::Status status = CancelOne(context, job, *cancelling);
      if (!status.ok()) code = context.Fail(status);
    }
  };
  if (filtered) {
    end(SelectedJobs(context, arguments, *cancelling));
    return code;
  }
  for (const std::string& operand : arguments.operands)
    end(JobsOfNumber(context, operand, *cancelling));
  return code;
}

}  // namespace berth
