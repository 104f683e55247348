#include "clients/agent/kept_directories.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/agent/disk.h"
#include "clients/agent/supervisor/shared_memory.h"
#include "clients/agent/task_files.h"

namespace berth {
namespace {

// Others reach only what is theirs below it.
absl::Status MakeShelf(const std::string& path) {
  if (mkdir(path.c_str(), 0711) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("create ", path));
}

// The inverse of ToString, for jobs.
std::optional<TaskId> ParseJob(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, absl::ByAnyChar("-."));
  TaskId job;
  if (parts.size() < 3 || !absl::SimpleAtoi(parts[0], &job.job_uid)) return std::nullopt;
  if (parts.size() > 3 && !absl::SimpleAtoi(parts[3], &job.incarnation)) return std::nullopt;
  if (ToString(job) != name) return std::nullopt;
  return job;
}

}  // namespace

TaskId JobOf(TaskId id) {
  id.task = id.attempt = 0;
  return id;
}

KeptDirectories::KeptDirectories(std::string state_directory, std::string disks)
    : state_directory_(std::move(state_directory)), disks_(std::move(disks)) {}

std::string KeptDirectories::Directory(const TaskId& id) const {
  return absl::StrCat(state_directory_, "/keep/", ToString(JobOf(id)));
}

std::string KeptDirectories::Disk(const TaskId& id) const {
  return disks_.empty() ? Directory(id) + "/disk" : absl::StrCat(disks_, ToString(JobOf(id)));
}

absl::Status KeptDirectories::Make(const TaskId& id, const v1::TaskLaunch& launch,
                                   const TaskUser& user) const {
  if (!launch.keep_memory() && !launch.keep_disk()) return absl::OkStatus();
  for (const std::string& path : {state_directory_ + "/keep", Directory(id)}) {
    if (absl::Status status = MakeShelf(path); !status.ok()) return status;
  }
  if (launch.keep_memory()) {
    const std::string mark = Directory(id) + kKeptMemoryMark;
    const int fd = open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ", mark));
    close(fd);
  }
  if (!launch.keep_disk()) return absl::OkStatus();
  const std::string disk = Disk(id);
  if (mkdir(disk.c_str(), 0700) != 0 && errno != EEXIST)
    return ErrnoStatus(errno, absl::StrCat("create ", disk));
  if (geteuid() != 0 || lchown(disk.c_str(), user.uid, user.gid) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("chown ", disk));
}

std::vector<TaskId> KeptDirectories::Jobs() const {
  std::vector<TaskId> jobs;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(state_directory_ + "/keep", ignored)) {
    if (const auto job = ParseJob(entry.path().filename().string())) jobs.push_back(*job);
  }
  return jobs;
}

// The mark goes first: if this is cut short, a later Drop finds the directory and goes on.
void KeptDirectories::Drop(const TaskId& job) {
  const std::string directory = Directory(job);
  unlink((directory + kKeptMemoryMark).c_str());
  SharedMemory(absl::StrCat(state_directory_, "/shm/", ToString(JobOf(job)))).Release();
  RemoveTree(Disk(job));
  RemoveTree(directory);
}

}  // namespace berth
