#include "clients/agent/disk_watch.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/agent/supervisor/project_quota.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr int kRestFactor = 9;
constexpr int64_t kGrowthWalked = int64_t{64}
                                  << 20;  // a file system that grew by so much is walked
constexpr int kBoundParts = 16;           // or by this part of the smallest bound
constexpr int64_t kFilesParts = 50;       // fewer files than this part of all are not what is wrong

// What project quotas count, files without a name among it; nothing without.
std::optional<DiskUse> ProjectUseOf(const DiskArea& area) {
  for (const std::string& directory : area.directories) {
    const ProjectUse use = ReadProjectUse(directory);
    if (use.project != 0 && use.limit_bytes > 0)
      return DiskUse{.bytes = use.used_bytes, .files = use.used_files};
  }
  return std::nullopt;
}

uint64_t DeviceOf(const DiskArea& area) {
  struct stat info;
  for (const std::string& directory : area.directories) {
    if (stat(directory.c_str(), &info) == 0) return info.st_dev;
  }
  return 0;
}

int64_t Room(const DiskArea& area, const DiskUse& use) {
  return area.bound_bytes > 0 ? area.bound_bytes - use.bytes : INT64_MAX;
}

// Which directory a file without a name was in nobody knows: of those that may be it counts for the
// one with the most room.
void AddUnlinked(const std::string& group, const std::vector<DiskArea>& areas,
                 const std::set<size_t>& walked, std::vector<DiskUse>* uses) {
  std::map<uint64_t, size_t> roomiest;  // by device
  for (const size_t i : walked) {
    const size_t other = roomiest.try_emplace(DeviceOf(areas[i]), i).first->second;
    if (Room(areas[i], (*uses)[i]) > Room(areas[other], (*uses)[other]))
      roomiest[DeviceOf(areas[i])] = i;
  }
  for (const auto& [device, i] : roomiest) (*uses)[i].bytes += UnlinkedBytes(group, device);
}

bool HasEnded(const std::string& directory) {
  std::string text;
  SupervisorStatus status;
  return ReadWholeFile(directory + "/status", &text) == 0 && DecodeStatus(text, &status) &&
         (status.phase == SupervisorStatus::kExited || status.phase == SupervisorStatus::kRefused);
}

}  // namespace

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
    Look();
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.interval);
    if (stopping_) return;
  }
}

bool WalkPace::May(absl::Time now, bool full) {
  walked_full_ &= full;
  return now >= rest_end_ || (full && !walked_full_);
}

void WalkPace::Walked(absl::Time begin, absl::Time end, bool full) {
  rest_end_ = end + (end - begin) * kRestFactor;
  walked_full_ = full;
}

void DiskWatch::Look() {
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
  const bool walks = pace_.May(begin, is_full) && (is_full || MustWalk(tasks));
  bool someone = true;
  if (walks) {
    const Uses uses = Walk(tasks);
    EndOverBound(tasks, uses);
    someone = !is_full || EndBiggest(tasks, uses);
    walked_ = begin;
    for (auto& [device, file_system] : file_systems_)
      file_system.walked_used_bytes = file_system.used_bytes;
    pace_.Walked(begin, absl::Now(), is_full);
  }
  absl::MutexLock lock(&mutex_);
  if (walks || !is_full) exhausted_ = is_full && !someone;
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
    file_system.files = static_cast<int64_t>(space.f_files);
    file_system.no_files = space.f_files != 0 && space.f_favail == 0;
    file_system.full = file_system.no_files || file_system.free_bytes < options_.min_free_bytes;
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

DiskWatch::Uses DiskWatch::Walk(const std::map<TaskId, Task>& tasks) const {
  Uses uses;
  for (const auto& [id, task] : tasks) {
    std::set<size_t> walked;  // areas that the kernel does not count
    for (const DiskArea& area : task.areas) {
      const std::optional<DiskUse> counted = ProjectUseOf(area);
      if (!counted) walked.insert(uses[id].size());
      uses[id].push_back(counted ? *counted : DiskUseOf(area.directories));
    }
    AddUnlinked(task.group, task.areas, walked, &uses[id]);
  }
  return uses;
}

void DiskWatch::EndOverBound(const std::map<TaskId, Task>& tasks, const Uses& uses) {
  for (const auto& [id, task] : tasks) {
    for (size_t i = 0; i < task.areas.size(); ++i) {
      const DiskArea& area = task.areas[i];
      const int64_t used = uses.at(id)[i].bytes;
      if (uses.at(id)[i].too_deep) {
        Blame(id, absl::StrCat("has directories more than ", kMaxDiskDepth,
                               " deep, where its use of the disk cannot be counted"));
      }
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
  for (const auto& [device, file_system] : file_systems_) {
    if (file_system.full && EndBiggestOn(device, tasks, uses)) return true;
  }
  return false;
}

// By bytes, or by files where no more can be made: of those nobody asks for a number.
bool DiskWatch::EndBiggestOn(uint64_t device, const std::map<TaskId, Task>& tasks,
                             const Uses& uses) {
  const FileSystem& file_system = file_systems_.at(device);
  const bool files = file_system.no_files;
  const TaskId* biggest = nullptr;
  int64_t most = files ? file_system.files / kFilesParts : options_.min_free_bytes / 2;
  most = std::max<int64_t>(most, 1);  // less would not help
  for (const auto& [id, task] : tasks) {
    for (size_t i = 0; i < task.areas.size(); ++i) {
      const int64_t used = files ? uses.at(id)[i].files : uses.at(id)[i].bytes;
      if (DeviceOf(task.areas[i]) != device || (task.areas[i].asked && !files) || used < most)
        continue;
      biggest = &id;
      most = used;
    }
  }
  if (biggest == nullptr) return false;
  Blame(*biggest,
        files ? absl::StrCat("the node's disk has no room for more files, and this task made most "
                             "of them: ",
                             most)
              : absl::StrCat("the node's disk is nearly full (", SizeText(file_system.free_bytes),
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
