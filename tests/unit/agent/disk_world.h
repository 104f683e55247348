// Real tasks on file systems of a few MiB, for tests of disk use. Mounting needs root. Without root
// SmallDisk warns that nothing is tested.
#ifndef BERTH_TESTS_UNIT_AGENT_DISK_WORLD_H_
#define BERTH_TESTS_UNIT_AGENT_DISK_WORLD_H_

#include <sys/mount.h>
#include <unistd.h>

#include <set>
#include <string>
#include <utility>

#include "tests/unit/agent/process_world.h"

namespace berth::testing {

inline constexpr int64_t kMiB = 1 << 20;
inline const TaskId kOther = {2, 0, 1};

inline const char* DiskPlace() { return geteuid() == 0 ? "/run" : "/tmp"; }

// A directory that is a separate file system.
class SmallDisk {
 public:
  explicit SmallDisk(const char* options = "size=64m") : place_(DiskPlace()) {
    if (geteuid() != 0 || mount("test", path().c_str(), "tmpfs", 0, options) != 0) {
      WARN("cannot mount a file system: not tested");
      return;
    }
    mounted_ = true;
    chmod(path().c_str(), 0711);
  }
  ~SmallDisk() {
    if (mounted_) umount2(path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  std::string path() const { return place_.path(); }

 private:
  TemporaryDirectory place_;
  bool mounted_ = false;
};

struct DiskWorld {
  DiskWorld(const std::string& disk, int64_t min_free, config::v1::Agent config = {})
      : f(disk, std::move(config)) {
    f.user = "nobody";
    f.min_free_bytes = min_free;
    f.Restart();
    f.launch.mutable_kill_grace()->set_seconds(5);
  }
  ~DiskWorld() {
    for (const TaskId& id : running)
      f.runner->Kill(id, "SIGKILL", absl::ZeroDuration(), v1::TaskReport::KILLED);
    for (const TaskId& id : running) f.Await(id, Kind::kExited);
  }
  void Run(TaskId id, const std::string& script) {
    f.Start(id, script);
    f.Await(id, Kind::kRunning);
    running.insert(id);
  }
  TaskEvent AwaitEnd(TaskId id) {
    running.erase(id);
    return f.Await(id, Kind::kExited);
  }
  // True if the task still runs after several walks.
  bool Stays(TaskId id) {
    absl::SleepFor(absl::Milliseconds(500));
    for (TaskEvent& event : f.runner->Poll()) f.seen.push_back(std::move(event));
    for (const TaskEvent& event : f.seen) {
      if (event.id == id && event.kind == Kind::kExited) return false;
    }
    return true;
  }
  Fixture f;
  std::set<TaskId> running;
};

inline std::string Fill(const std::string& file, int mebibytes) {
  return absl::StrCat("dd if=/dev/zero of=", file, " bs=1M count=", mebibytes, " 2>/dev/null; ");
}

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_AGENT_DISK_WORLD_H_
