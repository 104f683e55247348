// What the agent's logic needs from the world. Each has a real implementation and a simulated one.
//
// Nobody calls back into the logic from inside one of these calls: what happens is handed in later,
// as an event.
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
  absl::Time wall;        // Clock::Now; for people and for ages across restarts
};

// The stream to the server. At most one connection at a time.
class ServerLink {
 public:
  virtual ~ServerLink() = default;
  // Messages may be sent at once; OnDisconnected follows if it fails, now or later. Only without a
  // connection.
  virtual void Connect() = 0;
  // Queues a message of the present connection; never blocks. Dropped without one.
  virtual void Send(const v1::AgentMessage& message) = 0;
  // Ends the connection; no event of it follows. Nothing without one.
  virtual void Disconnect() = 0;
  // Bytes queued and not yet taken by the transport: log chunks wait while there are many.
  virtual size_t QueuedBytes() const = 0;
};

class Journal {
 public:
  virtual ~Journal() = default;
  // Durable when it returns. RESOURCE_EXHAUSTED: the disk is full and nothing was written. Any
  // other error: nothing is known about the disk, the agent must end (its tasks live on).
  virtual absl::Status Append(const std::vector<agent::v1::JournalRecord>& records) = 0;
  // Written with the next Append; lost if there is none. For what would merely be done again.
  virtual void AppendLater(agent::v1::JournalRecord record) = 0;
};

struct TaskEvent {
  enum class Kind {
    kPrepared,
    kRefused,  // could not prepare or exec it (`fault` says whose fault that is): the command never
               // began, and nothing is left of it
    kRunning,
    kExited,  // nothing is left of it
  };
  TaskId id;
  Kind kind = Kind::kPrepared;
  int port = 0;  // kPrepared, if one was asked for
  int exit_code = 0;
  int exit_signal = 0;
  v1::TaskReport::Cause cause = v1::TaskReport::CAUSE_UNSPECIFIED;
  std::string message;
  v1::TaskReport::Fault fault = v1::TaskReport::NODE;  // kRefused
  bool has_output = false;  // kRefused: a prolog wrote something; its directory is kept like others
  std::string
      node_problem;  // kRefused, kExited: what its end tells of the node (the epilog failed)
};

// Runs tasks. Every Prepare, Start and Adopt is answered by events, in order, ending with kRefused
// or kExited (unless discarded before Start).
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  // Makes ready: directory, user, port. kPrepared or kRefused follows.
  virtual void Prepare(const TaskId& id, const v1::TaskLaunch& launch, bool reserve_port) = 0;
  // Gives back what Prepare took. No event follows.
  virtual void Discard(const TaskId& id) = 0;
  // kRunning, kRefused or kExited follows. `launch` is whole.
  virtual void Start(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start) = 0;
  // `signal` is a name such as "SIGTERM"; SIGKILL follows after `grace`. A later call can only
  // shorten the grace. kExited follows, with `cause` unless the task had ended by itself.
  virtual void Kill(const TaskId& id, const std::string& signal, absl::Duration grace,
                    v1::TaskReport::Cause cause) = 0;
  // Takes over what an earlier agent process left: a prepared task (no event), or a started one
  // (kRunning if it runs, and kExited in any case, now or later).
  virtual void Adopt(const agent::v1::TaskRecord& record) = 0;
  // Removes what an ended task left, logs too.
  virtual void Remove(const TaskId& id) = 0;
  // Tells the supervisors, too, until when (on the steady clock) strict tasks may run: until
  // `deadline`. Supervisors of versions that know of no longer leases go by `soon`, which is at
  // most that. False: they could not be told, and go by what they were told before.
  virtual bool SetLease(absl::Duration soon, absl::Duration deadline) = 0;
};

// Commands inside running tasks. What they say comes as ExecOutput, later.
class ExecRunner {
 public:
  virtual ~ExecRunner() = default;
  virtual void Open(const v1::OpenExec& request) = 0;
  virtual void Input(const v1::ExecInput& input) = 0;
  // Ends the commands inside a task.
  virtual void EndTask(const TaskId& id) = 0;
  // Ends all of them; nothing more is told of any.
  virtual void Clear() = 0;
};

// Divides GPUs (MIG).
class GpuDivider {
 public:
  virtual ~GpuDivider() = default;
  // May do so later; must not call back into the logic before it returns.
  virtual void Divide(const v1::DivideGpu& wish) = 0;
};

// A place in the output of one task.
class LogCursor {
 public:
  struct Piece {
    std::string data;  // empty: nothing more at present
    v1::LogStream stream = v1::STDOUT;
    // When the first byte was written, if the request asks for times and it is known.
    std::optional<int64_t> unix_ms = {};
  };
  virtual ~LogCursor() = default;
  // At most `max_bytes`, of one stream, and of one time if the request asks for times.
  virtual absl::StatusOr<Piece> Read(size_t max_bytes) = 0;
  // Behind what was read: a request `from` here goes on as this cursor would.
  virtual v1::LogPosition Next() const = 0;
};

class LogSource {
 public:
  virtual ~LogSource() = default;
  // The task, streams and place of the request. LOG_STREAM_UNSPECIFIED = both, in the order
  // written; neither tail_lines nor from = all that is kept.
  virtual absl::StatusOr<std::unique_ptr<LogCursor>> Open(const v1::ReadLog& request) = 0;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_INTERFACES_H_
