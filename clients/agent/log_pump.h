// Serves ReadLog: reads task output in pieces and sends it while the link accepts more. The first
// piece is sent at once, is empty, and has the start position.
//
// Flow is bounded: nothing is read while the link has more than kMaxQueuedLogBytes queued, and one
// round sends at most one piece per request, so that reports and heartbeats are not delayed. No
// thread, clock or IO.
#ifndef BERTH_CLIENTS_AGENT_LOG_PUMP_H_
#define BERTH_CLIENTS_AGENT_LOG_PUMP_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "clients/agent/interfaces.h"

namespace berth {

inline constexpr size_t kMaxLogRequests = 64;
inline constexpr size_t kMaxLogChunkBytes = size_t{64} << 10;
inline constexpr size_t kMaxQueuedLogBytes = size_t{256} << 10;

class LogPump {
 public:
  using SendChunk = absl::AnyInvocable<void(v1::LogChunk)>;
  // Whether a task has ended (or is unknown): then a follow ends once everything is read.
  using HasEnded = absl::AnyInvocable<bool(const TaskId&) const>;

  LogPump(LogSource& source, HasEnded has_ended, SendChunk send);

  void Open(absl::Duration now, const v1::ReadLog& request);
  void Cancel(uint64_t request) { requests_.erase(request); }
  void Clear() { requests_.clear(); }
  // Sends while queued_bytes() allows, up to kMaxRounds rounds.
  void Pump(absl::Duration now, absl::FunctionRef<size_t()> queued_bytes);
  // When to call Pump next; infinite without requests.
  absl::Duration NextWake() const { return requests_.empty() ? absl::InfiniteDuration() : next_; }

 private:
  struct Request {
    TaskId id;
    v1::LogStream stream;
    bool follow;
    std::unique_ptr<LogCursor> cursor;
  };
  enum class Step { kSent, kNothing, kDone };
  Step SendNext(uint64_t number, Request& request);
  void SendPiece(uint64_t number, LogCursor::Piece piece, v1::LogPosition next);
  void SendEnd(uint64_t number, v1::LogStream stream, absl::string_view error);

  LogSource& source_;
  HasEnded has_ended_;
  SendChunk send_;
  std::map<uint64_t, Request> requests_;
  absl::Duration next_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_LOG_PUMP_H_
