#include "server/listeners/watch_hub.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/codec.h"
#include "support/errors.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr size_t kHistoryTurns = 256;  // read from the store at a time
constexpr absl::Duration kTooManyRetry = absl::Seconds(10);
constexpr absl::Duration kTooSlowRetry = absl::Seconds(1);

// Splits off everything beyond the first `count` events.
v1::WatchResponse SplitOff(v1::WatchResponse& response, int count) {
  v1::WatchResponse rest;
  rest.set_revision(response.revision());
  for (int i = count; i < response.events_size(); ++i) {
    rest.add_events()->Swap(response.mutable_events(i));
  }
  response.mutable_events()->DeleteSubrange(count, response.events_size() - count);
  return rest;
}

}  // namespace

WatchHub::WatchHub(const Store* store, Executor* executor, uint64_t durable, WatchOptions options,
                   Clock* clock)
    : store_(store), executor_(executor), options_(options), clock_(clock), latest_(durable) {}

void WatchHub::Add(WatcherId id, const v1::WatchRequest& request, std::shared_ptr<WatchSink> sink,
                   WatchSight sight) {
  executor_->Run([this, id, request, sink = std::move(sink), sight = std::move(sight)]() mutable {
    Start(id, request, std::move(sink), std::move(sight));
  });
}

void WatchHub::Written(WatcherId watcher) {
  executor_->Run([this, watcher] {
    const auto found = watchers_.find(watcher);
    if (found == watchers_.end()) return;
    found->second.sending = false;
    Advance(watcher);
  });
}

void WatchHub::Remove(WatcherId watcher, const absl::Status& status) {
  executor_->Run([this, watcher, status] { End(watcher, status); });
}

void WatchHub::Stop() {
  executor_->Run([this] {
    stopped_ = true;
    while (!watchers_.empty()) {
      End(watchers_.begin()->first, absl::UnavailableError("the server is stopping"));
    }
  });
}

void WatchHub::OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>>,
                             std::shared_ptr<const std::string> turn) {
  executor_->Run([this, revision, turn = std::move(turn)] { Push(revision, *turn); });
}

void WatchHub::Start(WatcherId id, const v1::WatchRequest& request, std::shared_ptr<WatchSink> sink,
                     WatchSight sight) {
  if (stopped_) return sink->Finish(absl::UnavailableError("the server is stopping"));
  if (watchers_.size() >= options_.watchers) CutSlow();
  if (watchers_.size() >= options_.watchers) {
    return sink->Finish(RetryLaterError(
        absl::StatusCode::kResourceExhausted,
        absl::StrCat("at most ", options_.watchers, " watchers (limits.watchers)"), kTooManyRetry));
  }
  const uint64_t from = request.from_revision();
  if (request.incarnation() != 0 && request.incarnation() != store_->Incarnation()) {
    return sink->Finish(absl::OutOfRangeError(
        absl::StrCat("revision ", from,
                     " belongs to the store before a restore; list again and watch from there")));
  }
  if (from > latest_) {
    return sink->Finish(absl::OutOfRangeError(
        absl::StrCat("revision ", from, " does not exist yet; the latest is ", latest_)));
  }
  Watcher& watcher =
      watchers_.try_emplace(id, request, std::move(sink), std::move(sight)).first->second;
  watcher.position = from != 0 ? from : latest_;
  watcher.told = watcher.position;
  count_.store(watchers_.size());
  // Checks whether the log reaches back that far before reporting that the watch has begun.
  if (watcher.position < latest_) {
    if (absl::Status status = ReadHistory(watcher); !status.ok()) return End(id, status);
  }
  v1::WatchResponse begun;
  begun.set_revision(watcher.position);
  Send(watcher, std::move(begun));
}

void WatchHub::Send(Watcher& watcher, v1::WatchResponse answer) {
  watcher.sending = true;
  watcher.sent = clock_->Steady();
  answer.set_incarnation(store_->Incarnation());
  watcher.sink->Send(std::move(answer));
}

void WatchHub::CutSlow() {
  const absl::Duration now = clock_->Steady();
  for (auto next = watchers_.begin(); next != watchers_.end();) {
    const auto at = next++;
    if (!at->second.sending || now - at->second.sent < options_.patience) continue;
    const std::shared_ptr<WatchSink> sink = std::move(at->second.sink);
    watchers_.erase(at);
    sink->Cut(RetryLaterError(absl::StatusCode::kResourceExhausted,
                              "the watcher does not read its messages", kTooSlowRetry));
  }
  count_.store(watchers_.size());
}

void WatchHub::Push(uint64_t revision, const std::string& turn) {
  latest_ = revision;
  if (watchers_.empty()) {
    ring_.clear();
    ring_bytes_ = 0;
    return;
  }
  absl::StatusOr<store::v1::LogTurn> parsed = ParseTurn(turn);
  if (!parsed.ok()) {  // watchers will get the same error when they read it from the store
    LogError("a turn cannot be sent to watchers",
             {{"revision", revision}, {"error", parsed.status()}});
    ring_.clear();
    ring_bytes_ = 0;
  } else {
    ring_.push_back(
        {revision, turn.size(), std::make_shared<const store::v1::LogTurn>(*std::move(parsed))});
    ring_bytes_ += turn.size();
  }
  while (ring_.size() > options_.ring_turns ||
         (ring_bytes_ > options_.ring_bytes && ring_.size() > 1)) {
    ring_bytes_ -= ring_.front().bytes;
    ring_.pop_front();
  }
  CutSlow();
  for (auto next = watchers_.begin(); next != watchers_.end();) {
    const WatcherId id = (next++)->first;  // Advance may end it
    Advance(id);
  }
}

void WatchHub::Advance(WatcherId id) {
  const auto found = watchers_.find(id);
  if (found == watchers_.end() || found->second.sending) return;
  Watcher& watcher = found->second;
  absl::StatusOr<std::optional<v1::WatchResponse>> answer = NextAnswer(watcher);
  if (!answer.ok()) return End(id, answer.status());
  if (!answer->has_value()) return;
  watcher.told = (*answer)->revision();
  Send(watcher, **std::move(answer));
}

absl::StatusOr<std::optional<v1::WatchResponse>> WatchHub::NextAnswer(Watcher& watcher) {
  v1::WatchResponse answer = std::move(watcher.rest);
  watcher.rest.Clear();
  while (answer.events().empty() && watcher.position < latest_) {
    absl::StatusOr<Turn> turn = TurnAfter(watcher);
    if (!turn.ok()) return turn.status();
    std::vector<const store::v1::LogEvent*> from;
    RenderChanges(**turn, watcher.filter, answer.mutable_events(), &from);
    if (watcher.sight != nullptr) {
      absl::Status seen = watcher.sight(answer.mutable_events(), from);
      if (!seen.ok()) return seen;
    }
    answer.set_revision(++watcher.position);
  }
  const bool progress = watcher.position - watcher.told >= options_.progress_revisions;
  if (answer.events().empty() && !progress) return std::nullopt;
  if (answer.events().empty()) answer.set_revision(watcher.position);
  if (answer.events_size() > options_.events_per_answer) {
    watcher.rest = SplitOff(answer, options_.events_per_answer);
    answer.set_revision(answer.revision() - 1);  // a client that resumes from here gets all of it
                                                 // again
  }
  return answer;
}

absl::StatusOr<WatchHub::Turn> WatchHub::TurnAfter(Watcher& watcher) {
  const uint64_t wanted = watcher.position + 1;
  if (!ring_.empty() && ring_.front().revision <= wanted) {
    watcher.history.clear();
    return ring_[wanted - ring_.front().revision].turn;
  }
  if (watcher.history.empty()) {
    if (absl::Status status = ReadHistory(watcher); !status.ok()) return status;
  }
  Turn turn = std::move(watcher.history.front().turn);
  watcher.history.pop_front();
  return turn;
}

// Afterwards history begins with the turn after the watcher's position.
absl::Status WatchHub::ReadHistory(Watcher& watcher) {
  ++store_reads_;
  absl::StatusOr<std::vector<LogEntry>> entries = store_->ReadLog(watcher.position, kHistoryTurns);
  if (absl::IsOutOfRange(entries.status())) {
    return absl::OutOfRangeError(
        absl::StrCat("revision ", watcher.position,
                     " has aged out of the log; list again and watch from there"));
  }
  if (!entries.ok()) return entries.status();
  for (const LogEntry& entry : *entries) {
    if (entry.sequence > latest_) break;  // it will be pushed
    absl::StatusOr<store::v1::LogTurn> turn = ParseTurn(entry.turn);
    if (!turn.ok()) return turn.status();
    watcher.history.push_back({entry.sequence, entry.turn.size(),
                               std::make_shared<const store::v1::LogTurn>(*std::move(turn))});
  }
  if (watcher.history.empty() || watcher.history.front().revision != watcher.position + 1) {
    return absl::DataLossError(absl::StrCat("the log has no revision ", watcher.position + 1));
  }
  return absl::OkStatus();
}

void WatchHub::End(WatcherId id, const absl::Status& status) {
  const auto found = watchers_.find(id);
  if (found == watchers_.end()) return;
  const std::shared_ptr<WatchSink> sink = std::move(found->second.sink);
  watchers_.erase(found);
  count_.store(watchers_.size());
  sink->Finish(status);
}

}  // namespace berth
