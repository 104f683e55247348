#include "clients/slurm/commands.h"

#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/step_daemon.h"
#include "support/version.h"
#include "support/visible.h"

namespace berth {
namespace {

// What programs look for, with the version whose formats the commands have.
constexpr char kSlurmVersion[] = "slurm 23.11.0 (berth ";

using Command = int (*)(SlurmContext&, const Words&);
const std::map<std::string, Command>& Commands() {
  static const std::map<std::string, Command> kCommands = {
      {"sbatch", RunSbatch},   {"srun", RunSrun},         {"salloc", RunSalloc},
      {"squeue", RunSqueue},   {"sacct", RunSacct},       {"sinfo", RunSinfo},
      {"scancel", RunScancel}, {"scontrol", RunScontrol}, {"berth-rsh", RunBerthRsh},
      {"sshare", RunSshare},   {"sprio", RunSprio},       {"sacctmgr", RunSacctmgr},
      {"sstat", RunSstat}};
  return kCommands;
}

int PrintOptionTables() {
  for (const SlurmCommand* command : AllSlurmCommands())
    std::cout << SlurmOptionTable(*command) << "\n";
  return 0;
}

}  // namespace

absl::Status UnknownOperand(absl::string_view word) {
  return absl::InvalidArgumentError(absl::StrCat("\"", Visible(word), "\" is no option"));
}

BegunCommand BeginCommand(SlurmContext& context, const SlurmCommand& command, const Words& words) {
  BegunCommand begun;
  absl::StatusOr<SlurmArguments> arguments = ParseSlurmArguments(command, words);
  if (!arguments.ok()) {
    context.err() << command.name << ": error: " << arguments.status().message() << "\n";
    return {.arguments = {}, .done = true, .exit_code = 1};
  }
  begun.arguments = *std::move(arguments);
  if (begun.arguments.Has("help") || begun.arguments.Has("usage")) {
    context.out() << SlurmHelp(command);
    begun.done = true;
  } else if (begun.arguments.Has("version")) {
    context.out() << kSlurmVersion << kBerthVersion << ")\n";
    begun.done = true;
  } else if (!AcceptOptions(command, begun.arguments, context.err())) {
    begun.done = true;
    begun.exit_code = 1;
  }
  for (const char* option : {"clusters", "cluster"}) {
    const std::string* cluster = begun.arguments.Find(option);
    if (begun.done || cluster == nullptr || *cluster == "all" ||
        *cluster == context.config.cluster_name()) {
      continue;
    }
    context.err() << command.name << ": error: there is no cluster \"" << Visible(*cluster)
                  << "\"; this is " << context.config.cluster_name() << "\n";
    begun.done = true;
    begun.exit_code = 1;
  }
  return begun;
}

bool IsSlurmCommand(const std::string& name) {
  return Commands().contains(name) || name == "slurmstepd" || name == "options";
}

int RunSlurmCommand(const std::string& name, const Words& words) {
  if (name == "slurmstepd") return RunStepDaemon(words);
  if (name == "options") return PrintOptionTables();
  absl::StatusOr<SlurmContext> context = OpenSlurm(name);
  if (!context.ok()) {
    std::cerr << name << ": error: " << context.status().message() << "\n";
    return 1;
  }
  // The process ends with the command, and with it the connection.
  auto& kept = *new SlurmContext(*std::move(context));
  return Commands().at(name)(kept, words);
}

}  // namespace berth
