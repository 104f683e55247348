// A task that uses more of the disk than it may is ended, by name; others continue. The cases mount
// file systems of a few MiB. Without root they do nothing and print a warning.
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "clients/agent/supervisor/project_quota.h"
#include "tests/unit/agent/disk_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

TEST_CASE("disk use is the sum over a directory tree, without following links") {
  const TemporaryDirectory place, outside;
  std::ofstream(outside.path() + "/large") << std::string(4 * kMiB, 'x');
  std::filesystem::create_directories(place.path() + "/a/b");
  std::filesystem::create_directory_symlink(outside.path(), place.path() + "/a/link");
  const auto bytes = [](const std::string& directory) { return DiskUseOf({directory}).bytes; };
  const int64_t empty = bytes(place.path());
  CHECK(empty < kMiB);
  std::ofstream(place.path() + "/a/b/file") << std::string(2 * kMiB, 'x');
  CHECK(bytes(place.path()) - empty >= 2 * kMiB);
  CHECK(bytes(place.path()) - empty < 3 * kMiB);
  CHECK(bytes(place.path() + "/none") == 0);
  CHECK(DiskUseOf({place.path()}).files == 5);  // including the directory itself and the link
}

TEST_CASE(
    "a walk starts after nine times the duration of the last one, or when a disk becomes full") {
  const absl::Time start = absl::UnixEpoch();
  const auto at = [&](int seconds) { return start + absl::Seconds(seconds); };
  WalkPace pace;
  CHECK(pace.May(at(0), false));
  pace.Walked(at(0), at(10), false);
  CHECK_FALSE(pace.May(at(50), false));
  CHECK(pace.May(at(55), true));
  pace.Walked(at(55), at(65), true);
  CHECK_FALSE(pace.May(at(70), true));  // this full disk was already examined
  CHECK_FALSE(pace.May(at(75), false));
  CHECK(pace.May(at(80), true));  // full again
  pace.Walked(at(80), at(90), true);
  CHECK_FALSE(pace.May(at(179), true));
  CHECK(pace.May(at(180), true));
}

TEST_CASE("sizes are printed in human-readable units") {
  CHECK(SizeText(512) == "512 bytes");
  CHECK(SizeText(int64_t{3} << 29) == "1.5 GiB");
  CHECK(SizeText(int64_t{1} << 30) == "1 GiB");
  CHECK(SizeText(700 * kMiB) == "700 MiB");
}

TEST_CASE("a task that uses more scratch than it requested fails, with the reason") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  DiskWorld world(disk.path(), kMiB);
  world.f.launch.set_scratch_bytes(8 * kMiB);
  world.Run(kOther, Fill("here", 4) + "sleep 1000");
  SECTION("in its scratch directory") {
    world.Run(kTask, Fill("$BERTH_SCRATCH/f", 12) + "sleep 1000");
    const TaskEvent exited = world.AwaitEnd(kTask);
    CHECK(exited.exit_signal == SIGTERM);
    CHECK(exited.cause == v1::TaskReport::CAUSE_UNSPECIFIED);
    CHECK(absl::StartsWith(exited.message, "used "));  // 12, or what it had used by then
    CHECK(absl::StrContains(exited.message, "MiB of its 8 MiB of scratch"));
  }
  SECTION("in its working directory, which is removed, and even if it exits with 0 on SIGTERM") {
    world.Run(kTask, "trap 'exit 0' TERM; " + Fill("f", 12) + "while :; do sleep 0.05; done");
    const TaskEvent exited = world.AwaitEnd(kTask);
    CHECK(exited.exit_code == 137);
    CHECK(absl::StrContains(exited.message, "of its 8 MiB of scratch"));
    CHECK_FALSE(std::filesystem::exists(world.f.state.path() + "/tasks/1-0-1/work"));
  }
  SECTION("detected by the next agent") {
    world.Run(kTask, "sleep 1; " + Fill("/tmp/f", 12) + "sleep 1000");
    const agent::v1::TaskRecord record = [&] {
      agent::v1::TaskRecord made = world.f.Record(kTask);
      *made.mutable_launch() = world.f.launch;
      return made;
    }();
    world.f.Restart();
    world.f.runner->Adopt(record);
    world.f.runner->Adopt(world.f.Record(kOther));
    CHECK(absl::StrContains(world.AwaitEnd(kTask).message, "of its 8 MiB of scratch"));
  }
  SECTION("by an unlinked file, long before the disk is full") {
    world.Run(kTask, "exec 5>f; rm f; dd if=/dev/zero bs=1M count=12 >&5 2>/dev/null; sleep 1000");
    CHECK(absl::StrContains(world.AwaitEnd(kTask).message, "MiB of its 8 MiB of scratch"));
  }
  SECTION("below the deepest level that is counted") {
    world.Run(kTask,
              "for i in $(seq 600); do mkdir d; cd d; done; " + Fill("f", 12) + "sleep 1000");
    CHECK(absl::StrContains(world.AwaitEnd(kTask).message,
                            "has directories nested more than 512 deep"));
  }
  CHECK(world.Stays(kOther));
}

TEST_CASE("a file with many names counts once") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  DiskWorld world(disk.path(), kMiB);
  world.f.launch.set_scratch_bytes(8 * kMiB);
  world.Run(kTask, Fill("f", 5) + "ln f g; ln f /tmp/h; ln f $BERTH_SCRATCH/i; " + Fill("j", 1) +
                       "echo there; sleep 1000");
  REQUIRE(Eventually([&] { return world.f.Log(kTask) == "there\n"; }));
  world.Run(kOther, Fill("f", 12) + "sleep 1000");
  world.AwaitEnd(kOther);  // both were examined
  CHECK(world.Stays(kTask));
}

TEST_CASE("where no more files can be made, the task that made most of them is ended") {
  const SmallDisk disk("size=64m,nr_inodes=3000");
  if (!disk.mounted()) return;
  DiskWorld world(disk.path(), kMiB);
  world.Run(kOther, Fill("f", 20) + "sleep 1000");
  world.f.launch.set_scratch_bytes(8 * kMiB);
  world.Run(kTask, "i=0; while true > f$i; do i=$((i + 1)); done 2>/dev/null; sleep 1000");
  const TaskEvent exited = world.AwaitEnd(kTask);
  CHECK(absl::StrContains(exited.message, " free), and this task has the most files"));
  CHECK(world.Stays(kOther));
  CHECK_FALSE(world.f.runner->DiskIsExhausted());
}

TEST_CASE("without a request the agent's bound applies") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  config::v1::Agent config;
  config.set_max_scratch_bytes(8 * kMiB);
  DiskWorld world(disk.path(), kMiB, config);
  world.Run(kTask, Fill("f", 12) + "sleep 1000");
  CHECK(absl::StrContains(world.AwaitEnd(kTask).message,
                          "; the limit is 8 MiB for a task that requests no scratch"));
}

TEST_CASE("on a full disk only the task that used most without requesting it is ended") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  config::v1::Agent config;
  config.set_max_scratch_bytes(60 * kMiB);
  DiskWorld world(disk.path(), 16 * kMiB, config);
  world.f.launch.set_scratch_bytes(30 * kMiB);
  world.Run(kTask, Fill("f", 25) + "sleep 1000");  // has requested it
  world.f.launch.set_scratch_bytes(0);
  world.Run(kOther, "sleep 1000");
  const TaskId hog = {3, 0, 1};
  SECTION("by a file") { world.Run(hog, Fill("f", 26) + "sleep 1000"); }
  SECTION("by an unlinked file") {
    world.Run(hog, "exec 5>f; rm f; dd if=/dev/zero bs=1M count=26 >&5 2>/dev/null; sleep 1000");
  }
  const TaskEvent exited = world.AwaitEnd(hog);
  CHECK(absl::StrContains(exited.message, "the node's disk is nearly full"));
  CHECK(absl::StrContains(exited.message, "this task used the most without requesting scratch: 2"));
  CHECK(world.Stays(kTask));
  CHECK(world.Stays(kOther));
  CHECK_FALSE(world.f.runner->DiskIsExhausted());
}

TEST_CASE(
    "leftovers of ended tasks are removed before any task is ended, then the node is at fault") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  DiskWorld world(disk.path(), 16 * kMiB);
  world.f.launch.set_scratch_bytes(60 * kMiB);
  world.Run(kOther, Fill("f", 22) + "echo there; sleep 1000");
  REQUIRE(Eventually([&] { return world.f.Log(kOther) == "there\n"; }));
  world.Run(kTask, Fill("f", 18));
  CHECK(world.AwaitEnd(kTask).exit_code == 0);
  CHECK(std::filesystem::exists(world.f.state.path() + "/tasks/1-0-1/work/f"));
  CHECK_FALSE(world.f.runner->DiskIsExhausted());
  world.Run({3, 0, 1}, Fill("f", 12) + "sleep 1000");
  CHECK(Eventually(
      [&] { return !std::filesystem::exists(world.f.state.path() + "/tasks/1-0-1/work"); }));
  CHECK(world.Stays(kOther));
  CHECK_FALSE(world.f.runner->DiskIsExhausted());
  std::ofstream(disk.path() + "/of-somebody-else") << std::string(20 * kMiB, 'x');
  CHECK(Eventually([&] { return world.f.runner->DiskIsExhausted(); }));
  CHECK(world.Stays(kOther));  // has requested what it uses
}

// An ext4 file system with project quotas, in a file.
class QuotaDisk {
 public:
  QuotaDisk() : place_(DiskPlace()) {
    const std::string image = place_.path() + "/image", at = path();
    std::filesystem::create_directory(at);
    const std::string make = absl::StrCat(
        "truncate -s 200M ", image, " && mkfs.ext4 -q -O quota,project -E quotatype=prjquota ",
        image, " && mount -o loop,prjquota ", image, " ", at, " && chmod 711 ", at, " ",
        place_.path());
    mounted_ = geteuid() == 0 && std::system(("(" + make + ") >/dev/null 2>&1").c_str()) == 0;
    if (!mounted_) WARN("no project quotas (root, loop devices, kernel): not tested");
  }
  ~QuotaDisk() {
    if (mounted_) umount2(path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  std::string path() const { return place_.path() + "/disk"; }

 private:
  TemporaryDirectory place_;
  bool mounted_ = false;
};

TEST_CASE("with project quotas the kernel bounds the disk use of a task") {
  const QuotaDisk disk;
  CHECK_FALSE(HasProjectQuotas("/proc"));
  CHECK_FALSE(HasProjectQuotas("/no/such/place"));
  if (!disk.mounted()) return;
  REQUIRE(HasProjectQuotas(disk.path()));
  DiskWorld world(disk.path(), kMiB);
  CHECK(absl::StrContains(world.f.MakeIsolation()->description(), "disk: project quotas"));
  world.f.launch.set_scratch_bytes(8 * kMiB);
  world.Run(kOther, Fill("f", 4) + "sleep 1000");
  world.Run(kTask, "dd if=/dev/zero of=/tmp/a bs=1M count=6 && dd if=/dev/zero of=b bs=1M count=6");
  const TaskEvent exited = world.AwaitEnd(kTask);
  CHECK(exited.exit_code == 1);
  CHECK(exited.message == "used all of its 8 MiB of scratch");
  CHECK(absl::StrContains(world.f.Log(kTask, v1::STDERR), "quota exceeded"));
  CHECK(world.Stays(kOther));
  const ProjectUse use = ReadProjectUse(world.f.state.path() + "/tasks/1-0-1");
  CHECK(use.limit_bytes == 8 * kMiB);
  world.f.runner->Remove(kTask);
  world.f.runner->Prepare(kTask, world.f.launch, false);  // the project number is free again
  world.f.Await(kTask, Kind::kPrepared);
  CHECK(ReadProjectUse(world.f.state.path() + "/tasks/1-0-1").project == use.project);
  world.f.runner->Discard(kTask);
}

}  // namespace
}  // namespace berth
