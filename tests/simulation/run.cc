#include "tests/simulation/run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "tests/simulation/commit.h"
#include "tests/simulation/shrink.h"
#include "tests/simulation/world.h"

namespace berth::simulation {
namespace {

const World* current = nullptr;  // for OnAbort
uint64_t current_seed = 0;

void PrintFailure(const World& world, const Options& options, const std::string& what) {
  world.trace().PrintLast(stderr);
  std::fprintf(stderr, "seed %llu, commit %s: %s\n", static_cast<unsigned long long>(options.seed),
               Commit(), what.c_str());
}

void OnAbort(int) {
  std::fprintf(stderr, "seed %llu, commit %s: a check ended the process\n",
               static_cast<unsigned long long>(current_seed), Commit());
  if (current != nullptr) current->trace().PrintLast(stderr);
  _exit(1);
}

// In a separate process, because a check of the product may abort it.
bool Fails(const Options& options) {
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    _exit(RunSeed(options, true) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool fails = status != 0;
  std::printf("%s  %s\n", fails ? "fails" : "ok   ", CommandLine(options).c_str());
  std::fflush(stdout);
  return fails;
}

}  // namespace

void TellOnAbort() { signal(SIGABRT, OnAbort); }

bool RunSeed(const Options& options, bool hash_only) {
  const auto begin = std::chrono::steady_clock::now();
  World world(options);
  current = &world;
  current_seed = options.seed;
  const Outcome outcome = world.Run();
  current = nullptr;
  const double real =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (hash_only) {
    std::printf("%016llx\n", static_cast<unsigned long long>(outcome.hash));
  } else {
    std::printf(
        "seed %llu: %s, %.1f h simulated in %.1f s (%.0f times), %llu steps, %llu jobs, "
        "%llu starts, %llu hangs, hash %016llx\n",
        static_cast<unsigned long long>(options.seed), outcome.failure.empty() ? "ok" : "FAILED",
        absl::ToDoubleHours(outcome.simulated), real,
        absl::ToDoubleSeconds(outcome.simulated) / real,
        static_cast<unsigned long long>(outcome.steps),
        static_cast<unsigned long long>(outcome.jobs),
        static_cast<unsigned long long>(outcome.starts),
        static_cast<unsigned long long>(outcome.hangs),
        static_cast<unsigned long long>(outcome.hash));
  }
  std::fflush(stdout);
  if (!outcome.failure.empty()) PrintFailure(world, options, outcome.failure);
  return outcome.failure.empty();
}

bool ShrinkSeed(const Options& options) {
  if (!Fails(options)) {
    std::printf("seed %llu does not fail\n", static_cast<unsigned long long>(options.seed));
    return true;
  }
  const Options least = Shrink(options, Fails);
  RunSeed(least, false);
  std::printf("the smallest run that fails: berth-simtest %s\n", CommandLine(least).c_str());
  return false;
}

}  // namespace berth::simulation
