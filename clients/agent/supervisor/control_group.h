// The control group of one task, as used by the programs that hold the task: one directory in each
// kernel hierarchy in use (version 1), or a single one (version 2). The agent creates them
// (clients/agent/control_groups.h) and passes their paths; nothing here reads a configuration.
//
// A process cannot leave its group: killing the group kills the whole task, wherever a process
// went, and an empty group means that no process of the task remains. Standard library only.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_CONTROL_GROUP_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_CONTROL_GROUP_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace berth {

class ControlGroup {
 public:
  ControlGroup() = default;
  // Absolute paths. None: the task has no group, counts as empty, and nothing is done.
  explicit ControlGroup(std::vector<std::string> directories)
      : directories_(std::move(directories)) {}

  bool exists() const { return !directories_.empty(); }
  const std::vector<std::string>& directories() const { return directories_; }
  // Moves the calling process into the group. Returns an errno, 0 = done.
  int Enter() const;
  // Signals every process in the group and its subgroups that is not in that process group, and is
  // in that PID namespace (PidNamespaceOf; empty: in any). They take it once they are thawed: at
  // once, unless the group is to stay frozen.
  void Signal(int signal, pid_t but_of, const std::string& pids = "",
              bool stays_frozen = false) const;
  // Freezes the group and its subgroups, or lets them go on. The kernel takes a moment.
  void SetFrozen(bool frozen) const;
  // All its processes are frozen.
  bool IsFrozen() const;
  // Sends SIGKILL to every process in the group and its subgroups. Call again until Empty.
  void Kill() const;
  bool Empty() const;
  // Of the group and its subgroups, now.
  std::vector<pid_t> Processes() const;
  // What its memory limit leaves, without what the kernel would drop of files; -1: no limit is
  // known.
  int64_t MemoryRoom() const;
  // CPU time that its processes have used, in nanoseconds; -1: not known. It may shrink when
  // processes end, on kernels that count only for each process.
  int64_t CpuNs() const;
  // The number of its processes that the kernel killed because memory ran out.
  int64_t OomKills() const;
  // Removes an empty group. What cannot be removed yet stays.
  void Remove() const;

 private:
  std::vector<std::string> directories_;
};

// Names the PID namespace of a process; empty if there is no such process.
std::string PidNamespaceOf(pid_t pid);

// The task's message after so many OomKills. `memory_bytes`: its request, 0 = none.
std::string OutOfMemoryText(int64_t kills, int64_t memory_bytes);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_CONTROL_GROUP_H_
