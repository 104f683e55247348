#include "server/controllers/log_relay.h"

#include <algorithm>
#include <utility>

#include "support/errors.h"

namespace berth {
namespace {

constexpr absl::Duration kSlowReaderRetry = absl::Seconds(1);

v1::ServerMessage ReadMessage(LogRelay::RequestId id, const LogRequest& request) {
  v1::ServerMessage message;
  v1::ReadLog& read = *message.mutable_read_log();
  read.set_request(id);
  read.mutable_key()->set_job_uid(request.task.job.value);
  read.mutable_key()->set_task(request.task.task);
  read.mutable_key()->set_attempt(request.attempt);
  read.set_stream(request.stream);
  read.set_tail_lines(request.tail_lines);
  *read.mutable_from() = request.from;
  read.set_follow(request.follow);
  read.set_times(request.times);
  read.set_container(request.container);
  return message;
}

}  // namespace

LogRelay::LogRelay(AgentGateway* gateway, size_t limit)
    : gateway_(gateway),
      requests_(gateway, limit, "too many logs are being read (limits.log_followers)") {}

absl::StatusOr<LogRelay::RequestId> LogRelay::Open(const LogRequest& request,
                                                   std::shared_ptr<LogReader> reader) {
  return requests_.Open(request.node, {.reader = std::move(reader)},
                        [&request](RequestId id) { return ReadMessage(id, request); });
}

void LogRelay::Consumed(RequestId request, size_t bytes) {
  requests_.Update(request, [bytes](Client& client) {
    client.unread_bytes -= std::min(client.unread_bytes, bytes);
  });
}

void LogRelay::Cancel(RequestId request) {
  const SessionId session = requests_.Remove(request);
  if (session != 0) SendCancel(session, request);
}

// Chunks of a request that is gone, or that belongs to another session, were in flight when it was
// cancelled: they are dropped.
void LogRelay::OnLogChunk(SessionId session, v1::LogChunk chunk) {
  std::shared_ptr<LogReader> reader;
  absl::Status end;
  const bool ended = chunk.end() || !chunk.error().empty();
  bool too_slow = false;
  const RequestId id = chunk.request();
  const auto look = [&](Client& client) {
    reader = client.reader;
    client.unread_bytes += chunk.data().size();
    too_slow = client.unread_bytes > kMaxLogBytesUnread;
    return ended || too_slow ? Requests::Fate::kEnded : Requests::Fate::kOpen;
  };
  if (!requests_.Receive(session, id, look)) return;
  if (too_slow) {
    if (!ended) SendCancel(session, id);
    return reader->OnEnd(RetryLaterError(
        absl::StatusCode::kResourceExhausted,
        "the reader is slower than the log; ask for fewer lines (tail_lines)", kSlowReaderRetry));
  }
  if (!chunk.error().empty()) end = absl::NotFoundError(chunk.error());
  if (!ended || !chunk.data().empty()) reader->OnChunk(std::move(chunk));
  if (ended) reader->OnEnd(std::move(end));
}

void LogRelay::OnSessionGone(SessionId session) {
  requests_.EndSession(session, [](const Client& client, absl::Status gone) {
    client.reader->OnEnd(std::move(gone));
  });
}

void LogRelay::SendCancel(SessionId session, RequestId request) {
  v1::ServerMessage message;
  message.mutable_cancel_log()->set_request(request);
  gateway_->SendToSession(session, std::move(message));
}

}  // namespace berth
