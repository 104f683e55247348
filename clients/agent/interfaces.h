// The external dependencies of the agent's logic. Each has a real and a simulated implementation.
//
// No implementation calls back into the logic from inside one of these calls: results are passed in
// later, as events.
#ifndef BERTH_CLIENTS_AGENT_INTERFACES_H_
#define BERTH_CLIENTS_AGENT_INTERFACES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/agent/v1/journal.pb.h"
#include "berth/v1/agent.pb.h"
#include "clients/agent/task_id.h"

namespace berth {

// Both clocks at one moment.
struct Instant {
  absl::Duration steady;  // Clock::Steady
  absl::Time wall;        // Clock::Now; for display, and for ages across restarts
};

// The stream to the server, or to one of several. At most one connection at a time.
class ServerLink {
 public:
  virtual ~ServerLink() = default;
  // To the server whose turn it is. Messages may be sent at once; if the connection fails, now or
  // later, OnDisconnected follows. Call only without a connection.
  virtual void Connect() = 0;
  // Queues a message on the current connection; never blocks. Dropped without a connection.
  virtual void Send(const v1::AgentMessage& message) = 0;
  // Ends the connection; none of its events follow. No-op without one.
  virtual void Disconnect() = 0;
  // Bytes queued and not yet taken by the transport: log chunks wait while there are many.
  virtual size_t QueuedBytes() const = 0;

  virtual size_t servers() const { return 1; }
  // The server whose turn it is; may be empty if there is only one.
  virtual std::string server() const { return ""; }
  // It has registered the agent.
  virtual void Stay() {}
  // It has not, or does no longer: another one's turn, after the end of the connection. True: to be
  // tried at once; false: after a wait.
  virtual bool Leave() { return false; }
};

class Journal {
 public:
  virtual ~Journal() = default;
  // Durable on return. RESOURCE_EXHAUSTED: the disk is full and nothing was written. Any other
  // error: the state of the disk is unknown and the agent must end (its tasks keep running).
  virtual absl::Status Append(const std::vector<agent::v1::JournalRecord>& records) = 0;
  // Written with the next Append; lost if there is none. For records that can be repeated.
  virtual void AppendLater(agent::v1::JournalRecord record) = 0;
};

struct TaskEvent {
  enum class Kind {
    kPreparing,  // takes longer; `message` says what is done. kPrepared or kRefused follows
    kPrepared,
    kRefused,  // could not prepare or exec it (`fault` says who is to blame): the command never
               // began, and nothing remains of it
    kRunning,
    kExited,   // no process of it remains
    kPaused,   // it runs, and all its processes are frozen
    kResumed,  // they are not any more
  };
  TaskId id;
  Kind kind = Kind::kPrepared;
  int port = 0;                   // kPrepared, if one was requested
  std::string image_digest = {};  // kPrepared: of what the image's name means; empty: not known
  std::vector<v1::ImageDigest> container_images = {};  // kPrepared: the same for its containers
  int exit_code = 0;
  int exit_signal = 0;
  v1::TaskReport::Cause cause = v1::TaskReport::CAUSE_UNSPECIFIED;
  std::string message;
  v1::TaskReport::Fault fault = v1::TaskReport::NODE;  // kRefused
  bool has_output = false;   // kRefused: a prolog wrote output; keep the directory
  std::string node_problem;  // kRefused, kExited: a problem of the node (the epilog failed)
  // kRunning: when the command started, on the steady clock; absent: now. kResumed: when it went
  // on.
  std::optional<absl::Duration> began;
  int64_t freeze_request = 0;  // kPaused
  // kPaused: nothing of it is on its devices. `message`: why it keeps them, if it should not.
  bool devices_released = false;
  bool mute = false;  // kRunning: its supervisor is of a version without NOTIFY_SOCKET
};

// Runs tasks. Events follow every Prepare, Start and Adopt, in order, ending with kRefused or
// kExited (unless discarded before Start).
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  // Prepares the task: directory, user, port. `port`: reserve one, preferably this one (0 = any).
  // kPrepared or kRefused follows.
  virtual void Prepare(const TaskId& id, const v1::TaskLaunch& launch, std::optional<int> port) = 0;
  // Releases what Prepare took. No event follows.
  virtual void Discard(const TaskId& id) = 0;
  // kRunning, kRefused or kExited follows. `launch` is complete.
  virtual void Start(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start) = 0;
  // `signal` is a name such as "SIGTERM"; SIGKILL follows after `grace`. A later call can only
  // shorten the grace. kExited follows, with `cause` unless the task had already ended.
  virtual void Kill(const TaskId& id, const std::string& signal, absl::Duration grace,
                    v1::TaskReport::Cause cause) = 0;
  // Sends a signal to all processes of a task that runs; it goes on.
  virtual void Signal(const TaskId& id, const std::string& signal) = 0;
  // Freezes all processes of a task that runs; or, with request 0, lets them go on. kPaused with
  // that request, or kResumed, follows. Without effect for a task that is being killed, which thaws
  // it. With `saves_devices`, what it has on its devices is copied to its memory first, if that is
  // possible, and back before it goes on.
  virtual void Freeze(const TaskId& id, int64_t request, bool saves_devices) = 0;
  // Takes over a task from an earlier agent process: a prepared task (no event), or a started one
  // (kRunning if it runs, then kPaused or kResumed if it was frozen, and kExited in any case, now
  // or later).
  virtual void Adopt(const agent::v1::TaskRecord& record) = 0;
  // Removes the leftovers of an ended task, including logs.
  virtual void Remove(const TaskId& id) = 0;
  // Sets the deadline (on the steady clock) until which strict tasks may run, for supervisors as
  // well. Supervisors of versions without longer leases use `soon`, which is at most `deadline`.
  // False: the supervisors could not be updated and keep the earlier deadline.
  virtual bool SetLease(absl::Duration soon, absl::Duration deadline) = 0;
};

// What a task has reported through its NOTIFY_SOCKET.
struct TaskNotices {
  v1::TaskProgress told;                   // without `key`, `still` and `hung`
  std::optional<absl::Duration> progress;  // when it last made progress, on the steady clock
  absl::Duration not_before;  // on it: EXTEND_TIMEOUT_USEC; its watchdog is not due before
};

// Distinguishes the versions of a task's notices; the first one is none.
struct NoticesVersion {
  uint64_t file = 0;
  int64_t time_ns = 0;
  int64_t bytes = 0;
  bool operator==(const NoticesVersion&) const = default;
};

// Reads what tasks reported, as long as their directories are there.
class NoticeSource {
 public:
  virtual ~NoticeSource() = default;
  // Nothing if it has reported nothing after `version`, which becomes that of the result.
  virtual std::optional<TaskNotices> Read(const TaskId& id, NoticesVersion* version) = 0;
};

// Files of jobs that outlive their tasks on this node (JobSpec.keep). A job is a TaskId with task
// and attempt 0.
class KeptFiles {
 public:
  virtual ~KeptFiles() = default;
  virtual std::vector<TaskId> Jobs() const = 0;
  // Call only without a live task of the job.
  virtual void Drop(const TaskId& job) = 0;
};

// Commands inside running tasks. Their output arrives later as ExecOutput.
class ExecRunner {
 public:
  virtual ~ExecRunner() = default;
  virtual void Open(const v1::OpenExec& request) = 0;
  virtual void Input(const v1::ExecInput& input) = 0;
  // Ends the commands inside a task.
  virtual void EndTask(const TaskId& id) = 0;
  // Ends all commands; nothing more is reported about them.
  virtual void Clear() = 0;
};

// Images on this node.
class NodeImageSource {
 public:
  virtual ~NodeImageSource() = default;
  // That it holds; at most as many as a message may have.
  virtual v1::NodeImages Images() = 0;
  // Gets an image for later.
  virtual void Prefetch(const v1::Prefetch& request) = 0;
};

// Divides GPUs (MIG).
class GpuDivider {
 public:
  virtual ~GpuDivider() = default;
  // May act later; must not call back into the logic before it returns.
  virtual void Divide(const v1::DivideGpu& wish) = 0;
};

// A position in the output of one task.
class LogCursor {
 public:
  struct Piece {
    std::string data;  // empty: nothing more for now
    v1::LogStream stream = v1::STDOUT;
    // When the first byte was written, if the request asks for times and it is known.
    std::optional<int64_t> unix_ms = {};
  };
  virtual ~LogCursor() = default;
  // At most `max_bytes` of one stream, and of one time if the request asks for times.
  virtual absl::StatusOr<Piece> Read(size_t max_bytes) = 0;
  // The position after the data read: a request `from` here continues like this cursor.
  virtual v1::LogPosition Next() const = 0;
};

class LogSource {
 public:
  virtual ~LogSource() = default;
  // Opens the task, streams and position of the request. LOG_STREAM_UNSPECIFIED = both, in the
  // order written; neither tail_lines nor from = all remaining output.
  virtual absl::StatusOr<std::unique_ptr<LogCursor>> Open(const v1::ReadLog& request) = 0;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_INTERFACES_H_
