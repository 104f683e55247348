#include <unistd.h>

#include <cstdlib>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/slurm/commands.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/script.h"
#include "clients/slurm/submit.h"
#include "support/proto_time.h"
#include "support/text_file.h"
#include "support/visible.h"

namespace berth {
namespace {

struct BatchScript {
  std::string name;  // of the job, if the options have none
  std::string text;
  std::string command;  // for scontrol show job
  Words arguments;
};

std::string FindScript(const std::string& name) {
  if (absl::StrContains(name, '/') || access(name.c_str(), R_OK) == 0) return name;
  const char* path = std::getenv("PATH");
  for (absl::string_view place : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    std::string file = absl::StrCat(place, "/", name);
    if (access(file.c_str(), R_OK) == 0) return file;
  }
  return name;
}

absl::StatusOr<BatchScript> ReadScript(const SlurmArguments& arguments) {
  BatchScript script;
  if (const std::string* wrapped = arguments.Find("wrap"); wrapped != nullptr) {
    if (!arguments.operands.empty())
      return absl::InvalidArgumentError("give a script, or --wrap, not both");
    script.name = "wrap";
    script.text =
        absl::StrCat("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n", *wrapped, "\n");
    return script;
  }
  const std::string file = arguments.operands.empty() ? "-" : FindScript(arguments.operands[0]);
  auto text = ReadTextFile(file);
  if (!text.ok()) return text.status();
  script.text = *std::move(text);
  script.name = file == "-" ? "sbatch" : file.substr(file.rfind('/') + 1);
  if (file != "-") {
    script.command = file[0] == '/' ? file : absl::StrCat(CurrentDirectory(), "/", file);
    script.arguments.assign(arguments.operands.begin() + 1, arguments.operands.end());
  }
  if (absl::Status status = CheckScript(script.text); !status.ok()) return status;
  return script;
}

// The script's lines, then the environment, then the command line: the last one counts.
absl::StatusOr<SlurmArguments> AllOptions(const SlurmArguments& command_line,
                                          const std::string& script, const Variables& own) {
  absl::StatusOr<SlurmArguments> all = OptionsOfScript(SbatchCommand(), script);
  if (!all.ok()) return all.status();
  const auto variables = OptionsOfVariables(
      SbatchCommand(), std::vector<std::pair<std::string, std::string>>(own.begin(), own.end()));
  if (!variables.ok()) return variables.status();
  for (const auto* more : {&*variables, &command_line})
    all->options.insert(all->options.end(), more->options.begin(), more->options.end());
  return all;
}

// "0-9", "1,3-7:2": the ends and the step, for SLURM_ARRAY_TASK_MIN ...
void DescribeArray(const v1::Array& array, cli::v1::SlurmBatch* batch) {
  batch->set_array_step(1);
  if (array.size() > 0) {
    batch->set_array_last(array.size() - 1);
    return;
  }
  const std::vector<std::string> parts = absl::StrSplit(array.indexes(), ',');
  const std::vector<std::string> first = absl::StrSplit(parts.front(), absl::ByAnyChar("-:"));
  const std::vector<std::string> last = absl::StrSplit(parts.back(), absl::ByAnyChar("-:"));
  int64_t step = 1, number = 0;
  if (absl::SimpleAtoi(first[0], &number)) batch->set_array_first(number);
  if (absl::SimpleAtoi(last[last.size() > 1 ? 1 : 0], &number)) batch->set_array_last(number);
  if (parts.size() == 1 && first.size() == 3 && absl::SimpleAtoi(first[2], &step))
    batch->set_array_step(step);
}

absl::StatusOr<std::string> PatternIn(const SlurmArguments& arguments, const char* option) {
  const std::string* pattern = arguments.Find(option);
  if (pattern == nullptr) return std::string();
  const absl::Status status = CheckPattern(*pattern);
  if (status.ok()) return *pattern;
  return absl::InvalidArgumentError(absl::StrCat("--", option, ": ", status.message()));
}

absl::Status SetFiles(const SlurmArguments& arguments, cli::v1::SlurmBatch* batch) {
  const auto output = PatternIn(arguments, "output"), error = PatternIn(arguments, "error"),
             input = PatternIn(arguments, "input");
  for (const auto* pattern : {&output, &error, &input}) {
    if (!pattern->ok()) return pattern->status();
  }
  batch->set_stdout_path(*output);
  batch->set_stderr_path(*error);
  batch->set_stdin_path(*input);
  const std::string* mode = arguments.Find("open-mode");
  if (mode != nullptr && *mode != "append" && *mode != "truncate")
    return absl::InvalidArgumentError("--open-mode: expected append or truncate");
  batch->set_append(mode != nullptr && *mode == "append");
  return absl::OkStatus();
}

struct PreparedBatch {
  v1::Job job;
  cli::v1::SlurmBatch batch;
};

absl::StatusOr<PreparedBatch> PrepareBatch(SlurmContext& context, const SlurmArguments& arguments,
                                           const BatchScript& script, const Variables& own) {
  PreparedBatch prepared;
  cli::v1::SlurmBatch& batch = prepared.batch;
  auto request = ReadAllocation(arguments, AllocationContextOf(context));
  if (!request.ok()) return request.status();
  if (request->name.empty()) request->name = script.name;
  if (absl::Status status = SetFiles(arguments, &batch); !status.ok()) return status;
  const std::string* chosen = arguments.Find("export");
  const auto exported = ExportedVariables(chosen == nullptr ? "" : *chosen, own);
  if (!exported.ok()) return exported.status();
  for (const std::string& entry : EnvironmentOf(*exported)) batch.add_environment(entry);
  batch.set_script(script.text);
  for (const std::string& argument : script.arguments) batch.add_arguments(argument);
  if (request->array.has_value()) DescribeArray(*request->array, &batch);
  auto job = PrepareJob(context, &*request, &batch);
  if (!job.ok()) return job.status();
  prepared.job = *std::move(job);
  auto& annotations = *prepared.job.mutable_spec()->mutable_annotations();
  annotations[kDirectoryAnnotation] = request->directory;
  annotations[kOutputAnnotation] = batch.stdout_path();
  annotations[kErrorAnnotation] = batch.stderr_path();
  annotations[kCommandAnnotation] = script.command;
  return prepared;
}

int TestOnly(SlurmContext& context, const PreparedBatch& prepared) {
  v1::PlanJobRequest request;
  *request.mutable_job() = prepared.job;
  request.mutable_job()->mutable_spec()->clear_array();  // the plan of one of its jobs
  absl::Status put =
      SetBatch(prepared.batch, request.mutable_job()->mutable_spec()->mutable_groups(0));
  if (!put.ok()) return context.Fail(put);
  const auto plan = context.Call(&v1::ExplainService::StubInterface::PlanJob, request);
  if (!plan.ok()) return context.Fail(plan.status());
  std::ostream& err = context.err();
  if (plan->starts_now()) {
    std::set<std::string> nodes;
    for (const auto& task : plan->placements()) nodes.insert(task.node());
    err << "sbatch: Job would start at once on " << absl::StrJoin(nodes, ",") << "\n";
  } else if (plan->has_reservation()) {
    err << "sbatch: Job would start at "
        << SlurmMoment(TimeFrom(plan->reservation().start()), context.zone) << "\n";
  } else {
    err << "sbatch: Job would wait";
    for (const v1::WaitReason& reason : plan->blockers())
      err << ": " << v1::WaitReason::Code_Name(reason.code()) << " " << Visible(reason.detail());
    err << "\n";
  }
  return 0;
}

int Submit(SlurmContext& context, const PreparedBatch& prepared, const SlurmArguments& arguments) {
  const auto submitted = SubmitSlurmJob(context, prepared.job, prepared.batch);
  if (!submitted.ok()) return context.Fail(submitted.status());
  const std::string* cluster = arguments.Find("clusters");
  if (arguments.Has("parsable")) {
    context.out() << submitted->uid() << (cluster == nullptr ? "" : absl::StrCat(";", *cluster))
                  << "\n";
  } else if (!arguments.Has("quiet")) {
    context.out() << "Submitted batch job " << submitted->uid() << "\n";
  }
  context.out().flush();
  if (submitted->has_never()) {
    context.err() << "sbatch: the job cannot start while the limits of its queue stay as they are: "
                  << Visible(submitted->never().detail()) << "\n";
  }
  if (!arguments.Has("wait")) return 0;
  const absl::StatusOr<int> code = AwaitJobEnd(context, submitted->name());
  return code.ok() ? *code : context.Fail(code.status());
}

}  // namespace

int RunSbatch(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, SbatchCommand(), words);
  if (begun.done) return begun.exit_code;
  const auto script = ReadScript(begun.arguments);
  if (!script.ok()) return context.Fail(script.status());
  const Variables own = OwnVariables();
  const auto arguments = AllOptions(begun.arguments, script->text, own);
  if (!arguments.ok()) return context.Fail(arguments.status());
  SlurmArguments others = *arguments;  // the command line's were reported
  others.options.resize(others.options.size() - begun.arguments.options.size());
  if (!AcceptOptions(SbatchCommand(), others, context.err())) return 1;
  const auto prepared = PrepareBatch(context, *arguments, *script, own);
  if (!prepared.ok()) return context.Fail(prepared.status());
  return arguments->Has("test-only") ? TestOnly(context, *prepared)
                                     : Submit(context, *prepared, *arguments);
}

}  // namespace berth
