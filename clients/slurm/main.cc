// berth-slurm: the commands of Slurm, under their names (docs/users/slurm.md).
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "clients/slurm/commands.h"
#include "support/grpc_log.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  berth::SilenceGrpc();
  std::vector<std::string> words(argv, argv + argc);
  std::string name = words.empty() ? "" : words.front().substr(words.front().rfind('/') + 1);
  words.erase(words.begin());
  if (name == "berth-slurm" &&
      !words.empty()) {  // as the nodes call it: berth-slurm slurmstepd ...
    name = words.front();
    words.erase(words.begin());
  }
  if (berth::IsSlurmCommand(name)) {
    const int code = berth::RunSlurmCommand(name, words);
    std::cout.flush();
    // gRPC would take its threads apart, for which every sbatch would wait.
    std::_Exit(code);
  }
  std::cerr << "berth-slurm: call it by a link named sbatch, srun, salloc, squeue, sacct, scancel, "
               "scontrol or sinfo\n";
  return 2;
}
