#include "clients/agent/log_pump.h"

#include <utility>

#include "google/protobuf/util/time_util.h"

namespace berth {
namespace {

constexpr int kMaxRounds = 16;
constexpr absl::Duration kFollowInterval =
    absl::Milliseconds(200);  // how often a follower checks for more
constexpr absl::Duration kFullInterval =
    absl::Milliseconds(10);  // how often a full link is checked

}  // namespace

LogPump::LogPump(LogSource& source, HasEnded has_ended, SendChunk send)
    : source_(source), has_ended_(std::move(has_ended)), send_(std::move(send)) {}

void LogPump::Open(absl::Duration now, const v1::ReadLog& message) {
  if (requests_.contains(message.request())) return;
  if (requests_.size() >= kMaxLogRequests) {
    return SendEnd(message.request(), message.stream(), "too many log requests on this node");
  }
  const TaskId id = ToTaskId(message.key());
  auto cursor = source_.Open(message);
  if (!cursor.ok()) {
    return SendEnd(message.request(), message.stream(), cursor.status().message());
  }
  SendPiece(message.request(), {.data = "", .stream = message.stream()}, (*cursor)->Next());
  requests_[message.request()] = {.id = id,
                                  .stream = message.stream(),
                                  .follow = message.follow(),
                                  .cursor = *std::move(cursor)};
  next_ = now;
}

void LogPump::Pump(absl::Duration now, absl::FunctionRef<size_t()> queued_bytes) {
  if (requests_.empty() || now < next_) return;
  for (int round = 0; round < kMaxRounds; ++round) {
    bool sent = false;
    for (auto at = requests_.begin(); at != requests_.end();) {
      if (queued_bytes() > kMaxQueuedLogBytes) {
        next_ = now + kFullInterval;
        return;
      }
      const Step step = SendNext(at->first, at->second);
      sent |= step == Step::kSent;
      at = step == Step::kDone ? requests_.erase(at) : std::next(at);
    }
    if (!sent) {
      next_ = now + kFollowInterval;
      return;
    }
  }
  next_ = now;
}

// Calls has_ended before reading, so that everything written before the end is read.
LogPump::Step LogPump::SendNext(uint64_t number, Request& request) {
  const bool last = !request.follow || has_ended_(request.id);
  auto piece = request.cursor->Read(kMaxLogChunkBytes);
  if (!piece.ok()) {
    SendEnd(number, request.stream, piece.status().message());
    return Step::kDone;
  }
  if (piece->data.empty()) {
    if (!last) return Step::kNothing;
    SendEnd(number, request.stream, "");
    return Step::kDone;
  }
  SendPiece(number, *std::move(piece), request.cursor->Next());
  return Step::kSent;
}

void LogPump::SendPiece(uint64_t number, LogCursor::Piece piece, v1::LogPosition next) {
  v1::LogChunk chunk;
  chunk.set_request(number);
  chunk.set_stream(piece.stream);
  chunk.set_data(std::move(piece.data));
  *chunk.mutable_next() = std::move(next);
  if (piece.unix_ms.has_value()) {
    *chunk.mutable_time() =
        google::protobuf::util::TimeUtil::MillisecondsToTimestamp(*piece.unix_ms);
  }
  send_(std::move(chunk));
}

void LogPump::SendEnd(uint64_t number, v1::LogStream stream, absl::string_view error) {
  v1::LogChunk chunk;
  chunk.set_request(number);
  chunk.set_stream(stream);
  chunk.set_end(true);
  chunk.set_error(std::string(error));
  send_(std::move(chunk));
}

}  // namespace berth
