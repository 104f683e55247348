#include "server/controllers/log_relay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "support/errors.h"

namespace berth {
namespace {

constexpr absl::Duration kTooManyRetry = absl::Seconds(10);
constexpr absl::Duration kTooSlowRetry = absl::Seconds(1);

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
  return message;
}

}  // namespace

absl::StatusOr<LogRelay::RequestId> LogRelay::Open(const LogRequest& request,
                                                   std::shared_ptr<LogReader> reader) {
  const SessionId session = gateway_->CurrentSession(request.node);
  if (session == 0) return absl::UnavailableError("the node is not connected");
  RequestId id = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (requests_.size() >= limit_) {
      return RetryLaterError(absl::StatusCode::kResourceExhausted,
                             "too many logs are being read (limits.log_followers)", kTooManyRetry);
    }
    id = next_++;
    requests_[id] = {.session = session, .reader = std::move(reader), .unread_bytes = 0};
  }
  if (gateway_->SendToSession(session, ReadMessage(id, request))) return id;
  // It ended in the meantime. Whoever removes the request reports its end: if OnSessionGone was
  // first, the reader has been notified.
  absl::MutexLock lock(&mutex_);
  if (requests_.erase(id) == 0) return id;
  return absl::UnavailableError("the node is not connected");
}

void LogRelay::Consumed(RequestId request, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  auto found = requests_.find(request);
  if (found == requests_.end()) return;
  size_t& unread = found->second.unread_bytes;
  unread -= std::min(unread, bytes);
}

void LogRelay::Cancel(RequestId request) {
  SessionId session = 0;
  {
    absl::MutexLock lock(&mutex_);
    auto found = requests_.find(request);
    if (found == requests_.end()) return;
    session = found->second.session;
    requests_.erase(found);
  }
  SendCancel(session, request);
}

size_t LogRelay::open() const {
  absl::MutexLock lock(&mutex_);
  return requests_.size();
}

// Chunks of a request that is gone, or that belongs to another session, were in flight when it was
// cancelled: they are dropped.
void LogRelay::OnLogChunk(SessionId session, v1::LogChunk chunk) {
  std::shared_ptr<LogReader> reader;
  absl::Status end;
  bool ended = chunk.end() || !chunk.error().empty();
  bool too_slow = false;
  const RequestId id = chunk.request();
  {
    absl::MutexLock lock(&mutex_);
    auto found = requests_.find(id);
    if (found == requests_.end() || found->second.session != session) return;
    reader = found->second.reader;
    found->second.unread_bytes += chunk.data().size();
    too_slow = found->second.unread_bytes > kMaxLogBytesUnread;
    if (ended || too_slow) requests_.erase(found);
  }
  if (too_slow) {
    if (!ended) SendCancel(session, id);
    return reader->OnEnd(RetryLaterError(
        absl::StatusCode::kResourceExhausted,
        "the reader is slower than the log; ask for fewer lines (tail_lines)", kTooSlowRetry));
  }
  if (!chunk.error().empty()) end = absl::NotFoundError(chunk.error());
  if (!ended || !chunk.data().empty()) reader->OnChunk(std::move(chunk));
  if (ended) reader->OnEnd(std::move(end));
}

void LogRelay::OnSessionGone(SessionId session) {
  std::vector<std::shared_ptr<LogReader>> readers;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = requests_.begin(); it != requests_.end();) {
      if (it->second.session != session) {
        ++it;
        continue;
      }
      readers.push_back(std::move(it->second.reader));
      it = requests_.erase(it);
    }
  }
  for (const auto& reader : readers)
    reader->OnEnd(absl::UnavailableError("the node has disconnected"));
}

void LogRelay::SendCancel(SessionId session, RequestId request) {
  v1::ServerMessage message;
  message.mutable_cancel_log()->set_request(request);
  gateway_->SendToSession(session, std::move(message));
}

}  // namespace berth
