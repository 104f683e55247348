// The agent's logic: what tasks report through their NOTIFY_SOCKET, and when a watched task hangs.
#include <catch2/catch.hpp>

#include "clients/agent/notice_files.h"
#include "tests/unit/agent/logic_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::Id;
using testing::Key;
using v1::TaskReport;

// What tasks have sent so far.
class FakeNotices final : public NoticeSource {
 public:
  std::optional<TaskNotices> Read(const TaskId& id, NoticesVersion* version) override {
    ++reads;
    const auto found = tasks.find(id);
    return found == tasks.end() ? std::nullopt : found->second.Read(version);
  }
  std::map<TaskId, SimNotices> tasks;
  int reads = 0;
};

// An agent whose tasks report, at a server that takes it.
struct Reporting : Agent {
  explicit Reporting(testing::FakeJournal* disk = nullptr) : Agent(disk) {}

  void Begin(bool rebooted = false) {
    Agent::Begin(rebooted);
    logic->SetNoticeSource(&notices);
  }
  void Welcome(bool takes = true) {
    v1::ServerMessage message;
    v1::Welcome& welcome = *message.mutable_welcome();
    welcome.set_epoch(++epoch);
    welcome.mutable_lease()->set_seconds(15);
    welcome.mutable_heartbeat_interval()->set_seconds(5);
    welcome.set_takes_progress(takes);
    logic->OnServerMessage(Now(), message);
  }
  void Register() {
    Begin();
    Welcome();
    link.sent.clear();
  }
  // 0 s: not watched.
  void Run(uint64_t uid, int timeout_s = 0, int start_s = 0, bool mute = false) {
    v1::ServerMessage message;
    v1::Prepare& prepare = *message.mutable_prepare();
    *prepare.mutable_key() = Key(uid);
    prepare.set_start_at_once(true);
    prepare.mutable_launch()->add_command("train");
    if (timeout_s > 0) {
      prepare.mutable_launch()->mutable_watchdog()->mutable_timeout()->set_seconds(timeout_s);
      prepare.mutable_launch()->mutable_watchdog()->mutable_start()->set_seconds(start_s);
    }
    logic->OnServerMessage(Now(), message);
    Event(Id(uid), TaskEvent::Kind::kPrepared);
    Running(uid, mute);
  }
  void Running(uint64_t uid, bool mute = false, absl::Duration before = absl::ZeroDuration()) {
    TaskEvent event;
    event.id = Id(uid);
    event.kind = TaskEvent::Kind::kRunning;
    event.mute = mute;
    event.began = now - before;
    logic->OnTaskEvent(Now(), event);
  }
  void Tell(uint64_t uid, absl::string_view datagram) { notices.tasks[Id(uid)].Add(datagram, now); }
  // One heartbeat interval later, with an ack for each heartbeat.
  void Interval() {
    Advance(absl::Seconds(5));
    uint64_t last = 0;
    for (const v1::AgentMessage& message : link.sent) {
      if (message.has_heartbeat()) last = message.heartbeat().sequence();
    }
    if (last > 0) AckHeartbeat(last);
  }
  // The last heartbeat was less than one interval before the end.
  void Intervals(int count) {
    for (int i = 0; i < count; ++i) Interval();
  }
  // States sent since the last call, in order.
  std::vector<v1::TaskProgress> Take() {
    std::vector<v1::TaskProgress> states;
    for (const v1::AgentMessage& message : link.sent) {
      for (const v1::TaskProgress& state : message.progress().tasks()) states.push_back(state);
    }
    link.sent.clear();
    return states;
  }
  // "report 1", "progress 1 step 3": what was sent since the last call, without heartbeats.
  std::vector<std::string> Sent() {
    std::vector<std::string> lines;
    for (const v1::AgentMessage& message : link.sent) {
      if (message.has_report())
        lines.push_back(absl::StrCat(TaskReport::State_Name(message.report().state()), " ",
                                     message.report().key().job_uid()));
      for (const v1::TaskProgress& state : message.progress().tasks())
        lines.push_back(absl::StrCat("progress ", state.key().job_uid(), " step ", state.step()));
    }
    link.sent.clear();
    return lines;
  }

  FakeNotices notices;
  uint64_t epoch = 0;
};

using Lines = std::vector<std::string>;

TEST_CASE("progress: what is done before a task runs is told, until it runs or is discarded") {
  Reporting agent;
  agent.Register();
  v1::ServerMessage message;
  v1::Prepare& prepare = *message.mutable_prepare();
  *prepare.mutable_key() = Key(1);
  prepare.mutable_launch()->add_command("train");
  agent.logic->OnServerMessage(agent.Now(), message);
  TaskEvent pulls;
  pulls.id = Id(1);
  pulls.kind = TaskEvent::Kind::kPreparing;
  pulls.message = "pulling the image: 1 of 2 MiB";
  agent.logic->OnTaskEvent(agent.Now(), pulls);
  agent.Interval();
  const std::vector<v1::TaskProgress> told = agent.Take();
  REQUIRE(told.size() == 1);
  CHECK(told[0].status() == pulls.message);
  agent.Interval();
  CHECK(agent.Take().empty());  // nothing new
  // Discarded: no event follows, and nothing is told even on a new stream.
  v1::ServerMessage kill;
  *kill.mutable_kill()->mutable_key() = Key(1);
  agent.logic->OnServerMessage(agent.Now(), kill);
  agent.Take();
  agent.Welcome();
  agent.Interval();
  CHECK(agent.Take().empty());
}

TEST_CASE("progress: sent with the next heartbeat, and only what has changed") {
  Reporting agent;
  agent.Register();
  agent.Run(1);
  agent.Run(2);
  agent.Sent();
  agent.Interval();
  CHECK(agent.Take().empty());  // nothing was reported
  agent.Tell(1, "READY=1\nSTATUS=warm\nX_BERTH_STEP=3\nX_BERTH_CHECKPOINT=2,local,5\nREADY=x");
  CHECK(agent.Take().empty());
  agent.Interval();
  const auto states = agent.Take();
  REQUIRE(states.size() == 1);
  CHECK(ToTaskId(states[0].key()) == Id(1));
  CHECK(states[0].ready());
  CHECK(states[0].status() == "warm");
  CHECK(states[0].step() == 3);
  CHECK(states[0].checkpoint().step() == 2);
  CHECK(states[0].checkpoint().where() == v1::Checkpoint::LOCAL);
  CHECK(states[0].checkpoint().bytes() == 5);
  CHECK(states[0].dropped() == 1);
  CHECK_FALSE(states[0].has_still());  // not watched
  CHECK_FALSE(states[0].hung());
  agent.Interval();
  CHECK(agent.Take().empty());
  agent.Tell(1, "WATCHDOG=1");  // progress, but nothing that the server shows
  agent.Interval();
  CHECK(agent.Take().empty());
  agent.Tell(1, "X_BERTH_STEP=4");
  agent.Tell(2, "X_BERTH_STEP=9");
  agent.Interval();
  CHECK(agent.Sent() == Lines{"progress 1 step 4", "progress 2 step 9"});
}

TEST_CASE("progress: none to a server that does not take it") {
  Reporting agent;
  agent.Begin();
  agent.Welcome(false);
  agent.Run(1, 10);
  agent.Tell(1, "X_BERTH_STEP=3");
  agent.Interval();
  agent.Event(Id(1), TaskEvent::Kind::kExited);
  CHECK(agent.Sent() == Lines{"RUNNING 1", "EXITED 1"});
  agent.logic->OnDisconnected(agent.Now(), "test");
  agent.Advance(absl::Seconds(2));
  agent.Welcome(true);  // it was upgraded
  CHECK(agent.Sent() == Lines{"progress 1 step 3", "EXITED 1"});
}

TEST_CASE("progress: the last state of a task comes right before the report of its end") {
  Reporting agent;
  agent.Register();
  agent.Run(1);
  agent.Run(2);
  agent.Tell(1, "X_BERTH_STEP=3");
  agent.Interval();
  agent.Sent();
  agent.Tell(1, "X_BERTH_STEP=5");
  agent.Event(Id(1), TaskEvent::Kind::kExited);
  agent.Event(Id(2), TaskEvent::Kind::kExited);
  CHECK(agent.Sent() == Lines{"progress 1 step 5", "EXITED 1", "EXITED 2"});
  agent.Tell(1, "X_BERTH_STEP=6");
  agent.Interval();
  CHECK(agent.Sent().empty());
}

TEST_CASE("progress: after each Welcome, all that run, and those that ended in between") {
  Reporting agent;
  agent.Register();
  for (uint64_t uid : {1, 2, 3, 4}) agent.Run(uid, uid == 3 ? 60 : 0);
  agent.Tell(1, "X_BERTH_STEP=1");
  agent.Tell(2, "X_BERTH_STEP=2");
  agent.Interval();
  for (uint64_t report = 1; report < 20; ++report) agent.Ack(report);
  agent.link.sent.clear();
  agent.logic->OnDisconnected(agent.Now(), "test");
  agent.link.connected = false;
  agent.Tell(2, "X_BERTH_STEP=7");
  agent.Event(Id(2), TaskEvent::Kind::kExited);
  agent.Advance(absl::Seconds(2));
  agent.link.sent.clear();
  agent.Welcome();
  CHECK(agent.Sent() ==
        Lines{"progress 2 step 7", "EXITED 2", "progress 1 step 1", "progress 3 step 0"});
  agent.Interval();
  CHECK(agent.Sent().empty());
}

TEST_CASE("progress: a task that the server has forgotten is not reported") {
  Reporting agent;
  agent.Register();
  agent.Run(1, 60);
  agent.Tell(1, "X_BERTH_STEP=1");
  agent.Sent();
  v1::ServerMessage message;
  message.mutable_welcome()->set_epoch(++agent.epoch);
  message.mutable_welcome()->set_takes_progress(true);
  *message.mutable_welcome()->add_forget() = Key(1);
  agent.logic->OnServerMessage(agent.Now(), message);
  agent.Interval();
  agent.Event(Id(1), TaskEvent::Kind::kExited);
  CHECK(agent.Take().empty());
}

TEST_CASE("progress: messages of at most a thousand tasks") {
  Reporting agent;
  agent.Register();
  for (uint64_t uid = 1; uid <= 2500; ++uid) {
    agent.Run(uid);
    agent.Tell(uid, "READY=1");
  }
  agent.link.sent.clear();
  agent.Interval();
  std::vector<int> sizes;
  for (const v1::AgentMessage& sent : agent.link.sent) {
    if (sent.has_progress()) sizes.push_back(sent.progress().tasks_size());
  }
  CHECK(sizes == std::vector{1000, 1000, 500});
}

// Whether the state of the one task that was sent is hung; nothing if none was sent.
std::optional<bool> Hung(Reporting& agent) {
  const auto states = agent.Take();
  REQUIRE(states.size() <= 1);
  if (states.empty()) return std::nullopt;
  REQUIRE(states[0].has_still());
  return states[0].hung();
}

TEST_CASE("progress: a watched task hangs without progress, and recovers") {
  Reporting agent;
  agent.Register();
  agent.Run(1, 20, 60);
  agent.Take();
  agent.Interval();
  CHECK(Hung(agent) == false);  // watched: the server learns about it at once
  agent.Intervals(11);          // the last heartbeat was within 60 s
  CHECK(Hung(agent) == std::nullopt);
  agent.Intervals(2);
  auto states = agent.Take();
  REQUIRE(states.size() == 2);  // with each heartbeat
  CHECK(states[0].hung());
  CHECK(states[1].hung());
  CHECK(states[1].still().seconds() == states[0].still().seconds() + 5);
  CHECK(states[0].still().seconds() >= 60);
  CHECK(states[0].still().seconds() < 66);
  agent.Tell(1, "STATUS=still loading");  // no progress
  agent.Interval();
  CHECK(Hung(agent) == true);
  agent.Tell(1, "READY=1");
  agent.Interval();
  CHECK(Hung(agent) == false);
  agent.Intervals(3);
  CHECK(Hung(agent) == std::nullopt);
  agent.Interval();
  CHECK(Hung(agent) == true);  // `timeout` after its first progress
  agent.Tell(1, "WATCHDOG=1");
  agent.Interval();
  CHECK(Hung(agent) == false);
}

void TellPaused(Agent& agent, bool paused) {
  TaskEvent event;
  event.id = Id(1);
  event.kind = paused ? TaskEvent::Kind::kPaused : TaskEvent::Kind::kResumed;
  agent.logic->OnTaskEvent(agent.Now(), event);
}

TEST_CASE("progress: a frozen task does not hang, and has its timeout again when it goes on") {
  Reporting agent;
  agent.Register();
  agent.Run(1, 60, 60);
  agent.Interval();
  agent.Take();
  agent.Intervals(9);
  TellPaused(agent, true);
  agent.Intervals(20);
  CHECK(Hung(agent) == std::nullopt);
  TellPaused(agent, false);
  agent.Intervals(11);
  CHECK(Hung(agent) == std::nullopt);
  agent.Intervals(2);
  CHECK(Hung(agent) == true);
}

TEST_CASE("progress: an extension defers the watchdog, and can be taken back") {
  Reporting agent;
  agent.Register();
  agent.Run(1, 10, 10);
  agent.Tell(1, "READY=1\nEXTEND_TIMEOUT_USEC=40000000");
  agent.Interval();
  CHECK(Hung(agent) == false);
  agent.Intervals(7);
  CHECK(Hung(agent) == std::nullopt);
  agent.Interval();
  CHECK(Hung(agent) == true);
  agent.Tell(1, "X_BERTH_STEP=1\nEXTEND_TIMEOUT_USEC=80000000");
  agent.Interval();
  CHECK(Hung(agent) == false);
  agent.Intervals(3);
  CHECK(Hung(agent) == std::nullopt);
  agent.Tell(1, "EXTEND_TIMEOUT_USEC=0");
  agent.Interval();
  CHECK(Hung(agent) == true);
}

TEST_CASE("progress: before its first progress, a task has at least its timeout") {
  Reporting agent;
  agent.Register();
  agent.Run(1, 20);  // a server that sets no `start`
  agent.Intervals(4);
  CHECK(Hung(agent) == false);
  agent.Interval();
  CHECK(Hung(agent) == true);
}

TEST_CASE("progress: a task under a supervisor without NOTIFY_SOCKET is not watched") {
  Reporting agent;
  agent.Register();
  agent.Run(1, 10, 10, true);
  agent.Intervals(5);
  CHECK(agent.Take().empty());
}

TEST_CASE("progress: a restarted agent goes on from the journal and the files") {
  testing::FakeJournal disk;
  Reporting first(&disk);
  first.Register();
  first.Run(1, 20, 60);
  first.Run(2, 20, 60);
  first.Tell(1, "X_BERTH_STEP=8");
  Reporting second(&disk);
  second.now = first.now + absl::Seconds(30);
  second.notices.tasks = first.notices.tasks;
  second.Begin();
  for (uint64_t uid : {1, 2}) second.Running(uid, false, absl::Seconds(30));  // adopted
  second.Welcome();
  const auto states = second.Take();
  REQUIRE(states.size() == 2);
  CHECK(states[0].step() == 8);
  CHECK(states[0].hung());
  CHECK(states[0].still().seconds() == 30);
  CHECK_FALSE(states[1].hung());
  second.Intervals(7);
  const auto later = second.Take();
  REQUIRE(later.size() == 8);  // the first one with each heartbeat, the second one at last
  CHECK(ToTaskId(later[6].key()) == Id(1));
  CHECK(ToTaskId(later[7].key()) == Id(2));
  CHECK(later[7].hung());
}

// A task with two GPUs that must not idle.
void RunWithGpus(Reporting& agent, uint64_t uid) {
  v1::ServerMessage message;
  v1::Prepare& prepare = *message.mutable_prepare();
  *prepare.mutable_key() = Key(uid);
  prepare.set_start_at_once(true);
  v1::TaskLaunch& launch = *prepare.mutable_launch();
  launch.add_command("train");
  for (const char* uuid : {"gpu-0", "gpu-1"}) {
    launch.add_device_uuids(uuid);
    launch.add_device_kinds("gpu");
  }
  launch.mutable_idle()->set_devices(5);
  launch.mutable_idle()->mutable_for_()->set_seconds(60);
  agent.logic->OnServerMessage(agent.Now(), message);
  agent.Event(Id(uid), TaskEvent::Kind::kPrepared);
  agent.Running(uid);
}

// The idle time that was told last since the last call, in seconds; -1: the task is not idle.
std::vector<int64_t> IdleSeconds(Reporting& agent) {
  std::vector<int64_t> seconds;
  for (const v1::TaskProgress& state : agent.Take())
    seconds.push_back(state.has_idle() ? state.idle().seconds() : -1);
  return seconds;
}

TEST_CASE("idle: told once all GPUs of a task have been idle for as long as the rule says") {
  Reporting agent;
  agent.Register();
  RunWithGpus(agent, 1);
  agent.Take();
  const auto use = [&](int64_t a, int64_t b) {
    agent.logic->SetDeviceUse(agent.Now(), {{"gpu-0", a}, {"gpu-1", b}});
  };
  use(0, 5);
  agent.Intervals(11);
  use(0, 6);  // one of them works for a moment
  use(0, 0);
  agent.Intervals(11);
  CHECK(IdleSeconds(agent).empty());
  agent.Intervals(2);  // a heartbeat is up to one interval late
  const auto first = IdleSeconds(agent);
  REQUIRE_FALSE(first.empty());
  CHECK(first.front() >= 60);
  CHECK(first.front() < 65);
  agent.Interval();
  CHECK(IdleSeconds(agent) == std::vector<int64_t>{first.back() + 5});
  use(80, 0);
  agent.Intervals(2);
  CHECK(IdleSeconds(agent) == std::vector<int64_t>{-1});
}

TEST_CASE("idle: a GPU about which nothing is known is not idle") {
  Reporting agent;
  agent.Register();
  RunWithGpus(agent, 1);
  agent.Take();
  SECTION("no figure") { agent.logic->SetDeviceUse(agent.Now(), {{"gpu-0", 0}, {"gpu-1", -1}}); }
  SECTION("no GPU") { agent.logic->SetDeviceUse(agent.Now(), {{"gpu-0", 0}}); }
  agent.Intervals(30);
  CHECK(IdleSeconds(agent).empty());
}

// A task of an interactive job, with or without a GPU.
void RunInteractive(Reporting& agent, bool gpu) {
  v1::ServerMessage message;
  v1::Prepare& prepare = *message.mutable_prepare();
  *prepare.mutable_key() = Key(1);
  prepare.set_start_at_once(true);
  v1::TaskLaunch& launch = *prepare.mutable_launch();
  launch.add_command("bash");
  if (gpu) launch.add_device_uuids("gpu-0");
  if (gpu) launch.add_device_kinds("gpu");
  launch.mutable_interactive()->mutable_idle()->set_seconds(60);
  launch.mutable_interactive()->set_action(v1::Interactive::SUSPEND);
  agent.logic->OnServerMessage(agent.Now(), message);
  agent.Event(Id(1), TaskEvent::Kind::kPrepared);
  agent.Running(1);
}

TEST_CASE("unused: told once nobody has used an interactive task for as long as the job says") {
  const bool gpu = GENERATE(false, true);
  Reporting agent;
  agent.Register();
  RunInteractive(agent, gpu);
  agent.Take();
  CHECK(agent.logic->InteractiveTasks() == std::vector<TaskId>{Id(1)});
  const auto unused = [&](int64_t percent, bool is) {
    if (gpu) agent.logic->SetDeviceUse(agent.Now(), {{"gpu-0", percent}});
    agent.logic->SetUnusedTasks(agent.Now(), is ? std::set<TaskId>{Id(1)} : std::set<TaskId>());
  };
  unused(0, true);
  agent.Intervals(11);
  unused(gpu ? 50 : 0, gpu);  // the GPU works for a moment, or somebody came
  unused(0, true);
  agent.Intervals(11);
  for (const v1::TaskProgress& state : agent.Take()) CHECK_FALSE(state.has_unused());
  agent.Intervals(2);
  const auto told = agent.Take();
  REQUIRE_FALSE(told.empty());
  CHECK(told.front().unused().seconds() >= 60);
  CHECK(told.front().unused_action() == v1::Interactive::SUSPEND);
  unused(0, false);
  agent.Intervals(2);
  for (const v1::TaskProgress& state : agent.Take()) CHECK_FALSE(state.has_unused());
}

TEST_CASE("unused: the time stands still while a task is frozen, and then begins again") {
  Reporting agent;
  agent.Register();
  RunInteractive(agent, /*gpu=*/false);
  agent.logic->SetUnusedTasks(agent.Now(), {Id(1)});
  agent.Intervals(8);
  TellPaused(agent, true);
  CHECK(agent.logic->InteractiveTasks().empty());
  agent.logic->SetUnusedTasks(agent.Now(), {Id(1)});
  agent.Intervals(30);
  TellPaused(agent, false);
  agent.logic->SetUnusedTasks(agent.Now(), {Id(1)});
  agent.Intervals(11);
  for (const v1::TaskProgress& state : agent.Take()) CHECK_FALSE(state.has_unused());
  agent.Intervals(2);
  CHECK(agent.Take().back().unused().seconds() >= 60);
}

TEST_CASE("unused: a task with a GPU about which nothing is known is used") {
  Reporting agent;
  agent.Register();
  RunInteractive(agent, true);
  agent.Take();
  agent.logic->SetUnusedTasks(agent.Now(), {Id(1)});
  agent.Intervals(30);
  for (const v1::TaskProgress& state : agent.Take()) CHECK_FALSE(state.has_unused());
}

}  // namespace
}  // namespace berth
