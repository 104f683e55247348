// Real processes under real supervisors, for tests: an agent's runner in a separate directory.
#ifndef BERTH_TESTS_UNIT_AGENT_PROCESS_WORLD_H_
#define BERTH_TESTS_UNIT_AGENT_PROCESS_WORLD_H_

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/agent/log_files.h"
#include "clients/agent/process_runner.h"
#include "support/clock.h"
#include "tests/unit/agent/fakes.h"

namespace berth::testing {

inline constexpr absl::Duration kPatience = absl::Seconds(30);
using Kind = TaskEvent::Kind;

inline std::string ProgramBeside(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

template <class Condition>
bool Eventually(Condition condition, absl::Duration patience = kPatience) {
  const absl::Time end = absl::Now() + patience;
  while (absl::Now() < end) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return condition();
}

// Whether it runs. A zombie does not.
inline bool Alive(pid_t pid) {
  std::string stat;
  if (ReadWholeFile(absl::StrCat("/proc/", pid, "/stat"), &stat) != 0) return false;
  return stat.substr(stat.rfind(')')).find(" Z ") == std::string::npos;
}

// The process with the number `inside` in the PID namespace of `sibling`; 0: none.
inline pid_t PidOutside(pid_t inside, pid_t sibling) {
  const auto name_of = [](const std::string& pid) {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/" + pid + "/ns/pid", ignored).string();
  };
  const std::string wanted = name_of(std::to_string(sibling));
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    std::string status;
    pid_t pid = 0;
    if (!absl::SimpleAtoi(name, &pid) || name_of(name) != wanted) continue;
    if (ReadWholeFile("/proc/" + name + "/status", &status) != 0) continue;
    const size_t at = status.find("NSpid:");
    const std::string line = status.substr(at, status.find('\n', at) - at);
    if (line.substr(line.rfind('\t') + 1) == std::to_string(inside)) return pid;
  }
  return 0;
}

// Groups of tasks are named after the node and the task, and other tests use the same names. These
// belong to one state directory.
inline std::string GroupParentOf(const std::string& state) {
  return "berth-test/" + std::filesystem::path(state).filename().string();
}

// What an agent leaves: the parent of its tasks' groups, which other agents share.
inline void RemoveGroups(const std::string& parent) {
  std::string mountinfo;
  ReadWholeFile("/proc/self/mountinfo", &mountinfo);
  const Hierarchies found = ReadHierarchies(mountinfo);
  if (!found.unified.empty()) rmdir((found.unified + "/" + parent).c_str());
  for (const Hierarchies::V1& v1 : found.v1) rmdir((v1.path + "/" + parent).c_str());
}

struct Fixture {
  // `base`: where the state directory is made. Tasks get no private /tmp if it is below /tmp.
  explicit Fixture(const std::string& base = "/tmp", config::v1::Agent with = {})
      : state(base), config(std::move(with)) {
    chmod(state.path().c_str(), 0711);
    Restart();
    const absl::Duration end = SystemClock().Steady() + absl::Hours(1);
    runner->SetLease(end, end);
  }
  ~Fixture() {
    runner.reset();
    RemoveGroups(GroupParent());
  }
  std::string GroupParent() const { return GroupParentOf(state.path()); }
  // As a new agent process: everything in memory is lost.
  void Restart() {
    runner.reset();
    auto created = ProcessRunner::Create(Options());
    REQUIRE(created.ok());
    runner = *std::move(created);
    seen.clear();
  }
  std::shared_ptr<const Isolation> MakeIsolation() const {
    config::v1::Agent own = config;
    own.set_node_name("n1");
    own.mutable_cgroups()->set_parent(GroupParent());
    own.set_task_user(user);
    own.set_allow_root_tasks(user.empty());
    auto isolation = Isolation::Create(own, state.path());
    REQUIRE(isolation.ok());
    return *std::move(isolation);
  }
  ProcessRunner::Options Options() const {
    ProcessRunner::Options options;
    options.state_directory = state.path();
    options.supervisor = ProgramBeside("berth-supervisor");
    options.image_program = ProgramBeside("berth-image");
    options.isolation = MakeIsolation();
    options.first_port = 26000;
    options.last_port = 26999;
    options.log_file_bytes = log_file_bytes;
    options.log_files = 3;
    options.min_free_bytes = min_free_bytes;
    options.kept_output_bytes = kept_output_bytes;
    options.disk_interval = absl::Milliseconds(100);
    options.context.node = "n1";
    options.context.address = "127.0.0.1";
    options.cuda_checkpoint = cuda_checkpoint;
    options.gpu_files = gpu_files;
    return options;
  }
  // The first event of this kind that was not returned yet.
  TaskEvent Await(TaskId id, Kind kind) {
    const absl::Time end = absl::Now() + kPatience;
    while (absl::Now() < end) {
      for (size_t i = 0; i < seen.size(); ++i) {
        if (seen[i].id != id || seen[i].kind != kind) continue;
        const TaskEvent event = seen[i];
        seen.erase(seen.begin() + static_cast<std::ptrdiff_t>(i));
        return event;
      }
      pollfd fd{runner->fd(), POLLIN, 0};
      poll(&fd, 1,
           static_cast<int>(absl::ToInt64Milliseconds(
               std::min(runner->PollInterval(), absl::Milliseconds(200)))));
      for (TaskEvent& event : runner->Poll()) seen.push_back(std::move(event));
    }
    FAIL("no such event");
    return {};
  }
  void Start(TaskId id, const std::string& script) {
    launch.clear_command();
    for (const char* arg : {"sh", "-c"}) launch.add_command(arg);
    launch.add_command(script);
    StartLaunch(id);
  }
  void StartLaunch(TaskId id) {
    runner->Prepare(id, launch, true);
    port = Await(id, Kind::kPrepared).port;
    runner->Start(id, launch, {});
  }
  std::string Log(TaskId id, v1::LogStream stream = v1::STDOUT) {
    LogFiles files(runner->tasks_directory());
    v1::ReadLog request;
    *request.mutable_key() = ToKey(id);
    request.set_stream(stream);
    auto cursor = files.Open(request);
    REQUIRE(cursor.ok());
    std::string out;
    for (;;) {
      const auto piece = (*cursor)->Read(65536);
      if (piece->data.empty()) return out;
      out += piece->data;
    }
  }
  // A process id that the task prints as a line of its output, translated to this namespace.
  pid_t PidInLog(TaskId id) {
    REQUIRE(Eventually([&] { return Status(id).pid != 0; }));
    return PidOutside(NamedInLog(id), static_cast<pid_t>(Status(id).pid));
  }
  pid_t NamedInLog(TaskId id) {
    pid_t pid = 0;
    REQUIRE(Eventually([&] {
      const std::string text = Log(id);
      return text.find('\n') != std::string::npos &&
             absl::SimpleAtoi(text.substr(0, text.find('\n')), &pid);
    }));
    return pid;
  }
  SupervisorStatus Status(TaskId id) {
    std::string text;
    SupervisorStatus status;
    ReadWholeFile(runner->tasks_directory() + "/" + ToString(id) + "/status", &text);
    DecodeStatus(text, &status);
    return status;
  }
  agent::v1::TaskRecord Record(
      TaskId id, agent::v1::TaskRecord::Phase phase = agent::v1::TaskRecord::RUNNING) {
    agent::v1::TaskRecord record;
    *record.mutable_key() = ToKey(id);
    record.set_phase(phase);
    record.set_port(port);
    return record;
  }

  TemporaryDirectory state;
  std::string user;
  config::v1::Agent config;  // the other settings
  int64_t log_file_bytes = 65536;
  int64_t min_free_bytes = 0;
  int64_t kept_output_bytes = 0;
  std::string cuda_checkpoint;  // and the files by which tasks have GPUs: effective after Restart
  std::vector<std::string> gpu_files;
  std::unique_ptr<ProcessRunner> runner;
  std::vector<TaskEvent> seen;
  v1::TaskLaunch launch;
  int port = 0;
};

inline const TaskId kTask = {1, 0, 1};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_AGENT_PROCESS_WORLD_H_
