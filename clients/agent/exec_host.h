// Clients inside running tasks (berth exec, attach, port-forward).
//
// A command is spawned as `berth-supervisor --exec`, which joins the task's namespaces. Its input
// and output use pipes or a terminal.
//
//   OpenExec -> spawn -> started, output..., end(exit code)
//
// The task's own terminal is reached through its supervisor's socket (supervisor/terminal.h); a
// port through a connection that `berth-supervisor --connect` makes inside the task and hands over.
//
// Both directions are bounded: more than kExecWindow of input that the command has not read ends
// the session, and output is not read while kExecWindow of it is unconfirmed. Never blocks. Not
// thread-safe.
#ifndef BERTH_CLIENTS_AGENT_EXEC_HOST_H_
#define BERTH_CLIENTS_AGENT_EXEC_HOST_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
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
  // The tasks that somebody is in, or was since the last call.
  std::set<TaskId> TakeVisited();
  // Readable when Poll has something to do.
  int fd() const { return epoll_fd_; }
  // Moves bytes; returns what to report, in order within each session.
  std::vector<v1::ExecOutput> Poll();

 private:
  enum class Kind {
    kCommand,
    kOnTerminal,  // a command with a terminal of its own
    kAttached,    // to the terminal of the task
    kPort,
  };
  struct Session {
    TaskId task;
    Kind kind = Kind::kCommand;
    pid_t pid = 0;  // of the command; 0: none
    int pid_fd = -1;
    // Except of a plain command, `out` also takes the input.
    int in = -1, out = -1, err = -1;
    int helper = -1;  // kPort: hands over the connection, which becomes `out`
    bool exited = false;
    bool input_ended = false;
    bool output_ended = false;  // kPort: the other side sends nothing more
    std::string window;         // kAttached: a size to tell the supervisor
    std::string input;          // not yet read by the command
    size_t unconfirmed = 0;     // bytes of output
    int exit_code = 0;
    std::string error;  // ends the session
  };

  absl::Status Begin(const v1::OpenExec& request, Session* session);
  absl::Status Spawn(const v1::OpenExec& request, Session* session);
  absl::Status Attach(const v1::OpenExec& request, Session* session);
  absl::Status StartConnecting(const v1::OpenExec& request, Session* session);
  void TellStarted(uint64_t request);
  void TellOutput(uint64_t request, Session& session, v1::LogStream stream, const char* data,
                  size_t bytes);
  void Feed(uint64_t request, Session& session);
  static size_t FeedBytes(Session& session);
  static size_t FeedTerminal(Session& session);
  void Read(uint64_t request, Session& session, int* fd, v1::LogStream stream);
  void ReadTerminal(uint64_t request, Session& session);
  void TakeConnection(uint64_t request, Session& session);
  void Work(uint64_t request, Session& session);
  static void Look(Session& session);
  static bool Over(const Session& session);
  void Watch(uint64_t request, const Session& session);
  void End(uint64_t request, Session& session, const std::string& error);
  void Close(Session& session);

  const std::string supervisor_;
  const std::string tasks_directory_;
  int epoll_fd_ = -1;
  std::map<uint64_t, Session> sessions_;
  std::vector<v1::ExecOutput> told_;
  std::set<TaskId> visited_;  // since the last TakeVisited, perhaps for a moment
  std::vector<pid_t> dying_;  // killed, not reaped yet
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_EXEC_HOST_H_
