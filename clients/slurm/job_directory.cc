#include "clients/slurm/job_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/text_file.h"

namespace berth {
namespace {

std::string VariableOf(const Variables& own, const char* name) {
  const auto found = own.find(name);
  return found == own.end() ? "" : found->second;
}

absl::Status Cannot(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(errno)));
}

}  // namespace

std::string JobDirectoryOf(const Variables& own) {
  if (std::string given = VariableOf(own, kDirectoryVariable); !given.empty()) return given;
  const std::string place = VariableOf(own, "TMPDIR");
  return absl::StrCat(place.empty() ? "/tmp" : place, "/berth-slurm-",
                      VariableOf(own, "BERTH_JOB_UID"), "-", VariableOf(own, "BERTH_TASK"), "-",
                      VariableOf(own, "BERTH_ATTEMPT"));
}

absl::Status MakeJobDirectory(const std::string& directory) {
  struct stat found {};
  if (lstat(directory.c_str(), &found) == 0) {
    const bool ours = S_ISDIR(found.st_mode) && found.st_uid == geteuid();
    if (!ours) return absl::FailedPreconditionError(directory + " belongs to somebody else");
    RemoveJobDirectory(directory);
  }
  if (mkdir(directory.c_str(), 0700) != 0) return Cannot(directory);
  const std::string steps = directory + "/steps";
  return mkdir(steps.c_str(), 0700) == 0 ? absl::OkStatus() : Cannot(steps);
}

void RemoveJobDirectory(const std::string& directory) {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

absl::Status WriteFileIn(const std::string& path, absl::string_view text, int mode) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return Cannot(path);
  absl::Status status;
  while (!text.empty() && status.ok()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) status = Cannot(path);
  }
  close(fd);
  return status;
}

std::vector<int> StepProcesses(const std::string& directory) {
  std::vector<int> found;
  DIR* steps = opendir((directory + "/steps").c_str());
  if (steps == nullptr) return found;
  while (const dirent* entry = readdir(steps)) {
    int pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid) && pid > 0 && kill(pid, 0) == 0) found.push_back(pid);
  }
  closedir(steps);
  return found;
}

int BatchProcess(const std::string& directory) {
  int pid = 0;
  const auto text = ReadTextFile(directory + "/batch");
  return text.ok() && absl::SimpleAtoi(*text, &pid) && pid > 0 ? pid : 0;
}

absl::StatusOr<cli::v1::SlurmBatch> BatchIn(const std::string& directory) {
  const auto text = ReadTextFile(directory + "/job");
  if (!text.ok()) return text.status();
  cli::v1::SlurmBatch batch;
  if (batch.ParseFromString(*text)) return batch;
  return absl::FailedPreconditionError(directory + "/job cannot be read");
}

StepBook::StepBook(const std::string& directory) : directory_(directory) {
  if (directory_.empty()) return;
  lock_ = open((directory_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  while (lock_ >= 0 && flock(lock_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

StepBook::~StepBook() {
  if (lock_ >= 0) close(lock_);
}

std::vector<int> StepBook::HeldCpus(int nodes) const {
  std::vector<int> held(static_cast<size_t>(nodes), 0);
  if (directory_.empty()) return held;
  for (const int pid : StepProcesses(directory_)) {
    if (pid == getpid()) continue;
    const auto text = ReadTextFile(absl::StrCat(directory_, "/steps/", pid));
    if (!text.ok()) continue;
    const std::vector<std::string> cpus = absl::StrSplit(*text, ' ', absl::SkipEmpty());
    for (size_t node = 0; node < std::min(held.size(), cpus.size()); ++node) {
      int count = 0;
      if (absl::SimpleAtoi(cpus[node], &count)) held[node] += count;
    }
  }
  return held;
}

int StepBook::TakeStepNumber() {
  char text[16] = {};
  int number = 0;
  if (lock_ < 0 || pread(lock_, text, sizeof text - 1, 0) < 0) return 0;
  if (!absl::SimpleAtoi(text, &number)) number = 0;
  const std::string next = absl::StrCat(number + 1);
  return pwrite(lock_, next.data(), next.size(), 0) > 0 ? number : 0;
}

absl::Status StepBook::Enter(const std::vector<int>& cpus) {
  if (directory_.empty()) return absl::OkStatus();
  return WriteFileIn(absl::StrCat(directory_, "/steps/", getpid()), absl::StrJoin(cpus, " "), 0600);
}

void StepBook::Leave(const std::string& directory) {
  if (!directory.empty()) unlink(absl::StrCat(directory, "/steps/", getpid()).c_str());
}

int SignalJob(const std::string& directory, int signal, SignalTo to) {
  int sent = 0;
  if (to != SignalTo::kBatch) {
    for (const int pid : StepProcesses(directory)) sent += kill(pid, signal) == 0 ? 1 : 0;
  }
  const int batch = to == SignalTo::kSteps ? 0 : BatchProcess(directory);
  if (batch > 0) sent += kill(batch, signal) == 0 ? 1 : 0;
  return sent;
}

}  // namespace berth
