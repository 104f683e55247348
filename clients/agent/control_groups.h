// Makes the control groups of tasks (supervisor/control_group.h), with their limits.
//
// Version 2, where its controllers are: one directory ROOT/PARENT/TASK. Version 1 otherwise: the
// same below each hierarchy that is mounted, and beside them one of version 2, if that is mounted
// without controllers, because it kills a whole tree at once and can bar devices. Below the root of
// the hierarchies, not below the agent's own group: that changes when a service manager starts the
// agent anew, and its tasks live on.
#ifndef BERTH_CLIENTS_AGENT_CONTROL_GROUPS_H_
#define BERTH_CLIENTS_AGENT_CONTROL_GROUPS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/config/v1/config.pb.h"
#include "clients/agent/task_id.h"

namespace berth {

struct GroupLimits {
  int64_t cpu_millis = 0;                        // 0 = no share of its own
  int64_t memory_bytes = 0;                      // 0 = no limit
  std::string cpuset = {};                       // "0-3,8"; empty = any
  std::vector<std::string> denied_devices = {};  // "195:3", character devices
};

// The hierarchies of the kernel, as /proc/self/mountinfo has them.
struct Hierarchies {
  struct V1 {
    std::string controller, path;
  };
  std::vector<V1> v1;   // of memory, cpu, cpuset, pids, devices and freezer those that are mounted
  std::string unified;  // where version 2 is mounted; empty = nowhere
  bool controllers = false;  // version 2 has memory and pids
};
Hierarchies ReadHierarchies(const std::string& mountinfo);

class ControlGroups {
 public:
  // Null where mode is off. FAILED_PRECONDITION, saying why, if they cannot be used: memory, pids
  // or freezing and killing is missing, or the directories cannot be written.
  static absl::StatusOr<std::unique_ptr<ControlGroups>> Open(
      const config::v1::ControlGroups& config, const std::string& node,
      const Hierarchies& hierarchies);

  // An empty group; its directories. What an earlier start of the same name left is removed.
  absl::StatusOr<std::vector<std::string>> Make(const TaskId& id, const GroupLimits& limits) const;
  // What is left of the group, if nobody is in it: an agent may have been killed after it made it.
  void Remove(const TaskId& id) const;
  bool bars_devices() const { return bars_v1_ || bars_v2_; }  // whether denied_devices are kept to
  // Why not; empty if they are.
  const std::string& why_devices_are_open() const { return why_open_; }
  const std::string& description() const { return description_; }  // for the log

 private:
  struct Tree {
    std::string controller;  // of version 1; "" = version 2
    std::string directory;   // the parent
  };
  absl::Status MakeParents();
  absl::Status Limit(const Tree& tree, const std::string& group, const GroupLimits& limits) const;
  absl::Status LimitUnified(const std::string& group, const GroupLimits& limits) const;
  absl::Status LimitV1(const Tree& tree, const std::string& group, const GroupLimits& limits) const;

  config::v1::ControlGroups config_;
  void FindBarrier();

  bool unified_ = false;  // version 2 has the controllers
  bool bars_v1_ = false;  // devices are barred by version 1's controller
  bool bars_v2_ = false;  // or by a program (device_filter.h)
  std::string why_open_;
  std::vector<Tree> trees_;
  std::vector<std::string> roots_;  // of trees_
  std::string parent_;
  std::string description_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_CONTROL_GROUPS_H_
