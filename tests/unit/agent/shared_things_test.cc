// What tasks leave in the machine's shared memory. Processes of an unused user id make the objects.
// Without root the cases do nothing and print a warning.
#include "clients/agent/supervisor/shared_things.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/unit/agent/fakes.h"

namespace berth {
namespace {

using testing::TemporaryDirectory;

bool Possible() {
  if (geteuid() == 0) return true;
  WARN("no root: not tested");
  return false;
}

struct World {
  World() { REQUIRE(mkdir(shm.c_str(), 0700) == 0); }
  ~World() {
    for (const std::string& path : {mine, others}) std::filesystem::remove_all(path);
    SweepSharedThings(user, {});
  }
  std::string Path() const { return SharedThingsRecord::PathOf(shm, user); }
  // Runs it in a process of the user, which then ends.
  void Do(const std::function<bool()>& act) const {
    const pid_t pid = fork();
    if (pid == 0) _exit(setgid(user) == 0 && setuid(user) == 0 && act() ? 0 : 1);
    int status = 1;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    REQUIRE(status == 0);
  }
  void Write(const std::string& path) const {
    Do([&] { return close(open(path.c_str(), O_WRONLY | O_CREAT, 0600)) == 0; });
  }

  const uid_t user = 2'000'000 + static_cast<uid_t>(getpid());
  const TemporaryDirectory state;
  const std::string shm = state.path() + "/shm";
  const std::string mine = absl::StrCat("/dev/shm/berth-test-", getpid());
  const std::string others = mine + "-others";
};

// With the capabilities of the agent's systemd unit: root may not read System V objects of others.
void ReleaseWithoutIpcOwner(SharedThingsRecord* record) {
  const pid_t pid = fork();
  if (pid == 0) {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0) _exit(1);
    data[0].effective &= ~(1U << CAP_IPC_OWNER);
    if (syscall(SYS_capset, &header, data) != 0) _exit(1);
    record->Release();
    _exit(0);
  }
  int status = 1;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
}

bool Exists(const std::string& path) {
  return std::filesystem::exists(std::filesystem::symlink_status(path));
}

TEST_CASE("shared things: all kinds are removed, those of other users are not") {
  if (!Possible()) return;
  const World w;
  const std::string outside = w.state.path() + "/outside";
  std::ofstream(outside) << "x";
  const std::string queue = absl::StrCat("/berth-test-", getpid());
  SharedThingsRecord record(w.Path(), w.user);
  REQUIRE(record.Hold() == 0);
  w.Do([&] {
    std::filesystem::create_directories(w.mine + "/a/b");
    std::ofstream(w.mine + "/a/b/file") << "x";
    std::filesystem::create_symlink(outside, w.mine + "/a/link");
    std::filesystem::create_directory_symlink(w.state.path(), w.mine + "/a/directory");
    return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0 &&
           semget(IPC_PRIVATE, 1, IPC_CREAT | 0600) >= 0 &&
           msgget(IPC_PRIVATE, IPC_CREAT | 0600) >= 0 &&
           mq_open(queue.c_str(), O_RDWR | O_CREAT, 0600, nullptr) >= 0;
  });
  const SharedThings made = SharedThingsOf(w.user);
  const auto has = [&](const std::string& prefix) {
    return std::any_of(made.begin(), made.end(),
                       [&](const std::string& thing) { return absl::StartsWith(thing, prefix); });
  };
  for (const char* kind : {"segment ", "semaphores ", "messages ", "/dev/mqueue/"}) {
    INFO(kind);
    CHECK(has(kind));
  }
  CHECK(made.contains(w.mine + "/a/b/file"));
  SECTION("with no more than the unit's capabilities") {
    ReleaseWithoutIpcOwner(&record);
    CHECK(SharedThingsOf(w.user).empty());
  }
  SECTION("except what another user has in it") {
    std::ofstream(w.mine + "/a/roots") << "x";
    record.Release();
    CHECK(Exists(w.mine + "/a/roots"));
    CHECK_FALSE(Exists(w.mine + "/a/b"));
    CHECK(SharedThingsOf(w.user) == SharedThings{w.mine, w.mine + "/a"});
  }
  CHECK(std::filesystem::exists(outside));
  CHECK(std::filesystem::exists(w.Path()) == false);
  CHECK(mq_unlink(queue.c_str()) != 0);
}

TEST_CASE("shared things: also in another user's directory, but what existed before stays") {
  if (!Possible()) return;
  const World w;
  REQUIRE(mkdir(w.others.c_str(), 0700) == 0);
  REQUIRE(chmod(w.others.c_str(), 01777) == 0);
  w.Write(w.others + "/before");
  SharedThingsRecord record(w.Path(), w.user);
  REQUIRE(record.Hold() == 0);
  w.Write(w.others + "/since");
  record.Release();
  CHECK(Exists(w.others + "/before"));
  CHECK_FALSE(Exists(w.others + "/since"));
}

TEST_CASE(
    "shared things: the last holder removes leftovers of all, and none does while one lives") {
  if (!Possible()) return;
  const World w;
  SharedThingsRecord first(w.Path(), w.user);
  auto second = std::make_unique<SharedThingsRecord>(w.Path(), w.user);
  REQUIRE(first.Hold() == 0);
  w.Write(w.mine);
  REQUIRE(second->Hold() == 0);
  first.Release();
  CHECK(Exists(w.mine));
  SharedThingsRecord(w.Path(), w.user).Release();  // an agent that starts
  CHECK(Exists(w.mine));
  SECTION("which ends") { second->Release(); }
  SECTION("which is killed: the agent does it") {
    second.reset();
    SharedThingsRecord(w.Path(), w.user).Release();
  }
  CHECK_FALSE(Exists(w.mine));
  CHECK_FALSE(Exists(w.Path()));
}

TEST_CASE("shared things: a record is kept while processes of the user live") {
  if (!Possible()) return;
  const World w;
  SharedThingsRecord record(w.Path(), w.user);
  REQUIRE(record.Hold() == 0);
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    if (setuid(w.user) != 0 || write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  w.Write(w.mine);
  record.Release();
  CHECK(Exists(w.mine));
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  for (const int fd : ready) close(fd);
  SharedThingsRecord next(w.Path(), w.user);
  REQUIRE(next.Hold() == 0);
  next.Release();
  CHECK_FALSE(Exists(w.mine));
}

TEST_CASE("shared things: an unfinished record, or one of another boot, is ignored") {
  if (!Possible()) return;
  const World w;
  w.Write(w.mine);
  SharedThingsRecord record(w.Path(), w.user);
  const std::string text = GENERATE(std::string("cut"), std::string("boot\n\0end\0", 10));
  std::ofstream(w.Path()) << text;
  SECTION("it removes nothing") {
    record.Release();
    CHECK(Exists(w.mine));
    CHECK_FALSE(Exists(w.Path()));
  }
  SECTION("the next task starts a new one") {
    REQUIRE(record.Hold() == 0);
    record.Release();
    CHECK(Exists(w.mine));
  }
}

}  // namespace
}  // namespace berth
