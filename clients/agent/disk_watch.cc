#include "clients/agent/disk_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "clients/agent/supervisor/project_quota.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr int kRestFactor = 9;
constexpr int64_t kGrowthWalked = int64_t{64}
                                  << 20;  // a file system that grew by so much is walked
constexpr int kBoundParts = 16;           // or by this part of the smallest bound

int64_t BlockBytes(const struct stat& info) { return int64_t{info.st_blocks} * 512; }

// Adds up what `fd`, which is closed, has in it.
void AddDirectory(int fd, dev_t device, int depth, int64_t* entries, int64_t* bytes) {
  DIR* listing = fdopendir(fd);
  if (listing == nullptr) {
    close(fd);
    return;
  }
  while (const dirent* entry = readdir(listing)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (++*entries > kMaxDiskEntries) break;
    struct stat info;
    if (fstatat(dirfd(listing), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (info.st_dev != device) continue;
    *bytes += BlockBytes(info);
    if (!S_ISDIR(info.st_mode) || depth >= kMaxDiskDepth) continue;
    const int below = openat(dirfd(listing), name.c_str(),
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (below >= 0) AddDirectory(below, device, depth + 1, entries, bytes);
  }
  closedir(listing);
}

// What project quotas count; -1 without.
int64_t ProjectBytes(const DiskArea& area) {
  for (const std::string& directory : area.directories) {
    const ProjectUse use = ReadProjectUse(directory);
    if (use.project != 0 && use.limit_bytes > 0) return use.used_bytes;
  }
  return -1;
}

int64_t AreaBytes(const DiskArea& area) {
  if (const int64_t counted = ProjectBytes(area); counted >= 0) return counted;
  int64_t bytes = 0;
  for (const std::string& directory : area.directories) bytes += DiskBytes(directory);
  return bytes;
}

uint64_t DeviceOf(const DiskArea& area) {
  struct stat info;
  for (const std::string& directory : area.directories) {
    if (stat(directory.c_str(), &info) == 0) return info.st_dev;
  }
  return 0;
}

bool HasEnded(const std::string& directory) {
  std::string text;
  SupervisorStatus status;
  return ReadWholeFile(directory + "/status", &text) == 0 && DecodeStatus(text, &status) &&
         (status.phase == SupervisorStatus::kExited || status.phase == SupervisorStatus::kRefused);
}

}  // namespace

int64_t DiskBytes(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info;
  if (fd < 0) return 0;
  if (fstat(fd, &info) != 0) {
    close(fd);
    return 0;
  }
  int64_t entries = 0, bytes = BlockBytes(info);
  AddDirectory(fd, info.st_dev, 0, &entries, &bytes);
  return bytes;
}

int64_t UnlinkedBytes(const std::string& group, uint64_t device) {
  std::string processes;
  if (group.empty() || ReadWholeFile(group + "/cgroup.procs", &processes) != 0) return 0;
  std::set<ino_t> seen;
  int64_t bytes = 0, entries = 0;
  for (const absl::string_view pid : absl::StrSplit(processes, '\n', absl::SkipEmpty())) {
    const std::string directory = absl::StrCat("/proc/", pid, "/fd");
    DIR* listing = opendir(directory.c_str());
    if (listing == nullptr) continue;
    while (const dirent* entry = readdir(listing)) {
      struct stat info;
      if (++entries > kMaxDiskEntries) break;
      if (fstatat(dirfd(listing), entry->d_name, &info, 0) != 0 || !S_ISREG(info.st_mode)) continue;
      if (info.st_nlink != 0 || info.st_dev != device || !seen.insert(info.st_ino).second) continue;
      bytes += BlockBytes(info);
    }
    closedir(listing);
  }
  return bytes;
}

DiskWatch::DiskWatch(Options options, std::function<void()> tell)
    : options_(std::move(options)), tell_(std::move(tell)) {
  thread_ = std::thread([this] { Run(); });
}

DiskWatch::~DiskWatch() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void DiskWatch::Add(const TaskId& id, std::vector<DiskArea> areas, std::string group) {
  absl::MutexLock lock(&mutex_);
  tasks_[id] = {.areas = std::move(areas), .group = std::move(group)};
}

void DiskWatch::Remove(const TaskId& id) {
  absl::MutexLock lock(&mutex_);
  tasks_.erase(id);
}

std::vector<DiskCulprit> DiskWatch::Take() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(culprits_, {});
}

bool DiskWatch::Exhausted() const {
  absl::MutexLock lock(&mutex_);
  return exhausted_;
}

void DiskWatch::Run() {
  for (;;) {
    const absl::Duration took = Look();
    absl::MutexLock lock(&mutex_);
    const absl::Duration rest = std::max(options_.interval, took * kRestFactor);
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), rest);
    if (stopping_) return;
  }
}

// How long the walk took.
absl::Duration DiskWatch::Look() {
  std::map<TaskId, Task> tasks;
  {
    absl::MutexLock lock(&mutex_);
    tasks = tasks_;
  }
  AskFileSystems(tasks);
  const auto full = [this] {
    return std::any_of(file_systems_.begin(), file_systems_.end(),
                       [](const auto& entry) { return entry.second.full; });
  };
  bool is_full = full();
  if (is_full) {
    RemoveLeftWork(tasks);
    AskFileSystems(tasks);
    is_full = full();
  }
  const absl::Time begin = absl::Now();
  bool someone = true;
  if (is_full || MustWalk(tasks)) {
    const Uses uses = Walk(tasks, is_full);
    EndOverBound(tasks, uses);
    someone = !is_full || EndBiggest(tasks, uses);
    walked_ = begin;
    for (auto& [device, file_system] : file_systems_)
      file_system.walked_used_bytes = file_system.used_bytes;
  }
  absl::MutexLock lock(&mutex_);
  exhausted_ = is_full && !someone;
  return absl::Now() - begin;
}

void DiskWatch::AskFileSystems(const std::map<TaskId, Task>& tasks) {
  std::map<uint64_t, std::string> wanted;
  struct stat info;
  if (stat(options_.tasks_directory.c_str(), &info) == 0)
    wanted[info.st_dev] = options_.tasks_directory;
  for (const auto& [id, task] : tasks) {
    for (const DiskArea& area : task.areas) {
      if (stat(area.directories.front().c_str(), &info) == 0)
        wanted.try_emplace(info.st_dev, area.directories.front());
    }
  }
  std::erase_if(file_systems_, [&](const auto& entry) { return !wanted.contains(entry.first); });
  for (const auto& [device, path] : wanted) {
    struct statvfs space;
    if (statvfs(path.c_str(), &space) != 0) continue;
    FileSystem& file_system = file_systems_[device];
    const auto unit = static_cast<int64_t>(space.f_frsize);
    file_system.path = path;
    file_system.free_bytes = static_cast<int64_t>(space.f_bavail) * unit;
    file_system.used_bytes = static_cast<int64_t>(space.f_blocks - space.f_bfree) * unit;
    file_system.full = file_system.free_bytes < options_.min_free_bytes ||
                       (space.f_files != 0 && space.f_favail == 0);
  }
}

bool DiskWatch::MustWalk(const std::map<TaskId, Task>& tasks) const {
  if (tasks.empty()) return false;
  if (absl::Now() - walked_ >= kDiskWalkInterval) return true;
  int64_t growth = kGrowthWalked;
  for (const auto& [id, task] : tasks) {
    for (const DiskArea& area : task.areas) {
      if (area.bound_bytes > 0) growth = std::min(growth, area.bound_bytes / kBoundParts);
    }
  }
  return std::any_of(file_systems_.begin(), file_systems_.end(), [&](const auto& entry) {
    return entry.second.used_bytes - entry.second.walked_used_bytes >= growth;
  });
}

// Files without a name are looked for when room is short only: each process has to be asked.
DiskWatch::Uses DiskWatch::Walk(const std::map<TaskId, Task>& tasks, bool full) const {
  Uses uses;
  for (const auto& [id, task] : tasks) {
    for (const DiskArea& area : task.areas) {
      const uint64_t device = DeviceOf(area);
      uses[id].push_back(AreaBytes(area) + (full ? UnlinkedBytes(task.group, device) : 0));
    }
  }
  return uses;
}

void DiskWatch::EndOverBound(const std::map<TaskId, Task>& tasks, const Uses& uses) {
  for (const auto& [id, task] : tasks) {
    for (size_t i = 0; i < task.areas.size(); ++i) {
      const DiskArea& area = task.areas[i];
      const int64_t used = uses.at(id)[i];
      if (area.bound_bytes <= 0 || used <= area.bound_bytes) continue;
      const std::string bound = SizeText(area.bound_bytes);
      Blame(id, area.asked
                    ? absl::StrCat("used ", SizeText(used), " of its ", bound, " of scratch")
                    : absl::StrCat("used ", SizeText(used), " of the ", bound,
                                   " of disk that a task may use here that asks for no scratch"));
    }
  }
}

// Whether somebody is to blame for a full file system: is being ended, or is from now on.
bool DiskWatch::EndBiggest(const std::map<TaskId, Task>& tasks, const Uses& uses) {
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, task] : tasks_) {
      if (task.ending) return true;
    }
  }
  const TaskId* biggest = nullptr;
  int64_t most = std::max<int64_t>(options_.min_free_bytes / 2, 1);  // less would not help
  int64_t free = 0;
  for (const auto& [id, task] : tasks) {
    for (size_t i = 0; i < task.areas.size(); ++i) {
      const auto found = file_systems_.find(DeviceOf(task.areas[i]));
      const bool full = found != file_systems_.end() && found->second.full;
      if (!full || task.areas[i].asked || uses.at(id)[i] < most) continue;
      biggest = &id;
      most = uses.at(id)[i];
      free = found->second.free_bytes;
    }
  }
  if (biggest == nullptr) return false;
  Blame(*biggest, absl::StrCat("the node's disk is nearly full (", SizeText(free),
                               " free), and this task used most of it without asking for scratch: ",
                               SizeText(most)));
  return true;
}

// Nobody reads the working directory of an ended task: it is kept for people who look for a cause.
void DiskWatch::RemoveLeftWork(const std::map<TaskId, Task>& tasks) const {
  std::set<std::string> live;
  for (const auto& [id, task] : tasks) live.insert(ToString(id));
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(options_.tasks_directory, ignored)) {
    const std::filesystem::path work = entry.path() / "work";
    if (live.contains(entry.path().filename()) || !std::filesystem::exists(work, ignored)) continue;
    if (HasEnded(entry.path())) std::filesystem::remove_all(work, ignored);
  }
}

void DiskWatch::Blame(const TaskId& id, std::string message) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = tasks_.find(id);
    if (found == tasks_.end() || found->second.ending) return;
    found->second.ending = true;
    culprits_.push_back({id, std::move(message)});
  }
  tell_();
}

}  // namespace berth
