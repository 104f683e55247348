// Creates the control groups of tasks (supervisor/control_group.h), with their limits.
//
// Version 2, if it has the controllers: one directory ROOT/PARENT/TASK. Otherwise version 1: the
// same directory below each mounted hierarchy, and also below version 2 if it is mounted without
// controllers, because it can kill a whole tree at once and block devices. The groups are below the
// root of the hierarchies, not below the agent's own group: that group changes when a service
// manager restarts the agent, while its tasks keep running.
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
  int64_t cpu_millis = 0;                        // 0 = no share
  int64_t memory_bytes = 0;                      // 0 = no limit
  std::string cpuset = {};                       // "0-3,8"; empty = any
  std::vector<std::string> denied_devices = {};  // character devices, "195:3"
};

// The kernel's hierarchies, from /proc/self/mountinfo.
struct Hierarchies {
  struct V1 {
    std::string controller, path;
  };
  std::vector<V1> v1;        // mounted ones of memory, cpu, cpuset, pids, devices and freezer
  std::string unified;       // mount point of version 2; empty = not mounted
  bool controllers = false;  // version 2 has memory and pids
};
Hierarchies ReadHierarchies(const std::string& mountinfo);

class ControlGroups {
 public:
  // Null if mode is off. FAILED_PRECONDITION with the reason if they cannot be used: memory, pids
  // or freezing and killing is missing, or the directories cannot be written.
  static absl::StatusOr<std::unique_ptr<ControlGroups>> Open(
      const config::v1::ControlGroups& config, const std::string& node,
      const Hierarchies& hierarchies);

  // Creates an empty group; returns its directories. Removes leftovers of a task with the same
  // name.
  absl::StatusOr<std::vector<std::string>> Make(const TaskId& id, const GroupLimits& limits) const;
  // Removes a leftover group if it is empty: an agent may have been killed after it created it.
  void Remove(const TaskId& id) const;
  bool denies_devices() const { return denies_v1_ || denies_v2_; }  // enforces denied_devices
  // Why not; empty if they are.
  const std::string& device_denial_error() const { return denial_error_; }
  const std::string& description() const { return description_; }  // for the log

 private:
  struct Tree {
    std::string controller;  // version 1; "" = version 2
    std::string directory;   // the parent
  };
  absl::Status MakeParents();
  absl::Status Limit(const Tree& tree, const std::string& group, const GroupLimits& limits) const;
  absl::Status LimitUnified(const std::string& group, const GroupLimits& limits) const;
  absl::Status LimitV1(const Tree& tree, const std::string& group, const GroupLimits& limits) const;

  config::v1::ControlGroups config_;
  void FindDeviceDenial();

  bool unified_ = false;    // version 2 has the controllers
  bool denies_v1_ = false;  // devices are blocked by version 1's controller
  bool denies_v2_ = false;  // or by a BPF program (device_filter.h)
  std::string denial_error_;
  std::vector<Tree> trees_;
  std::vector<std::string> roots_;  // of trees_
  std::string parent_;
  std::string description_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_CONTROL_GROUPS_H_
