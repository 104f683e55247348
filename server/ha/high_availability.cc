#include "server/ha/high_availability.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "server/ha/leader_probe.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr absl::Duration kLookPeriod = absl::Seconds(10);
constexpr absl::Duration kUpkeepPeriod = absl::Seconds(1);
// Between two confirming reads: those who ask in between share the next one.
constexpr absl::Duration kConfirmPause = absl::Milliseconds(1);
constexpr absl::Duration kConfirmRetry = absl::Milliseconds(20);

}  // namespace

void ExitToRestart(const absl::Status& why) {
  const std::string text(why.message());
  std::fprintf(stderr, "berthd: %s; exiting, to be started again as a standby\n", text.c_str());
  LogError("this server ends its role; exiting, to be started again", {{"reason", why}});
  FlushLog();
  _exit(kExitToRestart);
}

HighAvailability::HighAvailability(std::unique_ptr<Kv> kv, EtcdAdmin* admin,
                                   ReplicationLayout layout, std::unique_ptr<LocalStore> local,
                                   MemberOptions options,
                                   std::function<void(const absl::Status&)> end)
    : kv_(std::move(kv)),
      admin_(admin),
      log_(kv_.get(), std::move(layout)),
      store_(std::make_unique<ReplicatedStore>(std::move(local), &log_, &SystemClock(), end)),
      member_(&log_, store_.get(), &SystemClock(), std::move(options),
              {.follow = [this](const Batch& batch) { return hooks_.follow(batch); },
               .lead = [this](uint64_t term) { hooks_.lead(term); },
               .end = std::move(end),
               .is_gone = [probe = std::make_shared<LeaderProbe>()](
                              const std::string& address) { return probe->IsGone(address); },
               .loop_silence = [this] { return hooks_.loop_silence(); }}) {}

HighAvailability::~HighAvailability() { Stop(); }

void HighAvailability::Start(Hooks hooks) {
  hooks_ = std::move(hooks);
  threads_.emplace_back([this] {
    absl::Duration wait;
    do {
      wait = member_.Step();
    } while (Sleep(wait));
  });
  threads_.emplace_back([this] {
    do {
      member_.Upkeep();
      note_();
    } while (Sleep(kUpkeepPeriod));
  });
  if (admin_ != nullptr) {
    threads_.emplace_back([this] {
      do {
        LookAtEtcd();
      } while (Sleep(kLookPeriod));
    });
  }
  threads_.emplace_back([this] {
    while (member_.confirmer().Await(kUpkeepPeriod)) {
      Sleep(member_.confirmer().Step() ? kConfirmPause : kConfirmRetry);
    }
  });
}

void HighAvailability::LookAtEtcd() {
  std::vector<EtcdMemberStatus> members = admin_->Members();
  absl::MutexLock lock(&mutex_);
  etcd_members_ = std::move(members);
}

std::vector<EtcdMemberStatus> HighAvailability::etcd_members() const {
  absl::MutexLock lock(&mutex_);
  return etcd_members_;
}

absl::StatusOr<HighAvailability::Repaired> HighAvailability::RepairEtcd() {
  if (admin_ == nullptr) return absl::UnimplementedError("this etcd cannot be repaired here");
  Repaired repaired{.before = admin_->Members()};
  if (absl::Status freed = member_.FreeEtcd(); !freed.ok()) return freed;
  for (const bool leader : {false, true}) {
    for (const EtcdMemberStatus& member : repaired.before) {
      if (!member.status.ok() || member.leads != leader) continue;
      const absl::Status done = admin_->Defragment(member.endpoint);
      if (!done.ok()) return done;
    }
  }
  if (absl::Status disarmed = admin_->DisarmNoSpace(); !disarmed.ok()) return disarmed;
  repaired.after = admin_->Members();
  return repaired;
}

bool HighAvailability::Sleep(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  if (time > absl::ZeroDuration()) {
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), time);
  }
  return !stopping_;
}

void HighAvailability::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  member_.confirmer().Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  store_->local().Sync().IgnoreError();  // the log in etcd has what is missing
}

}  // namespace berth
