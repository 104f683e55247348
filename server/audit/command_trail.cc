#include "server/audit/command_trail.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/audit/entries.h"
#include "server/loop/history.h"
#include "support/log.h"
#include "support/proto_time.h"

namespace berth {

CommandTrail::CommandTrail(const Store* store, AuditChain* chain, Executor* executor, Clock* clock,
                           uint64_t durable)
    : store_(store),
      chain_(chain),
      executor_(executor),
      clock_(clock),
      started_(durable),
      target_(durable) {}

void CommandTrail::OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>>,
                                 std::shared_ptr<const std::string> turn) {
  {
    absl::MutexLock lock(&mutex_);
    target_ = revision;
    if (waiting_.size() < kWaiting) waiting_.push_back({revision, std::move(turn)});
    if (std::exchange(scheduled_, true)) return;
  }
  executor_->Run([this] { Write().IgnoreError(); });
}

absl::Status CommandTrail::Write(uint64_t durable) {
  std::deque<Waiting> waiting;
  uint64_t target = 0;
  {
    absl::MutexLock lock(&mutex_);
    waiting.swap(waiting_);
    target = std::max(target_, durable);
    scheduled_ = false;
  }
  absl::Status status = Begin(target);
  if (status.ok()) status = WriteTo(std::move(waiting), target);
  if (!status.ok()) begun_ = false;  // the next attempt begins with what the chain has
  return status;
}

// Continues after the last entry. If that is from after the store's last batch, the store was
// restored, and what it does from now on is new.
absl::Status CommandTrail::Begin(uint64_t target) {
  if (begun_) return absl::OkStatus();
  const absl::StatusOr<v1::AuditEntry> last = chain_->Last();
  if (!last.ok()) return last.status();
  fresh_ = last->sequence() == 0;
  again_ = last->revision();
  parts_ = fresh_ ? 0 : last->part() + 1;
  if (!std::exchange(looked_, true) && again_ > started_) {
    LogInfo("the audit has entries from after the restored backup, and continues after them",
            {{"audited", again_}, {"revision", started_}});
    foreign_ = last->sequence();
  }
  const bool foreign = foreign_ > 0 && last->sequence() == foreign_;
  if (foreign) again_ = 0;
  done_ = again_ == 0 ? 0 : again_ - 1;
  done_ = foreign ? started_ : std::max(done_, std::min(chain_->Noted(), target));
  begun_ = true;
  return absl::OkStatus();
}

absl::Status CommandTrail::WriteTo(std::deque<Waiting> waiting, uint64_t target) {
  for (const Waiting& next : waiting) {
    if (next.revision <= done_) continue;
    absl::Status status = TakeFromStore(next.revision - 1);
    if (status.ok()) status = Take(next.revision, *next.turn);
    if (!status.ok()) return status;
  }
  return TakeFromStore(target);
}

absl::Status CommandTrail::TakeFromStore(uint64_t target) {
  while (done_ < target) {
    const absl::StatusOr<std::vector<LogEntry>> entries =
        store_->ReadLog(done_, std::min<uint64_t>(kReadAtOnce, target - done_));
    if (absl::IsOutOfRange(entries.status())) {
      if (absl::Status skipped = SkipAged(target); !skipped.ok()) return skipped;
      continue;
    }
    if (!entries.ok()) return entries.status();
    if (entries->empty()) return absl::OkStatus();  // not readable yet
    for (const LogEntry& entry : *entries) {
      if (absl::Status taken = Take(entry.sequence, entry.turn); !taken.ok()) return taken;
    }
  }
  return absl::OkStatus();
}

// Says so in the chain, unless it has just begun: then it is the log of before there was an audit.
absl::Status CommandTrail::SkipAged(uint64_t target) {
  const absl::StatusOr<uint64_t> aged = LastTurnBefore(*store_, absl::InfinitePast(), target);
  if (!aged.ok()) return aged.status();
  if (*aged <= done_) return absl::InternalError("the log cannot be read");
  const uint64_t first = done_ + 1 == again_ ? done_ + 2 : done_ + 1;
  if (!fresh_ && first <= *aged) {
    v1::AuditEntry entry;
    ToProto(clock_->Now(), entry.mutable_time());
    entry.mutable_actor()->set_kind(v1::AuditActor::SERVER);
    entry.mutable_actor()->set_door(v1::AuditActor::SERVER_ITSELF);
    entry.set_revision(*aged);
    entry.set_message(absl::StrCat("the log of revisions ", first, " to ", *aged,
                                   " aged out before it was written here"));
    LogWarn("the audit has a gap", {{"first", first}, {"last", *aged}});
    if (absl::Status appended = chain_->Append(clock_->Now(), {entry}); !appended.ok())
      return appended;
  }
  done_ = *aged;
  return absl::OkStatus();
}

absl::Status CommandTrail::Take(uint64_t revision, absl::string_view turn) {
  absl::StatusOr<std::vector<v1::AuditEntry>> entries = AuditEntriesOf(revision, turn);
  if (!entries.ok()) return entries.status();
  if (revision == again_) {
    const auto known =
        std::min<std::ptrdiff_t>(parts_, static_cast<std::ptrdiff_t>(entries->size()));
    entries->erase(entries->begin(), entries->begin() + known);
  }
  if (absl::Status appended = chain_->Append(clock_->Now(), *entries); !appended.ok())
    return appended;
  if (!entries->empty()) fresh_ = false;
  done_ = revision;
  return absl::OkStatus();
}

}  // namespace berth
