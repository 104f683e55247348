// The control group of one task, as the programs use it that hold the task: a directory in each
// hierarchy of the kernel that is used (version 1), or a single one (version 2). The agent makes
// them (clients/agent/control_groups.h) and hands their paths over; nothing here reads a
// configuration.
//
// A process leaves its group as little as it can leave its user: killing the group kills all of the
// task, wherever a process went, and an empty group means that nothing of the task is left.
// Standard library only.
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
  // Absolute paths. None: the task has no group; it then counts as empty, and nothing is done.
  explicit ControlGroup(std::vector<std::string> directories)
      : directories_(std::move(directories)) {}

  bool exists() const { return !directories_.empty(); }
  const std::vector<std::string>& directories() const { return directories_; }
  // Moves the calling process in. An errno, 0 = done.
  int Enter() const;
  // To every process in it and below it that is not of that process group.
  void Signal(int signal, pid_t but_of) const;
  // SIGKILL to every process in it and below it. Call again until Empty.
  void Kill() const;
  bool Empty() const;
  // Processes of it that the kernel killed because memory ran out.
  int64_t OomKills() const;
  // Of an empty group. What cannot be removed yet stays.
  void Remove() const;

 private:
  std::vector<std::string> directories_;
};

// What the task's message says after so many OomKills. `memory_bytes`: what it asked for, 0 = none.
std::string OutOfMemoryText(int64_t kills, int64_t memory_bytes);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_CONTROL_GROUP_H_
