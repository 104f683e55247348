#include "server/ha/member.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/log.h"

namespace berth {
namespace {

namespace pb = store::v1;

constexpr absl::Duration kEtcdRetry = absl::Milliseconds(50);
constexpr absl::Duration kFresh = absl::Seconds(4);  // since it was heard of: it can take over now
constexpr absl::Duration kMemberSilence = absl::Seconds(10);  // then a member counts as gone
constexpr absl::Duration kMemberForgotten =
    absl::Hours(24);  // silent for so long: it is not listed
// A campaign whose first read takes longer says more about etcd than about the leader.
constexpr absl::Duration kSlowRead = absl::Milliseconds(200);
constexpr absl::Duration kFastAgain = absl::Minutes(1);
constexpr absl::Duration kOthersFirst = absl::Milliseconds(300);
constexpr int kBeatsPerLease = 4;
constexpr int kOthersOfName = 3;  // in a row
constexpr int kResignTries = 20;
constexpr uint64_t kUpkeepsPerCompaction = 5;
constexpr size_t kUpkeepsBeforeTrim = 5;

}  // namespace

Member::Member(ReplicatedLog* log, ReplicatedStore* store, Clock* clock, MemberOptions options,
               MemberHooks hooks)
    : log_(log),
      store_(store),
      clock_(clock),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      confirmer_(log, clock, [this](const absl::Status& status) { End(status); }),
      etcd_heard_(clock->Steady()) {}

absl::Duration Member::Step() {
  if (ended_.load()) return options_.poll;
  return leads_term_.load() == 0 ? FollowOnce() : ReignOnce();
}

// The first call counts.
void Member::End(const absl::Status& why) {
  if (ended_.exchange(true)) return;
  confirmer_.Stop();
  hooks_.end(why);
}

// ---- Following

absl::Duration Member::FollowOnce() {
  const absl::StatusOr<ClusterView> view = log_->Read(store_->LastSequence(), /*stale=*/true);
  NoteEtcd(view.status());
  const absl::Duration now = clock_->Steady();
  if (absl::IsFailedPrecondition(view.status())) {  // not the etcd of before
    End(view.status());
    return options_.poll;
  }
  if (!view.ok()) {
    changed_ = now;  // the leader cannot be heard either
    return kEtcdRetry;
  }
  if (view->revision < seen_revision_) return options_.poll;  // of a member of etcd that is behind
  seen_revision_ = view->revision;
  Watch(*view, now);
  if (!CatchUp(*view)) return options_.poll;
  if (view->more) return absl::ZeroDuration();
  if (attempt_ != 0 && view->leader.attempt() == attempt_) return TakeOver(view->term);
  return ShouldCampaign(now) ? Campaign() : options_.poll;
}

void Member::Watch(const ClusterView& view, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  const bool life = view.term != view_.term || view.alive_revision != view_.alive_revision ||
                    !view.groups.empty();
  if (life || changed_ == absl::InfiniteDuration()) changed_ = now;
  view_ = view;  // without the log
  earlier_terms_ = view.earlier_terms;
  status_.term = view.term;
  status_.leader = view.leader.member();
  status_.leader_address = view.leader.address();
}

bool Member::CatchUp(const ClusterView& view) {
  if (view.next_generation != 0) {
    End(absl::FailedPreconditionError(
        view.next_generation == kNoGeneration
            ? std::string("the cluster has left etcd")
            : absl::StrCat("a restore has begun generation ", view.next_generation,
                           " of the cluster; this server's store is from before it")));
    return false;
  }
  if (view.base.through() > store_->LastSequence()) {
    End(absl::OutOfRangeError(absl::StrCat("etcd's log begins after batch ", view.base.through(),
                                           ", this server's store ends with batch ",
                                           store_->LastSequence())));
    return false;
  }
  for (const ReplicatedBatches& group : view.groups) {
    const absl::Status status = store_->Follow(group);
    {
      absl::MutexLock lock(&mutex_);
      disk_ = absl::IsResourceExhausted(status) ? std::string(status.message()) : "";
      caught_up_ = status.ok();
    }
    if (absl::IsResourceExhausted(status)) return false;
    if (!status.ok()) {
      End(status);
      return false;
    }
    for (const Batch& batch : group.batches) Take(batch);
  }
  absl::MutexLock lock(&mutex_);
  caught_up_ = !view.more;
  return true;
}

void Member::Take(const Batch& batch) {
  {
    absl::MutexLock lock(&mutex_);
    ++status_.followed;
    if (!broken_.empty()) return;
  }
  const Loop::Followed followed = hooks_.follow(batch);
  absl::MutexLock lock(&mutex_);
  const bool same_program = view_.leader.version() == options_.version;
  std::string broken;
  if (!followed.status.ok()) {
    broken = absl::StrCat("it cannot apply the leader's batch ", batch.sequence, ": ",
                          followed.status.message());
  } else if (same_program) {
    ++status_.compared;
    if (followed.same) return;
    broken = absl::StrCat("its state differs from the leader's since batch ", batch.sequence, ": ",
                          followed.difference);
  }
  if (broken.empty()) return;
  ++status_.differences;
  broken_ = broken;
  LogError("this standby cannot lead", {{"reason", broken}});
}

std::string Member::NotEligible() const {
  absl::MutexLock lock(&mutex_);
  if (!broken_.empty()) return broken_;
  if (!disk_.empty()) return disk_;
  return caught_up_ ? "" : "it is still catching up";
}

void Member::NoteEtcd(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (status.ok() != status_.etcd.ok()) {
    if (status.ok()) {
      LogInfo("etcd answers again");
    } else {
      LogWarn("etcd does not answer", {{"error", status}});
    }
  }
  status_.etcd = status;
  if (status.ok()) etcd_heard_ = clock_->Steady();
}

// ---- Taking over

bool Member::ShouldCampaign(absl::Duration now) {
  if (!NotEligible().empty()) return false;
  absl::MutexLock lock(&mutex_);
  if (view_.term == 0) return true;
  if (view_.alive.resigned()) {
    const std::string& to = view_.alive.hand_over_to();
    return to.empty() || to == options_.name || now - changed_ > kOthersFirst;
  }
  // An earlier process of this server: it is gone, because this one has its store.
  if (view_.leader.member() == options_.name) return true;
  if (now - changed_ > options_.lease) {
    LogWarn("the leader is silent",
            {{"leader", view_.leader.member()}, {"for", absl::FormatDuration(now - changed_)}});
    return true;
  }
  if (hooks_.is_gone == nullptr || now - last_fast_ < kFastAgain) return false;
  if (!hooks_.is_gone(view_.leader.address())) return false;
  LogWarn("the leader's process is gone", {{"leader", view_.leader.member()}});
  last_fast_ = now;
  return true;
}

absl::Duration Member::Campaign() {
  const absl::Duration begin = clock_->Steady();
  uint64_t silent_term = 0;
  int64_t silent_revision = 0;
  {
    absl::MutexLock lock(&mutex_);
    silent_term = view_.term;
    silent_revision = view_.alive_revision;
  }
  // What a stale read did not show.
  const absl::StatusOr<ClusterView> view = log_->Read(store_->LastSequence(), /*stale=*/false);
  NoteEtcd(view.status());
  const absl::Duration now = clock_->Steady();
  if (!view.ok() || now - begin > kSlowRead) {
    changed_ = now;
    return kEtcdRetry;
  }
  seen_revision_ = std::max(seen_revision_, view->revision);
  const bool moved = view->term != silent_term || view->alive_revision != silent_revision;
  Watch(*view, now);
  if (!CatchUp(*view) || moved || view->more) return absl::ZeroDuration();

  attempt_ = options_.seed + ++attempts_;
  pb::LeaderRecord record;
  record.set_member(options_.name);
  record.set_address(options_.address);
  record.set_version(options_.version);
  record.set_attempt(attempt_);
  const absl::StatusOr<uint64_t> term = log_->BeginTerm(view->term, record);
  NoteEtcd(IsDeposed(term.status()) ? absl::OkStatus() : term.status());
  if (term.ok()) return TakeOver(*term);
  // Another was faster, or there was no answer: the next view tells.
  changed_ = clock_->Steady();
  return options_.poll;
}

// What holds the term back is tried again with the next step.
absl::Duration Member::TakeOver(uint64_t term) {
  std::vector<ClusterView::TornPart> torn;
  for (bool more = true; more;) {
    const absl::StatusOr<ClusterView> view = log_->Read(store_->LastSequence(), /*stale=*/false);
    NoteEtcd(view.status());
    if (!view.ok()) return kEtcdRetry;
    if (view->term != term) {
      attempt_ = 0;
      return options_.poll;
    }
    Watch(*view, clock_->Steady());
    if (!CatchUp(*view)) return options_.poll;
    if (view->gap) {
      End(absl::DataLossError(absl::StrCat("etcd's log lacks the batches after ",
                                           store_->LastSequence(), ", but has later ones")));
      return options_.poll;
    }
    torn = view->torn;
    more = view->more;
  }
  const std::string not_eligible = NotEligible();
  if (!not_eligible.empty()) {
    pb::AliveRecord alive;
    alive.set_resigned(true);
    log_->Beat(term, alive).IgnoreError();
    End(absl::FailedPreconditionError(absl::StrCat("this server cannot lead: ", not_eligible)));
    return options_.poll;
  }
  if (!torn.empty()) {
    const absl::Status cut = log_->Cut(term, torn);
    if (IsDeposed(cut)) attempt_ = 0;
    if (!cut.ok()) return kEtcdRetry;
    LogWarn("cut off a group of batches that was never acknowledged",
            {{"after batch", store_->LastSequence()}, {"parts", torn.size()}});
  }
  LogInfo("this server leads the cluster", {{"term", term}, {"batch", store_->LastSequence()}});
  store_->Lead(term);
  confirmer_.Lead(term);
  {
    absl::MutexLock lock(&mutex_);
    status_.leads = true;
  }
  leads_term_ = term;
  hooks_.lead(term);
  return absl::ZeroDuration();
}

// ---- Leading

absl::Duration Member::ReignOnce() {
  const uint64_t term = leads_term_.load();
  const int64_t began = store_->append_began();
  const absl::Duration waits =
      began == 0 ? absl::ZeroDuration() : clock_->Steady() - absl::Nanoseconds(began);
  const absl::Duration silence = std::max(waits, hooks_.loop_silence());
  pb::AliveRecord alive;
  alive.set_beat(++beat_);
  alive.set_resigned(silence > options_.slow && HasSuccessor());
  absl::Status status;
  {
    absl::MutexLock lock(&reign_mutex_);
    if (resigned_) return options_.poll;
    status = log_->Beat(term, alive);
  }
  NoteEtcd(IsDeposed(status) ? absl::OkStatus() : status);
  if (IsDeposed(status) || absl::IsFailedPrecondition(status)) {
    End(status);
  } else if (status.ok() && alive.resigned()) {
    End(absl::DeadlineExceededError(
        absl::StrCat("nothing has become durable for ", absl::FormatDuration(silence),
                     ", while etcd answers: another server takes over")));
  }
  return status.ok() ? options_.lease / kBeatsPerLease : kEtcdRetry;
}

absl::Status Member::Resign(const std::string& to) {
  const uint64_t term = leads_term_.load();
  if (term == 0) return absl::FailedPreconditionError("this server does not lead the cluster");
  absl::MutexLock lock(&reign_mutex_);
  if (std::exchange(resigned_, true)) {
    return absl::FailedPreconditionError("it has resigned already");
  }
  pb::AliveRecord alive;
  alive.set_resigned(true);
  alive.set_hand_over_to(to);
  confirmer_.Stop();
  absl::Status status;
  for (int i = 0; i < kResignTries; ++i) {
    status = log_->Beat(term, alive);
    if (status.ok() || IsDeposed(status)) break;
    absl::SleepFor(kEtcdRetry);
  }
  leads_term_ = 0;
  ended_ = true;  // it follows no more, either: the process ends
  return IsDeposed(status) ? absl::OkStatus() : status;
}

bool Member::HasSuccessor() const { return CheckSuccessor("").ok(); }

absl::Status Member::CheckSuccessor(const std::string& to) const {
  const absl::Duration now = clock_->Steady();
  absl::MutexLock lock(&mutex_);
  std::string reasons;
  for (const MemberInfo& member : members_) {
    if (member.name == options_.name || (!to.empty() && member.name != to)) continue;
    const auto heard = heard_.find(member.name);
    const bool fresh =
        heard != heard_.end() && heard->second.beats && now - heard->second.at < kFresh;
    std::string why = member.record.not_eligible();
    if (member.record.leads()) why = "it led until now, and is starting again";
    if (!fresh) why = "it is not running";
    if (why.empty()) return absl::OkStatus();
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", member.name, ": ", why);
  }
  if (!reasons.empty()) return absl::FailedPreconditionError(reasons);
  return absl::NotFoundError(to.empty() ? "there is no other server"
                                        : absl::StrCat("there is no other server ", to));
}

// ---- Upkeep

void Member::Upkeep() {
  if (ended_.load()) return;
  const uint64_t before = store_->local().SyncedSequence();
  if (absl::Status status = store_->local().Sync(); !status.ok()) return End(status);
  pb::MemberRecord record;
  record.set_address(options_.address);
  record.set_version(options_.version);
  record.set_newest_format(kStoreFormat);
  record.set_applied(store_->LastSequence());
  record.set_synced(std::max(before, store_->local().SyncedSequence()));
  record.set_beat(++upkeeps_);
  record.set_copy_token(options_.copy_token);
  const uint64_t term = leads_term_.load();
  record.set_leads(term != 0);
  if (term == 0) record.set_not_eligible(NotEligible());
  log_->WriteMember(options_.name, record).IgnoreError();  // it is written again in a second
  HearMembers();
  if (term == 0) return;
  ForgetMembers(term);
  TrimLog(term);
}

void Member::HearMembers() {
  const auto found = log_->ReadMembers();
  if (!found.ok()) return;
  const absl::Duration now = clock_->Steady();
  // A late write of an earlier process of this server is no other server.
  bool other_of_name = false;
  for (const auto& [name, record] : *found) {
    other_of_name |= name == options_.name && record.copy_token() != options_.copy_token;
  }
  others_of_name_ = other_of_name ? others_of_name_ + 1 : 0;
  if (others_of_name_ >= kOthersOfName) {
    return End(absl::FailedPreconditionError(absl::StrCat(
        "another server of the cluster has the name \"", options_.name, "\" (ha.name)")));
  }
  absl::MutexLock lock(&mutex_);
  members_.clear();
  for (const auto& [name, record] : *found) {
    Heard& heard = heard_.try_emplace(name, Heard{record.beat(), now}).first->second;
    if (heard.beat != record.beat()) heard = {.beat = record.beat(), .at = now, .beats = true};
    const bool lately = name == options_.name || now - heard.at < kMemberSilence;
    members_.push_back({.name = name,
                        .record = record,
                        .alive = lately && (heard.beats || name == options_.name),
                        .may_be_alive = lately});
  }
}

// One that comes back writes its record again.
void Member::ForgetMembers(uint64_t term) {
  const absl::Duration now = clock_->Steady();
  std::vector<std::string> gone;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, heard] : heard_) {
      if (name != options_.name && now - heard.at > kMemberForgotten) gone.push_back(name);
    }
    for (const std::string& name : gone) heard_.erase(name);
  }
  for (const std::string& name : gone) {
    LogInfo("a server that is gone is forgotten", {{"server", name}});
    log_->DeleteMember(term, name).IgnoreError();  // it is heard of again, and forgotten later
  }
}

ReplicatedStore::Cut Member::Trimmable(uint64_t synced) const {
  {
    absl::MutexLock lock(&mutex_);
    for (const MemberInfo& member : members_) {
      if (member.may_be_alive) synced = std::min(synced, member.record.synced());
    }
  }
  return store_->Trimmable(synced, options_.bounds);
}

absl::Status Member::FreeEtcd() {
  const uint64_t term = leads_term_.load();
  if (term == 0) return absl::FailedPreconditionError("this server does not lead the cluster");
  const ReplicatedStore::Cut cut = Trimmable(store_->local().SyncedSequence());
  absl::Status deleted =
      cut.through == 0 ? absl::OkStatus() : log_->DeleteThrough(term, cut.through);
  if (IsDeposed(deleted)) End(deleted);
  if (!deleted.ok()) return deleted;
  if (const auto now = log_->ReadTerm(); !now.ok()) return now.status();  // reads the revision, too
  return log_->Compact(log_->revision());
}

// What was synced some upkeeps ago: a server that has just begun to follow is not heard of yet.
void Member::TrimLog(uint64_t term) {
  synced_before_.push_back(store_->local().SyncedSequence());
  if (synced_before_.size() > kUpkeepsBeforeTrim) synced_before_.pop_front();
  const ReplicatedStore::Cut cut =
      Trimmable(synced_before_.size() < kUpkeepsBeforeTrim ? 0 : synced_before_.front());
  if (cut.through != 0) {
    const absl::Status status = log_->Trim(term, cut.through, cut.hash);
    if (IsDeposed(status)) return End(status);
    if (status.ok()) store_->NoteTrimmed(cut.through);
  }
  if (upkeeps_ % kUpkeepsPerCompaction != 0) return;
  // Readers need only what is current.
  log_->Compact(log_->revision()).IgnoreError();
}

// ---- For others

std::string Member::leader_address() const {
  absl::MutexLock lock(&mutex_);
  return status_.leader_address;
}

MemberStatus Member::status() const {
  std::string not_eligible = NotEligible();
  absl::MutexLock lock(&mutex_);
  MemberStatus status = status_;
  status.not_eligible = status.leads ? "" : std::move(not_eligible);
  status.etcd_silence = clock_->Steady() - etcd_heard_;
  const ReplicatedLogSize size = store_->log_size();
  status.log_bytes = size.bytes;
  status.log_parts = size.parts;
  return status;
}

std::vector<MemberInfo> Member::members() const {
  absl::MutexLock lock(&mutex_);
  return members_;
}

}  // namespace berth
