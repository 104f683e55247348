// Commands inside running tasks (berth exec): spawned as `berth-supervisor --exec`, which joins the
// task's namespaces. Input and output use pipes or a terminal.
//
//   OpenExec -> spawn -> started, output..., end(exit code)
//
// Both directions are bounded: more than kExecWindow of input that the command has not read ends
// the session, and output is not read while kExecWindow of it is unconfirmed. Never blocks. Not
// thread-safe.
#ifndef BERTH_CLIENTS_AGENT_EXEC_HOST_H_
#define BERTH_CLIENTS_AGENT_EXEC_HOST_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/agent/interfaces.h"

namespace berth {

inline constexpr size_t kMaxExecSessions = 64;
inline constexpr size_t kMaxExecCommandBytes = size_t{64} << 10;
inline constexpr size_t kMaxExecDataBytes = size_t{64} << 10;
inline constexpr size_t kExecWindow = size_t{256} << 10;

class ExecHost final : public ExecRunner {
 public:
  // `supervisor`: path of berth-supervisor; task directories are below `tasks_directory`.
  ExecHost(std::string supervisor, std::string tasks_directory);
  ~ExecHost() override;  // kills running commands

  void Open(const v1::OpenExec& request) override;
  void Input(const v1::ExecInput& input) override;
  void EndTask(const TaskId& id) override;
  void Clear() override;

  bool idle() const { return sessions_.empty(); }
  // Readable when Poll has something to do.
  int fd() const { return epoll_fd_; }
  // Moves bytes; returns what to report, in order within each session.
  std::vector<v1::ExecOutput> Poll();

 private:
  struct Session {
    TaskId task;
    pid_t pid = 0;
    int pid_fd = -1;
    int in = -1, out = -1, err = -1;  // a terminal is `out`, which also takes the input
    bool terminal = false;
    bool exited = false;
    bool input_ended = false;
    std::string input;       // not yet read by the command
    size_t unconfirmed = 0;  // bytes of output
    int exit_code = 0;
  };

  absl::Status Spawn(const v1::OpenExec& request, Session* session);
  void Feed(uint64_t request, Session& session);
  void Read(uint64_t request, Session& session, int* fd, v1::LogStream stream);
  static void Look(Session& session);
  void Watch(uint64_t request, const Session& session);
  void End(uint64_t request, Session& session, const std::string& error);
  void Close(Session& session);

  const std::string supervisor_;
  const std::string tasks_directory_;
  int epoll_fd_ = -1;
  std::map<uint64_t, Session> sessions_;
  std::vector<v1::ExecOutput> told_;
  std::vector<pid_t> dying_;  // killed, not reaped yet
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_EXEC_HOST_H_
