#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/topology/node_names.h"
#include "clients/slurm/commands.h"
#include "clients/slurm/held_job.h"
#include "clients/slurm/hosts.h"
#include "clients/slurm/job_directory.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/step_run.h"
#include "clients/slurm/submit.h"
#include "clients/slurm/values.h"

namespace berth {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(100);
constexpr int kUsualWait = 0;  // for ever

absl::StatusOr<StepPlan> PlanOf(const SlurmArguments& arguments, const Variables& own) {
  StepPlan plan{.command = arguments.operands};
  const auto text = [&](const char* option) {
    const std::string* given = arguments.Find(option);
    return given == nullptr ? std::string() : *given;
  };
  plan.stdout_pattern = text("output");
  plan.stderr_pattern = text("error");
  plan.input = text("input");
  for (const std::string* pattern : {&plan.stdout_pattern, &plan.stderr_pattern}) {
    if (absl::Status status = CheckPattern(*pattern); !status.ok()) return status;
  }
  plan.append = text("open-mode") == "append";
  plan.label = arguments.Has("label");
  plan.kill_on_bad_exit = arguments.Has("kill-on-bad-exit") && text("kill-on-bad-exit") != "0";
  const auto wait = ParseSlurmCount("wait", arguments.Has("wait") ? text("wait") : "0", 0, 1 << 30);
  if (!wait.ok()) return wait.status();
  if (*wait > kUsualWait) plan.wait = absl::Seconds(*wait);
  if (arguments.Has("mpi") && text("mpi") != "none" && text("mpi") != "list") {
    return absl::UnimplementedError(absl::StrCat(
        "--mpi=", text("mpi"), ": there is no PMI or PMIx server: write mpirun COMMAND ",
        "instead of srun COMMAND; it finds the job's nodes by itself"));
  }
  plan.directory = text("chdir").empty() ? CurrentDirectory() : text("chdir");
  plan.variables = own;
  if (arguments.Has("export") && text("export") != "ALL") {
    const auto exported = ExportedVariables(text("export"), own);
    if (!exported.ok()) return exported.status();
    plan.variables = *exported;
    for (const auto& [name, value] : own) {
      if (absl::StartsWith(name, "SLURM")) plan.variables[name] = value;
    }
  }
  return plan;
}

absl::StatusOr<StepRequest> RequestOf(const SlurmArguments& arguments) {
  StepRequest request;
  const std::pair<const char*, int StepRequest::*> counts[] = {
      {"ntasks", &StepRequest::tasks},
      {"nodes", &StepRequest::nodes},
      {"ntasks-per-node", &StepRequest::tasks_per_node},
      {"cpus-per-task", &StepRequest::cpus_per_task}};
  for (const auto& [option, member] : counts) {
    const std::string* given = arguments.Find(option);
    if (given == nullptr) continue;
    const auto count = ParseSlurmCount(option, given->substr(0, given->find('-')), 1, 1'000'000);
    if (!count.ok()) return count.status();
    request.*member = *count;
  }
  return request;
}

// --nodelist: numbers of the job's nodes.
absl::Status ReadNodeList(const SlurmArguments& arguments, const StepJob& job,
                          StepRequest* request) {
  const std::string* list = arguments.Find("nodelist");
  if (list == nullptr) return absl::OkStatus();
  NameLists lists;
  const auto names = lists.Expand(*list);
  if (!names.ok()) return names.status();
  const std::vector<std::string>& nodes = job.allocation.nodes;
  for (const std::string& name : *names) {
    const auto at = std::find(nodes.begin(), nodes.end(), name);
    if (at == nodes.end()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--nodelist: ", name, " is no node of the job, which has ", CompressHosts(nodes)));
    }
    request->only.insert(static_cast<int>(at - nodes.begin()));
  }
  if (request->nodes == 0) request->nodes = static_cast<int>(request->only.size());
  return absl::OkStatus();
}

// Options that change a job, which a step cannot.
absl::Status CheckStepOptions(const SlurmArguments& arguments, const cli::v1::SlurmBatch& batch) {
  for (const char* option :
       {"gres", "gpus", "gpus-per-node", "gpus-per-task", "array", "dependency", "hold", "begin",
        "partition", "qos", "constraint", "exclude"}) {
    if (!arguments.Has(option)) continue;
    const bool gpus = absl::StartsWith(option, "g");
    if (gpus && batch.gpus_per_node() == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("--", option, ": the job has no GPUs: ask for them in sbatch or salloc"));
    }
    if (gpus) {
      return absl::UnimplementedError(
          absl::StrCat("--", option,
                       " of a step is not built: its tasks see the GPUs of the job; "
                       "give sbatch --gpus-per-task, or set CUDA_VISIBLE_DEVICES"));
    }
    return absl::UnimplementedError(
        absl::StrCat("--", option, ": a step has the places of its job"));
  }
  return absl::OkStatus();
}

// Takes the step's CPUs in the job's book; waits while other steps hold them.
absl::StatusOr<StepPlan> TakePlaces(SlurmContext& context, const StepJob& job,
                                    const StepRequest& request, bool overlap, StepPlan plan) {
  const auto nodes = static_cast<int>(job.allocation.nodes.size());
  const int each =
      request.cpus_per_task > 0 ? request.cpus_per_task : std::max(job.batch.cpus_per_task(), 1);
  for (bool told = false;; told = true) {
    {
      StepBook book(job.directory);
      const std::vector<int> held =
          overlap ? std::vector<int>(static_cast<size_t>(nodes), 0) : book.HeldCpus(nodes);
      const auto placed = PlaceStep(request, job.batch, nodes, held);
      if (!placed.ok()) return placed.status();
      if (placed->has_value()) {
        plan.counts = **placed;
        plan.tasks = std::accumulate(plan.counts.begin(), plan.counts.end(), 0);
        plan.number = absl::StrCat(book.TakeStepNumber());
        std::vector<int> cpus;
        for (const int count : plan.counts) cpus.push_back(overlap ? 0 : count * each);
        if (absl::Status entered = book.Enter(cpus); !entered.ok()) return entered;
        return plan;
      }
    }
    if (!told)
      context.err()
          << "srun: Step creation temporarily disabled, retrying (Requested nodes are busy)"
          << std::endl;
    absl::SleepFor(kBetweenLooks);
  }
}

int RunInJob(SlurmContext& context, const SlurmArguments& arguments, StepJob job,
             const Variables& own, SignalEvents& events) {
  const auto fail = [&](const absl::Status& status) { return context.Fail(status); };
  if (absl::Status status = CheckStepOptions(arguments, job.batch); !status.ok())
    return fail(status);
  auto plan = PlanOf(arguments, own);
  if (!plan.ok()) return fail(plan.status());
  if (!job.inside) {  // the job's variables are not this process's
    for (const auto& [name, value] : SlurmVariables(job.batch, job.allocation))
      plan->variables[name] = value;
  }
  auto request = RequestOf(arguments);
  if (!request.ok()) return fail(request.status());
  if (absl::Status status = ReadNodeList(arguments, job, &*request); !status.ok())
    return fail(status);
  const auto placed = TakePlaces(context, job, *request, arguments.Has("overlap"), *plan);
  if (!placed.ok()) return fail(placed.status());
  const absl::Cleanup leave = [&] { StepBook::Leave(job.directory); };
  return RunStep(context, job, *placed, events);
}

// A job of its own, for the time of the step.
int RunAlone(SlurmContext& context, const SlurmArguments& arguments, const Variables& own,
             SignalEvents& events) {
  if (arguments.Has("nodelist")) {
    return context.Fail(absl::UnimplementedError(
        "--nodelist: a new job cannot name its nodes; use --exclude or --constraint"));
  }
  auto request = ReadAllocation(arguments, AllocationContextOf(context));
  if (!request.ok()) return context.Fail(request.status());
  if (request->name.empty()) {
    const std::string& program = arguments.operands.front();
    request->name = program.substr(program.rfind('/') + 1);
  }
  auto held = HoldJob(context, &*request, !arguments.Has("quiet"), events);
  if (!held.ok()) return context.Fail(held.status());
  auto job = StepJobOf(context, (*held)->number());
  if (!job.ok()) return context.Fail(job.status());
  SlurmArguments step = arguments;  // what the job has, its step need not ask for
  std::erase_if(step.options, [](const GivenOption& given) {
    static constexpr absl::string_view kOfJob[] = {
        "gres",  "gpus",      "gpus-per-node", "gpus-per-task", "dependency", "hold",
        "begin", "partition", "qos",           "constraint",    "exclude"};
    return std::find(std::begin(kOfJob), std::end(kOfJob), given.option->name) != std::end(kOfJob);
  });
  const int code = RunInJob(context, step, *std::move(job), own, events);
  (*held)->End();
  return code;
}

}  // namespace

int RunSrun(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, SrunCommand(), words);
  if (begun.done) return begun.exit_code;
  const SlurmArguments& arguments = begun.arguments;
  if (arguments.operands.empty())
    return context.Fail(absl::InvalidArgumentError("No command given to execute"));
  SignalEvents events;  // before any thread begins, which would take them
  const Variables own = OwnVariables();
  const std::string* chosen = arguments.Find("jobid");
  const auto current = own.find("SLURM_JOB_ID");
  const bool here = own.contains(kDirectoryVariable) && own.contains("BERTH_JOB");
  if (here && (chosen == nullptr || *chosen == current->second)) {
    auto job = OwnStepJob(own);
    if (!job.ok()) return context.Fail(job.status());
    return RunInJob(context, arguments, *std::move(job), own, events);
  }
  if (chosen == nullptr && current == own.end()) return RunAlone(context, arguments, own, events);
  auto job = StepJobOf(context, chosen != nullptr ? *chosen : current->second);
  if (!job.ok()) return context.Fail(job.status());
  return RunInJob(context, arguments, *std::move(job), own, events);
}

}  // namespace berth
