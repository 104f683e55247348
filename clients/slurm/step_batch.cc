// The batch script of a job on its first node.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "clients/cpp/client.h"
#include "clients/slurm/child_process.h"
#include "clients/slurm/job_directory.h"
#include "clients/slurm/slurm_config.h"
#include "clients/slurm/step_daemon.h"
#include "clients/slurm/variables.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr int kCannotRun = 1;
constexpr int kLongestPollMs = 60'000;
constexpr int kHolderLookMs = 1'000;
constexpr absl::Duration kHolderPatience = absl::Minutes(5);

int Trouble(absl::string_view text) {
  std::cerr << "slurmstepd: error: " << text << "\n";
  return kCannotRun;
}

struct BatchJob {
  cli::v1::SlurmBatch batch;
  Variables own;
  Allocation allocation;
  std::string directory;
  absl::Time begin = absl::Now();
};

int OpenForOutput(const std::string& path, bool append) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0666);
}

// The descriptors of the script.
struct BatchFiles {
  ~BatchFiles() {
    for (const int fd : {in, out, err}) {
      if (fd >= 0) close(fd);
    }
  }
  absl::Status Open(const BatchJob& job) {
    const cli::v1::SlurmBatch& batch = job.batch;
    const PatternValues values = PatternsOf(batch, job.allocation);
    const bool array = !job.allocation.array_index.empty();
    const std::string pattern = !batch.stdout_path().empty() ? batch.stdout_path()
                                : array                      ? "slurm-%A_%a.out"
                                                             : "slurm-%j.out";
    const std::string out_path = ExpandPattern(pattern, values);
    out = OpenForOutput(out_path, batch.append());
    if (out < 0) return Cannot("--output", out_path);
    if (!batch.stderr_path().empty()) {
      const std::string path = ExpandPattern(batch.stderr_path(), values);
      err = path == out_path ? fcntl(out, F_DUPFD_CLOEXEC, 3) : OpenForOutput(path, batch.append());
      if (err < 0) return Cannot("--error", path);
    }
    if (batch.stdin_path().empty()) return absl::OkStatus();
    const std::string path = ExpandPattern(batch.stdin_path(), values);
    in = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    return in >= 0 ? absl::OkStatus() : Cannot("--input", path);
  }
  static absl::Status Cannot(const char* option, const std::string& path) {
    return absl::FailedPreconditionError(
        absl::StrCat(option, ": cannot open ", path, ": ", std::strerror(errno)));
  }
  int in = -1, out = -1, err = -1;
};

Variables ExportedBy(const cli::v1::SlurmBatch& batch) {
  Variables exported;
  for (const std::string& entry : batch.environment()) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    exported.insert(parts);
  }
  return exported;
}

// The script finds srun and the others also without the submitter's PATH. The links lie beside the
// program, or in a directory below (clients/CMakeLists.txt).
void AddCommandsTo(Variables* variables) {
  const std::string program = SlurmProgram({});
  const std::string place = program.substr(0, program.rfind('/'));
  for (const std::string& directory : {place, place + "/slurm"}) {
    if (access((directory + "/srun").c_str(), X_OK) != 0) continue;
    // Open MPI starts its daemons by srun; told to use rsh, it uses this.
    for (const char* name : {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"})
      variables->try_emplace(name, directory + "/berth-rsh");
    std::string& path = (*variables)["PATH"];
    const std::string among = absl::StrCat(":", path, ":");
    if (!absl::StrContains(among, absl::StrCat(":", directory, ":")))
      absl::StrAppend(&path, path.empty() ? "" : ":", directory);
    return;
  }
}

Variables ScriptVariables(const BatchJob& job) {
  Variables variables = JobVariables(ExportedBy(job.batch), job.own);
  for (const auto& [name, value] : SlurmVariables(job.batch, job.allocation))
    variables[name] = value;
  variables[kDirectoryVariable] = job.directory;
  AddCommandsTo(&variables);
  return variables;
}

absl::StatusOr<pid_t> StartScript(const BatchJob& job) {
  BatchFiles files;
  if (absl::Status status = files.Open(job); !status.ok()) return status;
  const std::string script = job.directory + "/script";
  if (absl::Status status = WriteFileIn(script, job.batch.script(), 0700); !status.ok())
    return status;
  ChildProcess child{.arguments = InterpreterOf(job.batch.script()),
                     .environment = EnvironmentOf(ScriptVariables(job)),
                     .in = files.in,
                     .out = files.out,
                     .err = files.err >= 0 ? files.err : files.out};
  child.arguments.push_back(script);
  for (const std::string& argument : job.batch.arguments()) child.arguments.push_back(argument);
  absl::StatusOr<pid_t> pid = StartChild(child);
  if (!pid.ok()) return pid.status();
  absl::Status noted = WriteFileIn(job.directory + "/batch", absl::StrCat(*pid), 0600);
  if (!noted.ok()) return noted;
  return *pid;
}

// The time limit may have been changed since the job was submitted.
absl::Duration TimeLimitNow(const BatchJob& job) {
  const absl::Duration known = absl::Seconds(job.batch.time_limit_s());
  const auto server = job.own.find("BERTH_SERVER"), name = job.own.find("BERTH_JOB");
  if (server == job.own.end() || name == job.own.end()) return known;
  const auto client = Client::Connect({.server = server->second, .timeout = absl::Seconds(5)});
  if (!client.ok()) return known;
  v1::GetJobRequest request;
  request.set_name(name->second);
  const absl::StatusOr<v1::Job> now =
      (*client)->Call(&v1::JobService::StubInterface::GetJob, request);
  if (!now.ok()) return known;
  return now->spec().has_walltime() ? DurationFrom(now->spec().walltime())
                                    : absl::InfiniteDuration();
}

// When --signal is due; InfiniteFuture: never.
absl::Time SignalTime(const BatchJob& job, absl::Duration limit) {
  if (job.batch.signal() == 0 || limit <= absl::ZeroDuration()) return absl::InfiniteFuture();
  const absl::Duration before = absl::Seconds(job.batch.signal_before_s());
  return job.begin + std::max(limit - before, absl::ZeroDuration());
}

int PollMs(absl::Time until) {
  const absl::Duration left = until - absl::Now();
  if (left > absl::Milliseconds(kLongestPollMs)) return kLongestPollMs;
  return static_cast<int>(std::max<int64_t>(absl::ToInt64Milliseconds(left) + 1, 0));
}

// Waits for the script; what the agent sends to stop the job, it sends to the script, too.
int AwaitScript(const BatchJob& job, pid_t script, SignalEvents& events) {
  absl::Time due = SignalTime(job, absl::Seconds(job.batch.time_limit_s()));
  for (;;) {
    pollfd fd{events.fd(), POLLIN, 0};
    poll(&fd, 1, PollMs(due));
    while (events.Take() != 0) {
    }
    int status = 0;
    if (waitpid(script, &status, WNOHANG) == script) return status;
    if (absl::Now() < due) continue;
    due = SignalTime(job, TimeLimitNow(job));
    if (absl::Now() < due) continue;
    SignalJob(job.directory, job.batch.signal(),
              job.batch.signal_batch() ? SignalTo::kBatch : SignalTo::kSteps);
    due = absl::InfiniteFuture();
  }
}

// A place in the job, until it is stopped. With `holder`, also until `slurmstepd hold` has come and
// gone at the other end of this pipe, or has not come for kHolderPatience.
int HoldPlace(SignalEvents& events, int holder = -1) {
  const absl::Time latest = holder < 0 ? absl::InfiniteFuture() : absl::Now() + kHolderPatience;
  for (bool came = holder < 0;;) {
    pollfd fds[] = {{events.fd(), POLLIN, 0}, {holder, POLLIN, 0}};
    poll(fds, 2, holder < 0 ? -1 : kHolderLookMs);
    for (int signal = events.Take(); signal != 0; signal = events.Take()) {
      if (signal == SIGTERM || signal == SIGINT) return 128 + signal;
    }
    if (holder < 0) continue;
    char byte = 0;
    came = came || read(holder, &byte, 1) == 1;  // it writes one when it comes
    if (came && (fds[1].revents & POLLHUP) != 0) return 0;
    if (!came && absl::Now() > latest) return Trouble("the client did not come");
  }
}

int RunFirstNode(BatchJob& job, SignalEvents& events) {
  job.directory = JobDirectoryOf(job.own);
  if (absl::Status made = MakeJobDirectory(job.directory); !made.ok())
    return Trouble(made.message());
  cli::v1::SlurmBatch told = job.batch;  // for srun, which needs neither
  told.clear_script();
  told.clear_environment();
  const absl::Status kept = WriteFileIn(job.directory + "/job", told.SerializeAsString(), 0600);
  if (!kept.ok()) return Trouble(kept.message());
  int status = 0;
  if (job.batch.script().empty()) {
    const absl::Status noted = WriteFileIn(job.directory + "/batch", absl::StrCat(getpid()), 0600);
    if (!noted.ok()) return Trouble(noted.message());
    const std::string pipe = job.directory + "/holder";
    const int holder = mkfifo(pipe.c_str(), 0600) == 0
                           ? open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
                           : -1;
    if (holder < 0) return Trouble(absl::StrCat(pipe, ": ", std::strerror(errno)));
    status = HoldPlace(events, holder);
    RemoveJobDirectory(job.directory);
    return status;
  }
  const absl::StatusOr<pid_t> script = StartScript(job);
  if (!script.ok()) {
    RemoveJobDirectory(job.directory);
    return Trouble(script.status().message());
  }
  status = AwaitScript(job, *script, events);
  RemoveJobDirectory(job.directory);
  EndLike(status);
}

}  // namespace

int RunBatch() {
  SignalEvents events;
  BatchJob job;
  job.own = OwnVariables();
  absl::StatusOr<cli::v1::SlurmBatch> batch = BatchOf(job.own);
  if (!batch.ok()) return Trouble(batch.status().message());
  job.batch = *std::move(batch);
  job.allocation = AllocationOf(job.own);
  return job.allocation.node == 0 ? RunFirstNode(job, events) : HoldPlace(events);
}

}  // namespace berth
