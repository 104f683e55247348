#include "server/ha/high_availability.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "server/ha/leader_probe.h"
#include "support/log.h"

namespace berth {
namespace {

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

HighAvailability::HighAvailability(std::unique_ptr<Kv> kv, ReplicationLayout layout,
                                   std::unique_ptr<LocalStore> local, MemberOptions options,
                                   std::function<void(const absl::Status&)> end)
    : kv_(std::move(kv)),
      log_(kv_.get(), std::move(layout)),
      store_(std::make_unique<ReplicatedStore>(std::move(local), &log_, end)),
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
  threads_.emplace_back([this] {
    while (member_.confirmer().Await(kUpkeepPeriod)) {
      Sleep(member_.confirmer().Step() ? kConfirmPause : kConfirmRetry);
    }
  });
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
