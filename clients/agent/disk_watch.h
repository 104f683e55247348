// What tasks use of the disks that they share, against what each may use, in a thread of its own.
//
// A look asks each file system how full it is, which costs nothing. Only when it is nearly full,
// has grown, or was not looked at for a while, the tasks' directories are walked (or, with project
// quotas, the kernel is asked). No walk begins within nine times the time that the last one took,
// unless a file system has become full. Of a look come culprits:
//
//   1. a task that uses more than its bound, or hides what it uses in too deep directories;
//   2. on a file system with less than min_free left, once what ended tasks left in their working
//      directories was removed, and their output, the oldest first: of the tasks that asked for no
//      scratch the one that uses most;
//   3. if that is nobody, the one that wrote most outside of its own directories;
//   4. where inodes are short, the one that has most files, beyond its part of them.
//
// One of 2 to 4 is told at a time. Who lives on is told again, kDiskBlames times in all, and then
// others are. Only when a nearly full disk has no culprit left is it the node's trouble
// (Exhausted).
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
inline constexpr absl::Duration kDiskWalkInterval = absl::Minutes(1);  // at the latest
inline constexpr int kDiskBlames = 3;  // of one task for a full disk; then it is passed over

// A part of what a task may write to, all of it on one file system.
struct DiskArea {
  std::vector<std::string> directories;  // absolute; there, or not yet or no more
  int64_t bound_bytes = 0;               // 0 = none
  bool asked = false;                    // the bound is what the job asked for
};

struct DiskCulprit {
  TaskId id;
  std::string message;  // "used 1.2 GiB of its 1 GiB of scratch"
};

// How much of the time is spent walking.
class WalkPace {
 public:
  // Whether a walk may begin: after the rest, or because a file system is full since.
  bool May(absl::Time now, bool full);
  void Walked(absl::Time begin, absl::Time end, bool full);

 private:
  absl::Time rest_end_ = absl::InfinitePast();
  bool walked_full_ = false;  // and full it is since
};

class DiskWatch {
 public:
  struct Options {
    std::string tasks_directory;  // absolute: those of ended tasks are in it
    int64_t min_free_bytes = 0;
    absl::Duration interval = kDiskLookInterval;
    // For who is told to end: its grace, and a little. Then it may be told again, or another.
    absl::Duration patience = absl::Seconds(20);
    int64_t kept_output_bytes = 0;  // of all ended tasks; 0: a tenth of the file system
  };
  // `tell` is called on the thread when there are culprits.
  DiskWatch(Options options, std::function<void()> tell);
  ~DiskWatch();

  void Add(const TaskId& id, std::vector<DiskArea> areas, std::string group);
  void Remove(const TaskId& id);
  // Since the last call.
  std::vector<DiskCulprit> Take();
  // At the last look a file system was nearly full, and nobody was to blame or is being ended.
  bool Exhausted() const;

 private:
  struct Task {
    std::vector<DiskArea> areas;
    std::string group;  // control group; empty: none
    absl::Time ending_until = absl::InfinitePast();
    int told = 0;
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
  void EndOverBound(const std::map<TaskId, Task>& tasks, const Uses& uses);
  bool EndBiggest(const std::map<TaskId, Task>& tasks, const Uses& uses);
  bool FewBytes(const DiskSpace& space) const { return space.free_bytes < options_.min_free_bytes; }
  bool IsFull(const DiskSpace& space) const { return FewBytes(space) || space.FewInodes(); }
  bool AnyFull() const;
  const DiskSpace* SpaceOf(const DiskArea& area) const;
  bool SomebodyEnds() const;
  std::optional<DiskCulprit> MostBytes(const Tasks& tasks, const Uses& uses) const;
  std::optional<DiskCulprit> MostElsewhere(const Tasks& tasks) const;
  std::optional<DiskCulprit> MostFiles(const Tasks& tasks, const Uses& uses) const;
  void NoteWritten(const Tasks& tasks);
  void MakeRoom(const Tasks& tasks, bool full);
  void TrimKeptOutput(const std::set<std::string>& live) const;
  void RemoveLeftWork(const std::set<std::string>& live) const;
  void Blame(const TaskId& id, std::string message);

  const Options options_;
  const std::function<void()> tell_;
  // Of the thread alone.
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
