#include "server/audit/refused_calls.h"

#include "absl/strings/str_cat.h"
#include "server/audit/entries.h"
#include "support/proto_time.h"
#include "support/utf8.h"
#include "support/visible.h"

namespace berth {
namespace {

std::string RefusalText(absl::string_view text, size_t most) {
  return Shortened(SanitizedUtf8(text, text.size()), most);
}

v1::AuditEntry MoreOf(absl::Time now, const Actor& actor, uint64_t more, std::string message) {
  v1::AuditEntry entry;
  ToProto(now, entry.mutable_time());
  ToApi(actor, &entry);
  entry.set_more(more);
  entry.set_message(std::move(message));
  return entry;
}

}  // namespace

RefusedCalls::Count* RefusedCalls::CountOf(const Actor& actor) {
  Key key(actor.kind, actor.name.substr(0, Actor::kMaxName));
  const auto found = counts_.find(key);
  if (found != counts_.end()) return &found->second;
  if (counts_.size() >= kActors) return nullptr;
  Count& count = counts_[std::move(key)];
  count.door = actor.door;
  return &count;
}

void RefusedCalls::Note(const Actor& actor, absl::string_view target, const absl::Status& refusal) {
  absl::MutexLock lock(&mutex_);
  Count* count = CountOf(actor);
  if (count == nullptr) {
    ++others_;
    return;
  }
  if (count->noted >= kPerActor || entries_.size() >= kTogether) {
    ++count->more;
    return;
  }
  ++count->noted;
  v1::AuditEntry& entry = entries_.emplace_back();
  ToProto(clock_->Now(), entry.mutable_time());
  ToApi(Bounded(actor), &entry);
  entry.set_target(RefusalText(target, kMaxTarget));
  entry.set_message(RefusalText(refusal.message(), kMaxMessage));
}

absl::Status RefusedCalls::Write() {
  std::vector<v1::AuditEntry> entries;
  std::map<Key, Count> counts;
  uint64_t others = 0;
  {
    absl::MutexLock lock(&mutex_);
    entries.swap(entries_);
    counts.swap(counts_);
    std::swap(others, others_);
  }
  std::vector<v1::AuditEntry> all = entries;
  const absl::Time now = clock_->Now();
  for (const auto& [key, count] : counts) {
    if (count.more == 0) continue;
    all.push_back(MoreOf(now, {.kind = key.first, .name = key.second, .door = count.door},
                         count.more, absl::StrCat("and ", count.more, " more")));
  }
  if (others > 0) {
    all.push_back(MoreOf(now, {}, others, absl::StrCat("and ", others, " more of other callers")));
  }
  if (all.empty()) return absl::OkStatus();
  absl::Status status = chain_->Append(now, all);
  if (!status.ok()) {
    KeepCounts(std::move(counts), entries);
    absl::MutexLock lock(&mutex_);
    others_ += others;
  }
  return status;
}

void RefusedCalls::KeepCounts(std::map<Key, Count> counts,
                              const std::vector<v1::AuditEntry>& lost) {
  for (const v1::AuditEntry& entry : lost) {
    const bool node = entry.actor().kind() == v1::AuditActor::NODE;
    const auto kind = node ? Principal::Kind::kNode : Principal::Kind::kUser;
    const auto found = counts.find(Key(kind, entry.actor().name()));
    if (found != counts.end()) ++found->second.more;
  }
  absl::MutexLock lock(&mutex_);
  for (auto& [key, count] : counts) {
    Count* now = CountOf({.kind = key.first, .name = key.second, .door = count.door});
    if (now == nullptr) {
      others_ += count.more;
    } else {
      now->more += count.more;
    }
  }
}

}  // namespace berth
