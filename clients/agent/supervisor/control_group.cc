#include "clients/agent/supervisor/control_group.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "clients/agent/supervisor/spec.h"
#include "core/model/task_message.h"

namespace berth {
namespace {

constexpr int kMaxDepth = 16;  // of groups that a task created below its own

// Returns an errno. Files are never created: a missing one means an unsupported feature.
int WriteControl(const std::string& path, std::string_view value) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = write(fd, value.data(), value.size()) < 0 ? errno : 0;
  close(fd);
  return error;
}

// The number after `name` in a file of "name number" lines; 0 if missing.
int64_t ReadCounter(const std::string& path, std::string_view name) {
  std::string text;
  if (ReadWholeFile(path, &text) != 0) return 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ' ') {
      return std::atoll(text.c_str() + at + name.size() + 1);
    }
    at = end + 1;
  }
  return 0;
}

std::vector<std::string> Below(const std::string& directory) {
  std::vector<std::string> names;
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) return names;
  while (const dirent* entry = readdir(listing)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
      names.push_back(directory + "/" + entry->d_name);
    }
  }
  closedir(listing);
  return names;
}

// Calls `visit` for each process in the group and its subgroups; returns their number.
int ForEachProcess(const std::string& directory, int depth,
                   const std::function<void(pid_t)>& visit) {
  std::string text;
  if (ReadWholeFile(directory + "/cgroup.procs", &text) != 0) return 0;
  int count = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const pid_t pid = std::atoi(text.c_str() + at);
    ++count;
    if (pid > 0) visit(pid);
    if (text.find('\n', at) == std::string::npos) break;
  }
  if (depth >= kMaxDepth) return count;
  for (const std::string& child : Below(directory)) {
    count += ForEachProcess(child, depth + 1, visit);
  }
  return count;
}

// A frozen process neither forks nor ends: a PID that was read stays the same process until it is
// thawed. The kernel takes a moment to freeze, and this does not wait, so a process may still
// escape.
void Freeze(const std::vector<std::string>& directories, bool freeze) {
  for (const std::string& directory : directories) {
    WriteControl(directory + "/freezer.state", freeze ? "FROZEN" : "THAWED");
    WriteControl(directory + "/cgroup.freeze", freeze ? "1" : "0");
  }
}

void RemoveGroup(const std::string& directory, int depth) {
  if (depth < kMaxDepth) {
    for (const std::string& child : Below(directory)) RemoveGroup(child, depth + 1);
  }
  rmdir(directory.c_str());
}

}  // namespace

int ControlGroup::Enter() const {
  for (const std::string& directory : directories_) {
    if (const int error = WriteControl(directory + "/cgroup.procs", "0"); error != 0) return error;
  }
  return 0;
}

// cgroup.kill kills a whole tree at once (version 2, kernel 5.14). Otherwise the group is frozen
// while its processes are listed, so that none can fork, and thawed to die.
void ControlGroup::Kill() const {
  for (const std::string& directory : directories_) {
    if (WriteControl(directory + "/cgroup.kill", "1") == 0) return Freeze(directories_, false);
  }
  Freeze(directories_, true);
  for (const std::string& directory : directories_) {
    ForEachProcess(directory, 0, [](pid_t pid) { kill(pid, SIGKILL); });
  }
  Freeze(directories_, false);
}

// Each hierarchy has the same processes.
std::string PidNamespaceOf(pid_t pid) {
  char name[64];
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/pid";
  const ssize_t n = readlink(path.c_str(), name, sizeof name);
  return n > 0 ? std::string(name, static_cast<size_t>(n)) : "";
}

void ControlGroup::Signal(int signal, pid_t but_of, const std::string& pids,
                          bool stays_frozen) const {
  if (directories_.empty()) return;
  Freeze(directories_, true);
  ForEachProcess(directories_.front(), 0, [&](pid_t pid) {
    const bool meant = pids.empty() || PidNamespaceOf(pid) == pids;
    if (meant && getpgid(pid) != but_of) kill(pid, signal);
  });
  if (!stays_frozen) Freeze(directories_, false);
}

// One hierarchy suffices. Processes that version 1 has stopped never become frozen in version 2.
void ControlGroup::SetFrozen(bool frozen) const {
  if (!frozen) return Freeze(directories_, false);
  for (const std::string& directory : directories_) {
    if (WriteControl(directory + "/freezer.state", "FROZEN") == 0) return;
  }
  for (const std::string& directory : directories_) {
    if (WriteControl(directory + "/cgroup.freeze", "1") == 0) return;
  }
}

bool ControlGroup::IsFrozen() const {
  return std::any_of(directories_.begin(), directories_.end(), [](const std::string& directory) {
    std::string text;
    if (ReadWholeFile(directory + "/freezer.state", &text) == 0) return text == "FROZEN\n";
    return ReadCounter(directory + "/cgroup.events", "frozen") == 1;
  });
}

bool ControlGroup::Empty() const {
  for (const std::string& directory : directories_) {
    if (ForEachProcess(directory, 0, [](pid_t) {}) > 0) return false;
  }
  return true;
}

namespace {

// utime, stime and those of children that were waited for: fields 14 to 17 of /proc/PID/stat.
int64_t CpuNsOf(pid_t pid) {
  std::string text;
  if (ReadWholeFile("/proc/" + std::to_string(pid) + "/stat", &text) != 0) return 0;
  const size_t name_end = text.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos) return 0;
  long long ticks[4] = {};
  const int read = std::sscanf(text.c_str() + name_end + 1,
                               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld",
                               &ticks[0], &ticks[1], &ticks[2], &ticks[3]);
  const int64_t sum = read == 4 ? ticks[0] + ticks[1] + ticks[2] + ticks[3] : 0;
  return sum * (1'000'000'000 / std::max(sysconf(_SC_CLK_TCK), 1L));
}

}  // namespace

// Version 2 counts for the group, version 1 if its hierarchy has cpuacct.
int64_t ControlGroup::CpuNs() const {
  for (const std::string& directory : directories_) {
    const int64_t us = ReadCounter(directory + "/cpu.stat", "usage_usec");
    if (us > 0) return us * 1000;
    std::string text;
    if (ReadWholeFile(directory + "/cpuacct.usage", &text) == 0) return std::atoll(text.c_str());
  }
  if (directories_.empty()) return -1;
  int64_t sum = 0;
  ForEachProcess(directories_.front(), 0, [&sum](pid_t pid) { sum += CpuNsOf(pid); });
  return sum;
}

std::vector<pid_t> ControlGroup::Processes() const {
  std::vector<pid_t> pids;
  if (directories_.empty()) return pids;
  ForEachProcess(directories_.front(), 0, [&pids](pid_t pid) { pids.push_back(pid); });
  return pids;
}

// Version 2, then version 1, whose unlimited groups have a limit near the largest number.
int64_t ControlGroup::MemoryRoom() const {
  constexpr int64_t kUnlimited = int64_t{1} << 60;
  for (const std::string& directory : directories_) {
    std::string limit, used;
    bool second = true;
    if (ReadWholeFile(directory + "/memory.max", &limit) != 0) {
      second = false;
      if (ReadWholeFile(directory + "/memory.limit_in_bytes", &limit) != 0) continue;
    }
    const char* usage = second ? "/memory.current" : "/memory.usage_in_bytes";
    if (ReadWholeFile(directory + usage, &used) != 0 || limit == "max\n") return -1;
    const int64_t most = std::atoll(limit.c_str());
    if (most >= kUnlimited) return -1;
    const std::string prefix = second ? "" : "total_";
    int64_t files = 0;
    for (const char* kind : {"inactive_file", "active_file"})
      files += ReadCounter(directory + "/memory.stat", prefix + kind);
    return std::max<int64_t>(most - (std::atoll(used.c_str()) - files), 0);
  }
  return -1;
}

int64_t ControlGroup::OomKills() const {
  for (const std::string& directory : directories_) {
    for (const char* file : {"/memory.events", "/memory.oom_control"}) {
      const int64_t kills = ReadCounter(directory + file, "oom_kill");
      if (kills > 0) return kills;
    }
  }
  return 0;
}

void ControlGroup::Remove() const {
  for (const std::string& directory : directories_) RemoveGroup(directory, 0);
}

std::string OutOfMemoryText(int64_t kills, int64_t memory_bytes) {
  std::string text = std::string(kOutOfMemory) + " " + std::to_string(kills) + " of its processes";
  if (memory_bytes > 0) text += ", at " + std::to_string(memory_bytes >> 20) + " MiB requested";
  return text;
}

}  // namespace berth
