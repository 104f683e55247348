// LogRelay: reads a task's log from its node's agent for a client (JobService.ReadLogs).
#ifndef BERTH_SERVER_CONTROLLERS_LOG_RELAY_H_
#define BERTH_SERVER_CONTROLLERS_LOG_RELAY_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/v1/agent.pb.h"
#include "core/model/ids.h"
#include "server/controllers/agent_gateway.h"
#include "server/controllers/open_requests.h"

namespace berth {

// Data that one reader may leave unread before its request is cut with RESOURCE_EXHAUSTED.
inline constexpr size_t kMaxLogBytesUnread = size_t{16} << 20;

struct LogRequest {
  NodeId node;
  TaskKey task;
  uint32_t attempt = 0;
  v1::LogStream stream = v1::LOG_STREAM_UNSPECIFIED;  // both
  int64_t tail_lines = 0;                             // 0 = all that is stored, or
  v1::LogPosition from = {};                          // output after this position
  bool follow = false;
  bool times = false;
  std::string container = {};  // empty: the task's command
};

// The reader's end: gets chunks in order, the first without data, then OnEnd once. Calls come one
// at a time, on the threads of the agent's stream, without a lock of the relay; they must not
// block. The relay counts delivered data as unread until Consumed is called.
class LogReader {
 public:
  virtual ~LogReader() = default;
  virtual void OnChunk(v1::LogChunk chunk) = 0;
  // OK: the log is complete. UNAVAILABLE: the node fell silent. NOT_FOUND and others: the agent's
  // error. RESOURCE_EXHAUSTED: this reader was too slow.
  virtual void OnEnd(absl::Status status) = 0;
};

class LogRelay final : public LogSink {
 public:
  using RequestId = AgentRequestId;

  // The gateway outlives the relay. `limit`: open requests (config limits.log_followers).
  LogRelay(AgentGateway* gateway, size_t limit);

  // UNAVAILABLE if the node has no session; RESOURCE_EXHAUSTED above the limit; the reader is then
  // never called. The reader may be called before this returns.
  absl::StatusOr<RequestId> Open(const LogRequest& request, std::shared_ptr<LogReader> reader);
  // The reader has passed on this many bytes.
  void Consumed(RequestId request, size_t bytes);
  // The reader is done: a call in progress may still finish, no other begins. Idempotent.
  void Cancel(RequestId request);

  size_t open() const { return requests_.size(); }

  void OnLogChunk(SessionId session, v1::LogChunk chunk) override;
  void OnSessionGone(SessionId session) override;

 private:
  struct Client {
    std::shared_ptr<LogReader> reader;
    size_t unread_bytes = 0;
  };
  using Requests = OpenRequests<Client>;

  void SendCancel(SessionId session, RequestId request);

  AgentGateway* const gateway_;
  Requests requests_;
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_LOG_RELAY_H_
