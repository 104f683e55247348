#include "clients/agent/disk_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/agent/kept_output.h"
#include "clients/agent/supervisor/project_quota.h"
#include "clients/agent/supervisor/spec.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr int kRestFactor = 9;
constexpr int64_t kGrowthWalked = int64_t{64}
                                  << 20;  // a file system that grew by so much is walked
constexpr int kBoundParts = 16;           // or by this fraction of the smallest bound
constexpr int64_t kKeptPart = 10;         // fraction of the file system for output of ended tasks
constexpr size_t kMaxPathBytes = 200;     // of a file name in a message
constexpr int64_t kFilesParts = 50;       // fewer files than this fraction of all are not to blame

// Usage by project quota, including files without a name; nothing without a quota.
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

// When the agent prepared the task.
absl::Time BeganAt(const std::string& task_directory) {
  struct stat info;
  if (stat((task_directory + "/spec").c_str(), &info) != 0) return absl::InfinitePast();
  return absl::TimeFromTimespec(info.st_mtim);
}

int64_t Room(const DiskArea& area, const DiskUse& use) {
  return area.bound_bytes > 0 ? area.bound_bytes - use.bytes : INT64_MAX;
}

// Which directory a file without a name was in is unknown: of the possible areas, it is charged to
// the one with the most room.
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
  MakeRoom(tasks, AnyFull());
  const bool is_full = AnyFull();
  const absl::Time begin = absl::Now();
  const bool walks = pace_.May(begin, is_full) && (is_full || MustWalk(tasks));
  bool someone = true;
  if (walks) {
    NoteWritten(tasks);
    const Uses uses = Walk(tasks);
    BlameOverLimit(tasks, uses);
    someone = !is_full || BlameLargest(tasks, uses);
    walked_ = begin;
    for (auto& [device, file_system] : file_systems_)
      file_system.walked_used_bytes = file_system.space.used_bytes;
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
    const std::optional<DiskSpace> space = ReadDiskSpace(path);
    if (space) file_systems_[device].space = *space;
  }
}

bool DiskWatch::AnyFull() const {
  return std::any_of(file_systems_.begin(), file_systems_.end(),
                     [this](const auto& entry) { return IsFull(entry.second.space); });
}

const DiskSpace* DiskWatch::SpaceOf(const DiskArea& area) const {
  const auto found = file_systems_.find(DeviceOf(area));
  return found == file_systems_.end() ? nullptr : &found->second.space;
}

// Removes what nobody needs before any task is ended.
void DiskWatch::MakeRoom(const Tasks& tasks, bool full) {
  if (!full && absl::Now() - trimmed_ < kDiskWalkInterval) return;
  trimmed_ = absl::Now();
  std::set<std::string> live;
  for (const auto& [id, task] : tasks) live.insert(ToString(id));
  if (full) RemoveEndedWork(live);
  TrimKeptOutput(live);
  AskFileSystems(tasks);
}

// Twice min_free: otherwise the next line of output would trigger this again.
void DiskWatch::TrimKeptOutput(const std::set<std::string>& live) const {
  const std::string& place = options_.tasks_directory;
  const std::optional<DiskSpace> before = ReadDiskSpace(place);
  if (!before) return;
  const bool full = IsFull(*before);
  const auto short_of_room = [&] {
    const std::optional<DiskSpace> now = full ? ReadDiskSpace(place) : std::nullopt;
    return now && (now->free_bytes < 2 * options_.min_free_bytes || now->FewInodes());
  };
  const int64_t given = options_.kept_output_bytes;
  TrimOutput(place, live, given > 0 ? given : before->total_bytes / kKeptPart, short_of_room);
}

// Files that are closed before the disk is full also count.
void DiskWatch::NoteWritten(const Tasks& tasks) {
  std::erase_if(written_, [&](const auto& entry) { return !tasks.contains(entry.first); });
  for (const auto& [id, task] : tasks) {
    const std::string directory = absl::StrCat(options_.tasks_directory, "/", ToString(id));
    written_[id].Note(task.group, BeganAt(directory));
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
    return entry.second.space.used_bytes - entry.second.walked_used_bytes >= growth;
  });
}

DiskWatch::Uses DiskWatch::Walk(const std::map<TaskId, Task>& tasks) const {
  Uses uses;
  for (const auto& [id, task] : tasks) {
    std::set<size_t> walked;  // areas without a project quota
    for (const DiskArea& area : task.areas) {
      const std::optional<DiskUse> counted = ProjectUseOf(area);
      if (!counted) walked.insert(uses[id].size());
      uses[id].push_back(counted ? *counted : DiskUseOf(area.directories));
    }
    AddUnlinked(task.group, task.areas, walked, &uses[id]);
  }
  return uses;
}

void DiskWatch::BlameOverLimit(const std::map<TaskId, Task>& tasks, const Uses& uses) {
  for (const auto& [id, task] : tasks) {
    for (size_t i = 0; i < task.areas.size(); ++i) {
      const DiskArea& area = task.areas[i];
      const int64_t used = uses.at(id)[i].bytes;
      if (uses.at(id)[i].too_deep) {
        Blame(id, absl::StrCat("has directories nested more than ", kMaxDiskDepth,
                               " deep, so its disk usage cannot be measured"));
      }
      if (area.bound_bytes <= 0 || used <= area.bound_bytes) continue;
      const std::string bound = SizeText(area.bound_bytes);
      Blame(id, area.asked ? absl::StrCat("used ", SizeText(used), " of its ", bound, " of scratch")
                           : absl::StrCat("used ", SizeText(used), " of disk; the limit is ", bound,
                                          " for a task that requests no scratch"));
    }
  }
}

// Whether a task is to blame for a full file system: it is being ended, or is from now on.
bool DiskWatch::BlameLargest(const std::map<TaskId, Task>& tasks, const Uses& uses) {
  if (AnyTaskEnding()) return true;
  Tasks candidates = tasks;
  std::erase_if(candidates, [](const auto& entry) { return entry.second.blames >= kDiskBlames; });
  std::optional<DiskCulprit> culprit = MostBytes(candidates, uses);
  if (!culprit) culprit = MostOutside(candidates);
  if (!culprit) culprit = MostFiles(candidates, uses);
  if (!culprit) return false;
  Blame(culprit->id, std::move(culprit->message));
  return true;
}

bool DiskWatch::AnyTaskEnding() const {
  absl::MutexLock lock(&mutex_);
  return std::any_of(tasks_.begin(), tasks_.end(), [now = absl::Now()](const auto& entry) {
    return entry.second.ending_until > now;
  });
}

std::optional<DiskCulprit> DiskWatch::MostBytes(const Tasks& tasks, const Uses& uses) const {
  std::optional<DiskCulprit> culprit;
  int64_t most = std::max<int64_t>(options_.min_free_bytes / 2, 1);  // ending others would not help
  for (const auto& [id, task] : tasks) {
    for (size_t i = 0; i < task.areas.size(); ++i) {
      const DiskSpace* space = SpaceOf(task.areas[i]);
      const int64_t used = uses.at(id)[i].bytes;
      if (space == nullptr || !FewBytes(*space) || task.areas[i].asked || used < most) continue;
      most = used;
      culprit = {id, absl::StrCat("the node's disk is nearly full (", SizeText(space->free_bytes),
                                  " free), and this task used the most without requesting "
                                  "scratch: ",
                                  SizeText(used))};
    }
  }
  return culprit;
}

// Requested scratch is in the task's own directories: it may use nothing else.
std::optional<DiskCulprit> DiskWatch::MostOutside(const Tasks& tasks) const {
  std::optional<DiskCulprit> culprit;
  int64_t most = std::max<int64_t>(options_.min_free_bytes / 2, 1);
  for (const auto& [id, task] : tasks) {
    const auto written = written_.find(id);
    if (written == written_.end()) continue;
    std::vector<std::string> own;
    for (const DiskArea& area : task.areas)
      own.insert(own.end(), area.directories.begin(), area.directories.end());
    for (const auto& [device, file_system] : file_systems_) {
      if (!FewBytes(file_system.space)) continue;
      const WrittenFiles::Sum sum = written->second.Outside(device, own);
      if (sum.bytes < most) continue;
      most = sum.bytes;
      culprit = {
          id, absl::StrCat("the node's disk is nearly full (",
                           SizeText(file_system.space.free_bytes), " free), and this task wrote ",
                           SizeText(sum.bytes), " outside its own directories, to files such as ",
                           Shortened(Visible(sum.largest), kMaxPathBytes))};
    }
  }
  return culprit;
}

std::optional<DiskCulprit> DiskWatch::MostFiles(const Tasks& tasks, const Uses& uses) const {
  std::optional<DiskCulprit> culprit;
  int64_t most = 0;
  for (const auto& [id, task] : tasks) {
    for (size_t i = 0; i < task.areas.size(); ++i) {
      const DiskArea& area = task.areas[i];
      const DiskSpace* space = SpaceOf(area);
      if (space == nullptr || !space->FewInodes()) continue;
      const int64_t files = uses.at(id)[i].files;
      const int64_t claim = area.asked ? space->InodesOf(area.bound_bytes) : 0;
      if (files <= std::max({claim, most, space->inodes / kFilesParts})) continue;
      most = files;
      culprit = {id, absl::StrCat("the node's disk is nearly out of inodes (", space->free_inodes,
                                  " free), and this task has the most files: ", files)};
    }
  }
  return culprit;
}

// Working directories of ended tasks are kept only for debugging.
void DiskWatch::RemoveEndedWork(const std::set<std::string>& live) const {
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
    if (found == tasks_.end() || found->second.ending_until > absl::Now()) return;
    found->second.ending_until = absl::Now() + options_.patience;
    ++found->second.blames;
    culprits_.push_back({id, std::move(message)});
  }
  tell_();
}

}  // namespace berth
