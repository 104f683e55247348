// Compares the disk usage of tasks on shared disks with their limits, in a separate thread.
//
// Each check reads how full each file system is, which is cheap. Only if one is nearly full, has
// grown, or was not walked for a while, the tasks' directories are walked (or, with project quotas,
// the kernel is queried). No walk starts within nine times the duration of the last one, unless a
// file system has become full. A check finds culprits:
//
//   1. a task that exceeds its limit, or whose directories are too deep to measure;
//   2. on a file system with less than min_free, once the working directories and then the oldest
//      output of ended tasks were removed: the task with the most usage among those that requested
//      no scratch;
//   3. if there is none, the one that wrote the most outside its own directories;
//   4. if inodes are short, the one with the most files beyond its share.
//
// Only one culprit of 2 to 4 is reported at a time. A task that keeps running is reported again,
// kDiskBlames times in all, and then others are. Only if a nearly full disk has no culprit left is
// the node at fault (Exhausted).
#ifndef BERTH_CLIENTS_AGENT_DISK_WATCH_H_
#define BERTH_CLIENTS_AGENT_DISK_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clients/agent/disk_space.h"
#include "clients/agent/disk_use.h"
#include "clients/agent/task_id.h"
#include "clients/agent/written_files.h"

namespace berth {

inline constexpr absl::Duration kDiskLookInterval = absl::Seconds(5);
inline constexpr absl::Duration kDiskWalkInterval = absl::Minutes(1);  // at least this often
inline constexpr int kDiskBlames = 3;  // of one task for a full disk; then it is skipped

// A part of the storage that a task may write to, on one file system.
struct DiskArea {
  std::vector<std::string> directories;  // absolute; may not exist (yet or any more)
  int64_t bound_bytes = 0;               // 0 = unlimited
  bool asked = false;                    // the job requested the bound
};

struct DiskCulprit {
  TaskId id;
  std::string message;  // "used 1.2 GiB of its 1 GiB of scratch"
};

// Limits the fraction of time spent on walks.
class WalkPace {
 public:
  // Whether a walk may start: after the pause, or because a file system has just become full.
  bool May(absl::Time now, bool full);
  void Walked(absl::Time begin, absl::Time end, bool full);

 private:
  absl::Time rest_end_ = absl::InfinitePast();
  bool walked_full_ = false;  // a file system has been full since the last walk
};

class DiskWatch {
 public:
  struct Options {
    std::string tasks_directory;  // absolute; also has those of ended tasks
    int64_t min_free_bytes = 0;
    absl::Duration interval = kDiskLookInterval;
    // Grace of a task being ended, plus a margin. Afterwards it, or another, may be reported again.
    absl::Duration patience = absl::Seconds(20);
    int64_t kept_output_bytes = 0;  // of all ended tasks; 0: a tenth of the file system
  };
  // Calls `tell` on the thread when there are culprits.
  DiskWatch(Options options, std::function<void()> tell);
  ~DiskWatch();

  void Add(const TaskId& id, std::vector<DiskArea> areas, std::string group);
  void Remove(const TaskId& id);
  // The culprits since the last call.
  std::vector<DiskCulprit> Take();
  // At the last check, a file system was nearly full, with no culprit and no task being ended.
  bool Exhausted() const;

 private:
  struct Task {
    std::vector<DiskArea> areas;
    std::string group;  // control group; empty: none
    absl::Time ending_until = absl::InfinitePast();
    int blames = 0;
  };
  struct FileSystem {
    DiskSpace space;
    int64_t walked_used_bytes = -1;  // at the last walk
  };
  using Tasks = std::map<TaskId, Task>;
  using FileSystems = std::map<uint64_t, FileSystem>;   // by device
  using Uses = std::map<TaskId, std::vector<DiskUse>>;  // parallel to areas

  void Run();
  void Look();
  void AskFileSystems(const std::map<TaskId, Task>& tasks);
  bool MustWalk(const std::map<TaskId, Task>& tasks) const;
  Uses Walk(const std::map<TaskId, Task>& tasks) const;
  void BlameOverLimit(const std::map<TaskId, Task>& tasks, const Uses& uses);
  bool BlameLargest(const std::map<TaskId, Task>& tasks, const Uses& uses);
  bool FewBytes(const DiskSpace& space) const { return space.free_bytes < options_.min_free_bytes; }
  bool IsFull(const DiskSpace& space) const { return FewBytes(space) || space.FewInodes(); }
  bool AnyFull() const;
  const DiskSpace* SpaceOf(const DiskArea& area) const;
  bool AnyTaskEnding() const;
  std::optional<DiskCulprit> MostBytes(const Tasks& tasks, const Uses& uses) const;
  std::optional<DiskCulprit> MostOutside(const Tasks& tasks) const;
  std::optional<DiskCulprit> MostFiles(const Tasks& tasks, const Uses& uses) const;
  void NoteWritten(const Tasks& tasks);
  void MakeRoom(const Tasks& tasks, bool full);
  void TrimKeptOutput(const std::set<std::string>& live) const;
  void RemoveEndedWork(const std::set<std::string>& live) const;
  void Blame(const TaskId& id, std::string message);

  const Options options_;
  const std::function<void()> tell_;
  // Used by the thread only.
  FileSystems file_systems_;
  absl::Time walked_ = absl::InfinitePast();
  absl::Time trimmed_ = absl::InfinitePast();
  std::map<TaskId, WrittenFiles> written_;
  WalkPace pace_;

  mutable absl::Mutex mutex_;
  std::map<TaskId, Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::vector<DiskCulprit> culprits_ ABSL_GUARDED_BY(mutex_);
  bool exhausted_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DISK_WATCH_H_
