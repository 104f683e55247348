// The commands: each gets the words after its name and returns its exit code.
#ifndef BERTH_CLIENTS_SLURM_COMMANDS_H_
#define BERTH_CLIENTS_SLURM_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/slurm/options.h"
#include "clients/slurm/slurm_config.h"

namespace berth {

using Words = std::vector<std::string>;

int RunSbatch(SlurmContext& context, const Words& words);
int RunSrun(SlurmContext& context, const Words& words);
int RunSalloc(SlurmContext& context, const Words& words);
int RunSqueue(SlurmContext& context, const Words& words);
int RunSacct(SlurmContext& context, const Words& words);
int RunSinfo(SlurmContext& context, const Words& words);
int RunScancel(SlurmContext& context, const Words& words);
int RunScontrol(SlurmContext& context, const Words& words);
int RunSshare(SlurmContext& context, const Words& words);
int RunSprio(SlurmContext& context, const Words& words);
int RunSacctmgr(SlurmContext& context, const Words& words);
int RunSstat(SlurmContext& context, const Words& words);
int RunBerthRsh(SlurmContext& context, const Words& words);

// The command by its name, in main.cc and tests; nothing for an unknown one.
int RunSlurmCommand(const std::string& name, const Words& words);
// Each command has a row in its table (option_tables.h).
bool IsSlurmCommand(const std::string& name);

// What begins every command: parses, prints help or the version, and reports options that are
// refused. `done` is set if the command has nothing more to do, with its exit code.
struct BegunCommand {
  SlurmArguments arguments;
  bool done = false;
  int exit_code = 0;
};
absl::Status UnknownOperand(absl::string_view word);
BegunCommand BeginCommand(SlurmContext& context, const SlurmCommand& command, const Words& words);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_COMMANDS_H_
