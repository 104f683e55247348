#include "clients/slurm/step_daemon.h"

#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "absl/strings/numbers.h"
#include "clients/slurm/job_directory.h"

namespace berth {
namespace {

int SignalFromWords(const std::vector<std::string>& words) {
  int signal = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &signal) || signal < 1 || signal >= NSIG) {
    std::cerr << "slurmstepd: expected signal NUMBER steps|batch|both\n";
    return 2;
  }
  const SignalTo to = words[2] == "steps"   ? SignalTo::kSteps
                      : words[2] == "batch" ? SignalTo::kBatch
                                            : SignalTo::kBoth;
  SignalJob(JobDirectoryOf(OwnVariables()), signal, to);
  return 0;
}

// The job's own process takes SIGUSR1 as the end of its wait (step_batch.cc).
int HoldUntilEnd() {
  signal(SIGPIPE, SIG_IGN);
  char buffer[512];
  while (read(STDIN_FILENO, buffer, sizeof buffer) > 0) {
  }
  SignalJob(JobDirectoryOf(OwnVariables()), SIGUSR1, SignalTo::kBatch);
  return 0;
}

}  // namespace

int RunStepDaemon(const std::vector<std::string>& words) {
  const std::string what = words.empty() ? "" : words.front();
  if (what == "batch") return RunBatch();
  if (what == "step") return RunNodeStep();
  if (what == "signal") return SignalFromWords(words);
  if (what == "hold") return HoldUntilEnd();
  std::cerr << "slurmstepd: Berth starts it on the nodes of Slurm jobs; it is no command\n";
  return 2;
}

}  // namespace berth
