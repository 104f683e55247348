#include "clients/agent/control_groups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "clients/agent/device_filter.h"
#include "clients/agent/disk.h"
#include "clients/agent/supervisor/control_group.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr int64_t kDefaultMaxProcesses = 32768;
constexpr int64_t kCpuPeriodUs = 100'000;
constexpr absl::string_view kControllers[] = {"memory", "cpu",     "cpuset",
                                              "pids",   "devices", "freezer"};

absl::Status WriteControl(const std::string& path, const std::string& value) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  const ssize_t n = write(fd, value.data(), value.size());
  const int error = n < 0 ? errno : 0;
  close(fd);
  if (error == 0) return absl::OkStatus();
  return ErrnoStatus(error, absl::StrCat("write ", value, " to ", path));
}

// Kernels are built with different sets of files: a missing one is skipped.
absl::Status WriteIfThere(const std::string& path, const std::string& value) {
  return access(path.c_str(), F_OK) == 0 ? WriteControl(path, value) : absl::OkStatus();
}

std::string ReadLine(const std::string& path) {
  std::string text;
  if (ReadWholeFile(path, &text) != 0) return "";
  return text.substr(0, text.find('\n'));
}

bool HasWord(const std::string& text, absl::string_view word) {
  for (const absl::string_view found : absl::StrSplit(text, absl::ByAnyChar(" ,\n"))) {
    if (found == word) return true;
  }
  return false;
}

absl::Status MakeGroup(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("create ", path));
}

// A cpuset of version 1 accepts no process before it has CPUs and memory nodes.
absl::Status InheritCpuset(const std::string& above, const std::string& group) {
  for (const char* file : {"/cpuset.cpus", "/cpuset.mems"}) {
    if (!ReadLine(group + file).empty()) continue;
    if (absl::Status status = WriteControl(group + file, ReadLine(above + file)); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

// CPUs near its devices help a task, but it also runs without them: if the kernel does not have
// these CPUs (they may come from a file about another machine), the task gets all. Memory near its
// devices is only preferred (PreferMemory): with cpuset.mems the task would be killed while the
// rest of the machine has room.
void PreferNearCpus(const std::string& group, const GroupLimits& limits) {
  if (!limits.cpuset.empty()) (void)WriteControl(group + "/cpuset.cpus", limits.cpuset);
}

bool IsParent(const std::string& parent) {
  for (const absl::string_view name : absl::StrSplit(parent, '/')) {
    if (name.empty() || name == "." || name == "..") return false;
  }
  return true;
}

std::string MaxProcesses(const config::v1::ControlGroups& config) {
  return absl::StrCat(config.max_processes() > 0 ? config.max_processes() : kDefaultMaxProcesses);
}

}  // namespace

// "41 27 0:34 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory": the fifth field is the mount
// point; type, source and options follow the dash.
Hierarchies ReadHierarchies(const std::string& mountinfo) {
  Hierarchies found;
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || fields.end() - dash < 4) continue;
    const std::string& path = fields[4];
    if (*(dash + 1) == "cgroup2" && found.unified.empty()) {
      found.unified = path;
      const std::string controllers = ReadLine(path + "/cgroup.controllers");
      found.controllers = HasWord(controllers, "memory") && HasWord(controllers, "pids");
    }
    if (*(dash + 1) != "cgroup") continue;
    for (const absl::string_view controller : kControllers) {
      const auto same = [&](const Hierarchies::V1& v1) { return v1.controller == controller; };
      if (!HasWord(*(dash + 3), controller)) continue;
      if (std::any_of(found.v1.begin(), found.v1.end(), same)) continue;
      found.v1.push_back({std::string(controller), path});
    }
  }
  return found;
}

absl::StatusOr<std::unique_ptr<ControlGroups>> ControlGroups::Open(
    const config::v1::ControlGroups& config, const std::string& node,
    const Hierarchies& hierarchies) {
  if (config.mode() == config::v1::ControlGroups::OFF) return nullptr;
  auto groups = std::make_unique<ControlGroups>();
  groups->config_ = config;
  groups->unified_ = hierarchies.controllers;
  groups->parent_ = config.parent().empty() ? absl::StrCat("berth/", node) : config.parent();
  if (!IsParent(groups->parent_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cgroups.parent: must be names separated by '/', is ", groups->parent_));
  }
  std::vector<std::string> names;
  if (!hierarchies.unified.empty()) {
    groups->roots_.push_back(hierarchies.unified);
    groups->trees_.push_back({"", hierarchies.unified + "/" + groups->parent_});
  }
  for (const Hierarchies::V1& v1 : hierarchies.v1) {
    if (groups->unified_) break;
    groups->roots_.push_back(v1.path);
    groups->trees_.push_back({v1.controller, v1.path + "/" + groups->parent_});
    names.push_back(v1.controller);
  }
  const auto has = [&](absl::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!groups->unified_ &&
      (!has("memory") || !has("pids") || (!has("freezer") && hierarchies.unified.empty()))) {
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel lacks control groups for memory, pids or killing tasks; mounted: ",
                     names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }
  groups->description_ = absl::StrCat(
      groups->unified_ ? "version 2" : absl::StrCat("version 1 (", absl::StrJoin(names, ", "), ")"),
      " below ", groups->parent_);
  if (absl::Status status = groups->MakeParents(); !status.ok())
    return absl::FailedPreconditionError(status.message());
  groups->FindDeviceDenial();
  return groups;
}

// A controller mounted for version 1 is not available for version 2, but device programs work.
void ControlGroups::FindDeviceDenial() {
  denial_error_ = "neither the devices controller of version 1 nor version 2 is mounted";
  for (const Tree& tree : trees_) denies_v1_ |= tree.controller == "devices";
  for (const Tree& tree : trees_) {
    if (denies_v1_ || !tree.controller.empty()) continue;
    const absl::Status status = TryDenyAccess(tree.directory);
    denies_v2_ = status.ok();
    denial_error_ = std::string(status.message());
  }
  if (denies_devices()) denial_error_.clear();
}

// Version 2 passes a controller to child groups only if it is enabled for them.
absl::Status ControlGroups::MakeParents() {
  for (size_t i = 0; i < trees_.size(); ++i) {
    std::string at = roots_[i];
    for (const absl::string_view name : absl::StrSplit(parent_, '/')) {
      const std::string above = at;
      if (unified_) {
        const std::string offered = ReadLine(above + "/cgroup.controllers");
        for (const char* controller : {"memory", "pids", "cpu", "cpuset"}) {
          if (!HasWord(offered, controller)) continue;
          const std::string value = absl::StrCat("+", controller);
          if (absl::Status status = WriteControl(above + "/cgroup.subtree_control", value);
              !status.ok())
            return status;
        }
      }
      absl::StrAppend(&at, "/", name);
      if (absl::Status status = MakeGroup(at); !status.ok()) return status;
      if (trees_[i].controller != "cpuset") continue;
      if (absl::Status status = InheritCpuset(above, at); !status.ok()) return status;
    }
    if (!unified_) continue;
    for (const char* controller : {"+memory", "+pids", "+cpu", "+cpuset"}) {
      // Availability was checked above; writing the limits fails if one of the two required is
      // missing.
      WriteControl(at + "/cgroup.subtree_control", controller).IgnoreError();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ControlGroups::Make(const TaskId& id,
                                                             const GroupLimits& limits) const {
  std::vector<std::string> directories;
  for (const Tree& tree : trees_) directories.push_back(tree.directory + "/" + ToString(id));
  const ControlGroup group(directories);
  group.Remove();
  for (size_t i = 0; i < trees_.size(); ++i) {
    // A group that could not be removed has processes in it: it is not shared.
    absl::Status status = absl::OkStatus();
    if (mkdir(directories[i].c_str(), 0755) != 0)
      status = ErrnoStatus(errno, absl::StrCat("create ", directories[i]));
    if (status.ok()) status = Limit(trees_[i], directories[i], limits);
    if (status.ok()) continue;
    group.Remove();
    return status;
  }
  return directories;
}

void ControlGroups::Remove(const TaskId& id) const {
  std::vector<std::string> directories;
  for (const Tree& tree : trees_) directories.push_back(tree.directory + "/" + ToString(id));
  ControlGroup(directories).Remove();
}

absl::Status ControlGroups::Limit(const Tree& tree, const std::string& group,
                                  const GroupLimits& limits) const {
  if (!tree.controller.empty()) return LimitV1(tree, group, limits);
  if (denies_v2_ && !limits.denied_devices.empty()) {
    if (absl::Status status = DenyAccess(group, limits.denied_devices); !status.ok()) return status;
  }
  return unified_ ? LimitUnified(group, limits) : absl::OkStatus();
}

// cpu.weight is 1..10000. One CPU gets 100, so that the shares equal those of version 1 (1024 for
// one CPU).
absl::Status ControlGroups::LimitUnified(const std::string& group,
                                         const GroupLimits& limits) const {
  std::vector<std::pair<std::string, std::string>> writes = {{"/pids.max", MaxProcesses(config_)}};
  if (limits.memory_bytes > 0) writes.push_back({"/memory.max", absl::StrCat(limits.memory_bytes)});
  for (const auto& [file, value] : writes) {
    if (absl::Status status = WriteControl(group + file, value); !status.ok()) return status;
  }
  absl::Status status = absl::OkStatus();
  if (limits.memory_bytes > 0) status.Update(WriteIfThere(group + "/memory.swap.max", "0"));
  if (limits.cpu_millis > 0) {
    const int64_t weight = std::clamp<int64_t>(limits.cpu_millis / 10, 1, 10000);
    status.Update(WriteIfThere(group + "/cpu.weight", absl::StrCat(weight)));
  }
  if (limits.cpu_millis > 0 && config_.cpu_limit()) {
    const int64_t quota = limits.cpu_millis * kCpuPeriodUs / 1000;
    status.Update(WriteControl(group + "/cpu.max",
                               absl::StrCat(std::max<int64_t>(quota, 1000), " ", kCpuPeriodUs)));
  }
  PreferNearCpus(group, limits);
  return status;
}

absl::Status ControlGroups::LimitV1(const Tree& tree, const std::string& group,
                                    const GroupLimits& limits) const {
  absl::Status status = absl::OkStatus();
  if (tree.controller == "memory" && limits.memory_bytes > 0) {
    const std::string bytes = absl::StrCat(limits.memory_bytes);
    status.Update(WriteControl(group + "/memory.limit_in_bytes", bytes));
    status.Update(WriteIfThere(group + "/memory.memsw.limit_in_bytes", bytes));
  }
  if (tree.controller == "pids")
    status.Update(WriteControl(group + "/pids.max", MaxProcesses(config_)));
  if (tree.controller == "cpu" && limits.cpu_millis > 0) {
    const int64_t shares = std::clamp<int64_t>(limits.cpu_millis * 1024 / 1000, 2, 262144);
    status.Update(WriteControl(group + "/cpu.shares", absl::StrCat(shares)));
    if (config_.cpu_limit()) {
      const int64_t quota = std::max<int64_t>(limits.cpu_millis * kCpuPeriodUs / 1000, 1000);
      status.Update(WriteControl(group + "/cpu.cfs_period_us", absl::StrCat(kCpuPeriodUs)));
      status.Update(WriteControl(group + "/cpu.cfs_quota_us", absl::StrCat(quota)));
    }
  }
  if (tree.controller == "cpuset") {
    PreferNearCpus(group, limits);
    status.Update(InheritCpuset(tree.directory, group));
  }
  if (tree.controller == "devices") {
    for (const std::string& device : limits.denied_devices)
      status.Update(WriteControl(group + "/devices.deny", absl::StrCat("c ", device, " rwm")));
  }
  return status;
}

}  // namespace berth
