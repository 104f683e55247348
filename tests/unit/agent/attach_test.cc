// Clients at the terminal of a task and at its ports: an ExecHost with real supervisors.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/match.h"
#include "clients/agent/exec_host.h"
#include "clients/agent/supervisor/terminal.h"
#include "clients/agent/use_watch.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

struct AttachWorld {
  explicit AttachWorld(const std::string& script) : f("/run") {
    signal(SIGPIPE, SIG_IGN);
    if (geteuid() == 0) f.user = "nobody";
    f.Restart();
    f.launch.set_terminal(true);
    f.Start(kTask, script);
    f.Await(kTask, Kind::kRunning);
    host =
        std::make_unique<ExecHost>(ProgramBeside("berth-supervisor"), f.runner->tasks_directory());
  }
  ~AttachWorld() {
    host.reset();
    if (over) return;
    f.runner->Kill(kTask, "SIGKILL", absl::ZeroDuration(), v1::TaskReport::KILLED);
    f.Await(kTask, Kind::kExited);
  }
  static v1::OpenExec Request(uint64_t number) {
    v1::OpenExec open;
    open.set_request(number);
    *open.mutable_key() = ToKey(kTask);
    return open;
  }
  void Attach(uint64_t number = 1) {
    v1::OpenExec open = Request(number);
    open.set_attach(true);
    open.mutable_terminal()->set_rows(33);
    open.mutable_terminal()->set_columns(77);
    host->Open(open);
  }
  void Connect(uint32_t port) {
    v1::OpenExec open = Request(1);
    open.set_port(port);
    host->Open(open);
  }
  void Look() {
    for (const v1::ExecOutput& output : host->Poll()) {
      out[output.request()] += output.data();
      started |= output.started();
      output_ended |= output.stream() == v1::STDOUT && output.data().empty() && !output.end();
      if (confirms && !output.data().empty()) {
        v1::ExecInput input;
        input.set_request(output.request());
        input.set_consumed(output.data().size());
        host->Input(input);
      }
      if (output.end()) end[output.request()] = output;
    }
  }
  bool AwaitText(const std::string& text, uint64_t number = 1) {
    return Eventually([&] {
      Look();
      return absl::StrContains(out[number], text);
    });
  }
  bool AwaitEnd(uint64_t number = 1) {
    return Eventually([&] {
      Look();
      return end.contains(number);
    });
  }
  void Send(const std::string& data, bool last = false) {
    v1::ExecInput input;
    input.set_request(1);
    input.set_data(data);
    input.set_end(last);
    host->Input(input);
  }

  Fixture f;
  std::unique_ptr<ExecHost> host;
  std::map<uint64_t, std::string> out;
  std::map<uint64_t, v1::ExecOutput> end;
  bool confirms = true, started = false, output_ended = false, over = false;
};

TEST_CASE("attach: two clients, sizes, the log, and the exit code") {
  AttachWorld world("echo begin; read line; stty size; echo got $line; exit 7");
  world.Attach();
  REQUIRE(world.AwaitText("begin\r\n"));
  world.Attach(2);
  REQUIRE(world.AwaitText("begin\r\n", 2));
  world.Send("word\n");
  REQUIRE(world.AwaitEnd(1));
  REQUIRE(world.AwaitEnd(2));
  for (const uint64_t number : {1, 2}) {
    CHECK(world.end[number].exit_code() == 7);
    CHECK(world.end[number].error().empty());
    CHECK(absl::StrContains(world.out[number], "33 77\r\n"));
    CHECK(absl::StrContains(world.out[number], "got word\r\n"));
  }
  world.f.Await(kTask, Kind::kExited);
  world.over = true;
  CHECK(absl::StrContains(world.f.Log(kTask), "got word\r\n"));
  CHECK(world.host->TakeVisited() == std::set<TaskId>{kTask});
  CHECK(world.host->TakeVisited().empty());
}

TEST_CASE("attach: a client that confirms nothing is dropped, and the task goes on") {
  AttachWorld world(
      "read go; head -c 2000000 /dev/zero | tr '\\0' x; echo; echo all-printed; exec sleep 1000");
  world.confirms = false;
  world.Attach();
  REQUIRE(Eventually([&] {
    world.Look();
    return world.started;
  }));
  world.Send("\n");
  REQUIRE(Eventually([&] {
    world.Look();
    return absl::StrContains(world.f.Log(kTask), "all-printed");
  }));
  CHECK_FALSE(world.end.contains(1));
  world.confirms = true;
  v1::ExecInput confirmed;
  confirmed.set_request(1);
  confirmed.set_consumed(world.out[1].size());
  world.host->Input(confirmed);
  REQUIRE(world.AwaitEnd());
  CHECK(absl::StrContains(world.end[1].error(), "did not read"));
  world.Attach(2);
  CHECK(world.AwaitText("all-printed", 2));
}

TEST_CASE("attach: so many clients, and no more") {
  AttachWorld world("echo up; exec sleep 1000");
  for (uint64_t number = 1; number <= kMaxTerminalClients; ++number) {
    world.Attach(number);
    REQUIRE(world.AwaitText("up", number));
  }
  world.Attach(100);
  REQUIRE(world.AwaitEnd(100));
  CHECK(absl::StrContains(world.end[100].error(), "too many clients"));
  v1::ExecInput cancel;
  cancel.set_request(1);
  cancel.set_cancel(true);
  world.host->Input(cancel);
  CHECK(Eventually([&] {
    world.Attach(101);
    const bool ok = Eventually([&] {
      world.Look();
      return absl::StrContains(world.out[101], "up") || world.end.contains(101);
    });
    const bool refused = world.end.erase(101) > 0;
    return ok && !refused;
  }));
}

TEST_CASE("attach and ports: what they refuse") {
  AttachWorld world("exec sleep 1000");
  v1::OpenExec open = AttachWorld::Request(1);
  open.set_attach(true);
  open.set_port(80);
  world.host->Open(open);
  open.set_request(2);
  open.set_attach(false);
  open.add_command("true");
  world.host->Open(open);
  open.set_request(3);
  open.clear_command();
  open.set_port(70'000);
  world.host->Open(open);
  world.Look();
  for (const uint64_t number : {1, 2})
    CHECK(absl::StrContains(world.end[number].error(), "one of them"));
  CHECK(world.end[3].error() == "no such port");
}

// A listening socket of this process, which is in the network of the task, too.
struct TestListener {
  TestListener() {
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(fd, 4) == 0);
    socklen_t size = sizeof address;
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  ~TestListener() { close(fd); }
  int fd;
  uint16_t port;
};

TEST_CASE("a port: both sides end on their own") {
  AttachWorld world("exec sleep 1000");
  const TestListener server;
  world.Connect(server.port);
  const int peer = accept(server.fd, nullptr, nullptr);
  REQUIRE(Eventually([&] {
    world.Look();
    return world.started;
  }));
  const bool first = GENERATE(true, false);
  if (first) {
    CHECK(send(peer, "bye", 3, 0) == 3);
    shutdown(peer, SHUT_WR);
    REQUIRE(Eventually([&] {
      world.Look();
      return world.output_ended;
    }));
    CHECK(world.out[1] == "bye");
    CHECK_FALSE(world.end.contains(1));
  }
  world.Send("data", true);
  char buffer[16];
  size_t got = 0;
  while (const ssize_t n = recv(peer, buffer + got, sizeof buffer - got, 0)) {
    REQUIRE(n > 0);
    got += static_cast<size_t>(n);
  }
  CHECK(std::string(buffer, got) == "data");
  if (!first) {
    CHECK_FALSE(world.end.contains(1));
    shutdown(peer, SHUT_WR);
  }
  REQUIRE(world.AwaitEnd());
  CHECK(world.end[1].exit_code() == 0);
  CHECK(world.end[1].error().empty());
  close(peer);
}

TEST_CASE("a port that nobody listens on, and a task that ends") {
  AttachWorld world("exec sleep 1000");
  uint16_t port;
  {
    const TestListener closed;
    port = closed.port;
  }
  world.Connect(port);
  REQUIRE(world.AwaitEnd());
  CHECK(world.end[1].error() == absl::StrCat("nothing listens on port ", port, " of the task"));
  world.end.clear();
  const TestListener server;
  world.Connect(server.port);
  const int peer = accept(server.fd, nullptr, nullptr);
  world.host->EndTask(kTask);
  world.Look();
  CHECK(world.end[1].error() == "the task has ended");
  char byte;
  CHECK(recv(peer, &byte, 1, 0) == 0);
  close(peer);
}

TEST_CASE("use: a task is unused if it is still and nobody is inside") {
  AttachWorld world("read line; while :; do :; done");
  UseWatch watch(world.f.runner->tasks_directory());
  const auto unused = [&](int seconds, bool visited) {
    const std::set<TaskId> inside = visited ? std::set<TaskId>{kTask} : std::set<TaskId>();
    return !watch.Unused(absl::Seconds(seconds), {kTask}, inside).empty();
  };
  CHECK_FALSE(unused(0, false));  // the first look
  const bool has_groups =
      absl::StrContains(world.f.MakeIsolation()->description(), "cgroups: version");
  CHECK(unused(10, false) == has_groups);
  CHECK_FALSE(unused(20, true));
  world.Attach();
  world.Send("\n");
  bool used = false;
  for (int second = 21; second < 60 && !used; ++second) {
    absl::SleepFor(absl::Seconds(1));
    used = !unused(second, false);
  }
  CHECK(used);
}

}  // namespace
}  // namespace berth
