// The NOTIFY_SOCKET of real tasks under real supervisors.
#include <fcntl.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <thread>

#include "absl/strings/match.h"
#include "clients/agent/notice_files.h"
#include "clients/agent/supervisor/namespaces.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// Sends the datagram, with `descriptor` if it is not -1. Returns 0 or an errno.
int SendNotice(const std::string& path, std::string text, int descriptor = -1) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = AddressOf(path);
  iovec piece{.iov_base = text.data(), .iov_len = text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  const int error = sendmsg(fd, &message, 0) >= 0 ? 0 : errno;
  close(fd);
  return error;
}

// The same as another user.
int SendNoticeAs(const char* user, const std::string& path, const std::string& text) {
  const passwd* entry = getpwnam(user);
  REQUIRE(entry != nullptr);
  const uid_t uid = entry->pw_uid;
  const pid_t pid = fork();
  if (pid == 0) _exit(setresuid(uid, uid, uid) != 0 ? 255 : SendNotice(path, text));
  int status = 0;
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}

struct Notified : Fixture {
  explicit Notified(const std::string& base = "/tmp", config::v1::Agent with = {})
      : Fixture(base, std::move(with)) {}
  std::string Directory(TaskId id = kTask) { return state.path() + "/tasks/" + ToString(id); }
  std::string Place(TaskId id = kTask) { return Directory(id) + "/notify"; }
  // On the machine: where the task has mounts of its own, it sees it in another place.
  std::string Socket(TaskId id = kTask) {
    const std::string apart = Directory(id) + "/progress/socket";
    return std::filesystem::exists(apart) ? apart : Place(id);
  }
  void Run(const std::string& script = "sleep 1000") {
    Start(kTask, script);
    Await(kTask, Kind::kRunning);
  }
  TaskNotices Told(TaskId id = kTask) {
    NoticesVersion version;
    return NoticeFiles(runner->tasks_directory()).Read(id, &version).value_or(TaskNotices());
  }
  bool Knows(int64_t step) {
    return Eventually([&] { return Told().told.step() == step; });
  }
  void Stop() {
    runner->Kill(kTask, "SIGKILL", absl::ZeroDuration(), v1::TaskReport::KILLED);
    Await(kTask, Kind::kExited);
  }
};

TEST_CASE("notify: what a task sends is in a file of the agent's, with the time of its progress") {
  Notified f;
  f.Run("echo $NOTIFY_SOCKET; echo ${WATCHDOG_USEC-none}; exec sleep 1000");
  REQUIRE(Eventually([&] { return f.Log(kTask) == f.Place() + "\nnone\n"; }));
  CHECK_FALSE(std::filesystem::exists(f.Directory() + "/progress/notices"));  // it sent nothing yet
  const absl::Duration before = SystemClock().Steady();
  CHECK(SendNotice(f.Socket(), "READY=1\nSTATUS=one\nX_BERTH_STEP=1") == 0);
  REQUIRE(f.Knows(1));
  const TaskNotices told = f.Told();
  CHECK(told.told.ready());
  CHECK(told.told.status() == "one");
  REQUIRE(told.progress.has_value());
  CHECK(*told.progress >= before);
  CHECK(*told.progress <= SystemClock().Steady());
  struct stat info;
  REQUIRE(stat((f.Directory() + "/progress/notices").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  f.Stop();
  CHECK_FALSE(std::filesystem::exists(f.Socket()));
  CHECK_FALSE(std::filesystem::exists(f.Place()));
  CHECK(f.Told().told.step() == 1);
}

TEST_CASE("notify: the event of a start says when it was, also to the next agent") {
  Notified f;
  const absl::Duration before = SystemClock().Steady();
  f.Start(kTask, "sleep 1000");
  const TaskEvent running = f.Await(kTask, Kind::kRunning);
  REQUIRE(running.began.has_value());
  CHECK(*running.began >= before);
  CHECK_FALSE(running.mute);
  f.Restart();
  f.runner->Adopt(f.Record(kTask));
  CHECK(f.Await(kTask, Kind::kRunning).began == running.began);
  f.Stop();
  f.Start({2, 0, 1}, "true");  // too short for its status to be seen while it runs
  CHECK(f.Await({2, 0, 1}, Kind::kRunning).began.has_value());
  SupervisorStatus status = f.Status(kTask);  // as older supervisors wrote it
  status.started_ns = 0;
  REQUIRE(ReplaceFile(f.Directory(), "status", EncodeStatus(status)) == 0);
  f.Restart();
  f.runner->Adopt(f.Record(kTask));
  CHECK(f.Await(kTask, Kind::kRunning).mute);
}

TEST_CASE("notify: datagrams that are queued when the task ends are read") {
  Notified f;
  f.Run("trap 'exit 0' TERM; while :; do sleep 0.02; done");
  const SupervisorStatus status = f.Status(kTask);
  kill(static_cast<pid_t>(status.supervisor_pid), SIGSTOP);
  for (int step = 1; step <= 8; ++step)
    REQUIRE(SendNotice(f.Socket(), absl::StrCat("X_BERTH_STEP=", step)) == 0);
  kill(static_cast<pid_t>(status.pid), SIGKILL);
  kill(static_cast<pid_t>(status.supervisor_pid), SIGCONT);
  f.Await(kTask, Kind::kExited);
  CHECK(f.Told().told.step() == 8);
  CHECK(f.Told().told.dropped() == 0);
}

TEST_CASE("notify: the file is replaced at most twice a second, and has the latest") {
  Notified f;
  f.Run();
  std::set<int64_t> seen;
  for (int step = 1; step <= 15; ++step) {
    REQUIRE(SendNotice(f.Socket(), absl::StrCat("X_BERTH_STEP=", step)) == 0);
    absl::SleepFor(absl::Milliseconds(20));
    seen.insert(f.Told().told.step());
  }
  REQUIRE(f.Knows(15));
  CHECK(seen.size() <= 4);
  CHECK(f.Told().told.dropped() == 0);
  f.Stop();
}

TEST_CASE("notify: a flood is dropped and counted, and the task can be stopped meanwhile") {
  Notified f;
  f.Run();
  std::atomic<bool> stop = false;
  std::atomic<int64_t> sent = 0;
  std::thread flood([&] {
    while (!stop) sent += SendNotice(f.Socket(), "X_BERTH_STEP=1") == 0 ? 1 : 0;
  });
  CHECK(Eventually([&] { return f.Told().told.dropped() > 500; }));
  const absl::Time before = absl::Now();
  f.Stop();
  CHECK(absl::Now() - before < absl::Seconds(10));
  stop = true;
  flood.join();
  const TaskNotices told = f.Told();
  CHECK(told.told.step() == 1);
  CHECK(static_cast<int64_t>(told.told.dropped()) < sent);
}

TEST_CASE("notify: a datagram that is too large is dropped as a whole") {
  Notified f;
  f.Run();
  const std::string most = "X_BERTH_STEP=1\nSTATUS=" + std::string(4096 - 22, 'x');
  REQUIRE(most.size() == 4096);
  REQUIRE(SendNotice(f.Socket(), "X_BERTH_STEP=2\n" + most) == 0);
  REQUIRE(Eventually([&] { return f.Told().told.dropped() == 1; }));
  CHECK_FALSE(f.Told().told.has_step());
  REQUIRE(SendNotice(f.Socket(), most) == 0);
  REQUIRE(f.Knows(1));
  CHECK(f.Told().told.status() == std::string(256, 'x'));
  CHECK(f.Told().told.dropped() == 1);
  f.Stop();
}

size_t OpenFiles(int64_t pid) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd")))
    ++count;
  return count;
}

TEST_CASE("notify: descriptors that come with a datagram are closed at once") {
  Notified f;
  f.Run();
  const int64_t supervisor = f.Status(kTask).supervisor_pid;
  const size_t before = OpenFiles(supervisor);
  for (int i = 0; i < 30; ++i) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(SendNotice(f.Socket(), "BARRIER=1", ends[1]) == 0);
    close(ends[1]);
    pollfd end{ends[0], 0, 0};
    CHECK(poll(&end, 1, 10'000) == 1);  // as systemd-notify waits
    CHECK((end.revents & POLLHUP) != 0);
    close(ends[0]);
  }
  CHECK(Eventually(
      [&] { return OpenFiles(supervisor) <= before; }));  // and no log that it writes now
  f.Stop();
}

// A connection with data that nobody reads, whose close waits for that.
int LingeringSocket(int listener, int* peer) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0);
  *peer = accept(listener, nullptr, nullptr);
  const linger wait{.l_onoff = 1, .l_linger = 600};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
  const std::string data(65536, 'x');
  while (send(fd, data.data(), data.size(), MSG_DONTWAIT) > 0) {
  }
  return fd;
}

TEST_CASE("notify: a socket whose close would wait does not stop the supervisor") {
  Notified f;
  f.Run();
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0);
  REQUIRE(listen(listener, 10) == 0);
  std::vector<int> peers;
  const auto supervisor = static_cast<pid_t>(f.Status(kTask).supervisor_pid);
  const auto send_five = [&] {
    kill(supervisor, SIGSTOP);  // it closes them last
    for (int i = 0; i < 5; ++i) {
      peers.push_back(-1);
      const int fd = LingeringSocket(listener, &peers.back());
      REQUIRE(SendNotice(f.Socket(), "BARRIER=1", fd) == 0);
      close(fd);
    }
  };
  send_five();
  REQUIRE(SendNotice(f.Socket(), "X_BERTH_STEP=3") == 0);
  kill(supervisor, SIGCONT);
  CHECK(Eventually([&] { return f.Told().told.step() == 3; }, absl::Seconds(5)));
  send_five();
  const absl::Time before = absl::Now();
  kill(static_cast<pid_t>(f.Status(kTask).pid), SIGKILL);
  kill(supervisor, SIGCONT);
  f.Await(kTask, Kind::kExited);
  CHECK(absl::Now() - before < absl::Seconds(5));
  for (const int peer : peers) close(peer);
  close(listener);
}

// Tasks of the user nobody, in namespaces or, with `shared`, without.
struct OfNobody : Notified {
  explicit OfNobody(bool shared) : Notified("/run", Config(shared)) {
    user = "nobody";
    Restart();
  }
  static config::v1::Agent Config(bool shared) {
    config::v1::Agent config;
    config.set_shared_tmp(shared);
    config.set_shared_pid(shared);
    config.set_shared_shm(shared);
    return config;
  }
};

bool CanBeOthers() {
  if (geteuid() == 0 && getpwnam("nobody") != nullptr && getpwnam("daemon") != nullptr) return true;
  WARN("no root: not tested");
  return false;
}

TEST_CASE("notify: only the task's user can send to the socket of a task without namespaces") {
  if (!CanBeOthers()) return;
  OfNobody f(true);
  f.Run("rm -f $NOTIFY_SOCKET; ls $BERTH_TASK_DIR/progress; sleep 1000");
  CHECK(f.Socket() == f.Place());
  CHECK(SendNoticeAs("daemon", f.Place(), "X_BERTH_STEP=1") == EACCES);
  CHECK(SendNoticeAs("nobody", f.Place(), "X_BERTH_STEP=2") == 0);
  REQUIRE(f.Knows(2));
  CHECK(f.Log(kTask).empty());
  f.Stop();
}

// Sends from inside the task, as its user.
int SendNoticeInside(Notified& f, const std::string& text) {
  const SupervisorStatus status = f.Status(kTask);
  const pid_t child = fork();
  if (child == 0) {
    const int mounts = open(absl::StrCat("/proc/", status.pid, "/ns/mnt").c_str(), O_RDONLY);
    if (setns(mounts, CLONE_NEWNS) != 0) _exit(255);
    const uid_t uid = getpwnam("nobody")->pw_uid;
    _exit(setresuid(uid, uid, uid) != 0 ? 254 : SendNotice(f.Place(), text));
  }
  int result = 0;
  waitpid(child, &result, 0);
  return WEXITSTATUS(result);
}

TEST_CASE("notify: with namespaces, other tasks of the same user cannot send either") {
  if (!CanBeOthers() || TryNamespaces() != 0) return;
  OfNobody f(false);
  f.Run("rm -f $NOTIFY_SOCKET; test -S $NOTIFY_SOCKET && echo there; sleep 1000");
  CHECK(SendNoticeAs("nobody", f.Place(), "X_BERTH_STEP=1") != 0);
  CHECK(SendNoticeAs("nobody", f.Directory() + "/progress/socket", "X_BERTH_STEP=2") == EACCES);
  CHECK(SendNoticeInside(f, "X_BERTH_STEP=3") == 0);
  REQUIRE(f.Knows(3));
  CHECK(f.Log(kTask) == "there\n");
  f.Stop();
  CHECK(f.Told().told.dropped() == 0);
}

TEST_CASE("notify: a watched task learns its timeout, and its hooks nothing of it") {
  config::v1::Agent config;
  for (const char* word : {"sh", "-c", "env > $BERTH_TASK_DIR/hook"})
    config.mutable_hooks()->add_prolog(word);
  Notified f("/tmp", config);
  f.launch.mutable_watchdog()->mutable_timeout()->set_seconds(90);
  f.Start(kTask, "echo $WATCHDOG_USEC");
  f.Await(kTask, Kind::kExited);
  CHECK(f.Log(kTask) == "90000000\n");
  std::string hook;
  REQUIRE(ReadWholeFile(f.Directory() + "/hook", &hook) == 0);
  CHECK(absl::StrContains(hook, "BERTH_NODE=n1\n"));
  CHECK_FALSE(absl::StrContains(hook, "NOTIFY_SOCKET"));
  CHECK_FALSE(absl::StrContains(hook, "WATCHDOG_USEC"));
}

TEST_CASE("notify: below a path that is too long there is no socket, and no watched task") {
  const TemporaryDirectory outer;
  const std::string base = outer.path() + "/" + std::string(80, 'x');
  std::filesystem::create_directories(base);
  Notified f(base);
  CHECK(absl::StrContains(f.MakeIsolation()->warnings().back(), "tasks have no NOTIFY_SOCKET"));
  f.Start(kTask, "echo ${NOTIFY_SOCKET-none}");
  CHECK(f.Await(kTask, Kind::kExited).exit_code == 0);
  CHECK(f.Log(kTask) == "none\n");
  f.launch.mutable_watchdog()->mutable_timeout()->set_seconds(90);
  f.runner->Prepare({2, 0, 1}, f.launch, true);
  const TaskEvent refused = f.Await({2, 0, 1}, Kind::kRefused);
  CHECK(refused.fault == v1::TaskReport::NODE);
  CHECK(absl::StrContains(refused.message, "give the agent a shorter stateDirectory"));
}

TEST_CASE("notify: what a killed supervisor had written stays") {
  Notified f;
  f.Run();
  REQUIRE(SendNotice(f.Socket(), "X_BERTH_STEP=4") == 0);
  REQUIRE(f.Knows(4));
  kill(static_cast<pid_t>(f.Status(kTask).supervisor_pid), SIGKILL);
  CHECK(f.Await(kTask, Kind::kExited).cause == v1::TaskReport::SUPERVISOR_LOST);
  CHECK(f.Told().told.step() == 4);
}

}  // namespace
}  // namespace berth
