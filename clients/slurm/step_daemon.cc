#include "clients/slurm/step_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "absl/strings/numbers.h"
#include "clients/slurm/job_directory.h"

namespace berth {
namespace {

constexpr int kMostTries = 100;
constexpr useconds_t kBetweenTriesUs = 100'000;

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

// The job's own process has the other end, and sees when this one is gone, however it ends: when
// the client disconnects, the agent kills it.
int HoldUntilEnd() {
  const std::string pipe = JobDirectoryOf(OwnVariables()) + "/holder";
  // It is made a moment after the job has begun to run.
  int fd = -1;
  for (int tries = 0; fd < 0 && tries < kMostTries; ++tries) {
    if (tries > 0) usleep(kBetweenTriesUs);
    fd = open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
  }
  if (fd < 0) {
    std::cerr << "slurmstepd: the job holds no places for a client\n";
    return 1;
  }
  if (write(fd, "c", 1) != 1) return 1;
  char buffer[512];
  while (read(STDIN_FILENO, buffer, sizeof buffer) > 0) {
  }
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
