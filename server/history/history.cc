#include "server/history/history.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "support/errors.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr int kNice = 10;
// Between steps, so that bursts share a write; a query does not wait for it.
constexpr absl::Duration kBetweenSteps = absl::Milliseconds(200);
constexpr absl::Duration kRetryAfter = absl::Seconds(10);
constexpr absl::Duration kComplainAfter = absl::Minutes(1);
// It looks at the store by itself, too.
constexpr absl::Duration kLookEvery = absl::Seconds(1);

void LowerPriority() {
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
}

}  // namespace

History::History(std::optional<HistoryOptions> options, const Store* store, Clock* clock)
    : store_(store), clock_(clock) {
  if (!options.has_value()) return;
  keeper_ = std::make_unique<HistoryKeeper>(*std::move(options), store, clock);
  readers_ = std::make_unique<ThreadExecutor>();
  readers_->Run(LowerPriority);
  thread_ = std::thread([this] {
    LowerPriority();
    Work();
  });
}

History::~History() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void History::OnTurnDurable(uint64_t, std::shared_ptr<const std::vector<Event>>,
                            std::shared_ptr<const std::string>) {
  absl::MutexLock lock(&mutex_);
  woken_ = true;
}

uint64_t History::Lag() const {
  if (keeper_ == nullptr) return 0;
  const uint64_t last = store_->LastSequence(), done = keeper_->counters().revision;
  return last > done ? last - done : 0;
}

// ---- The thread

void History::Work() {
  while (Await()) {
    std::deque<Reach> reaches;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      reaches.swap(reaches_);
      woken_ = false;
    }
    if (!reaches.empty()) {
      // What is there for the latest one is there for all.
      const Reach& last =
          *std::max_element(reaches.begin(), reaches.end(), [](const Reach& a, const Reach& b) {
            return std::tie(a.revision, a.now) < std::tie(b.revision, b.now);
          });
      CatchUp(last.revision, last.now);
      for (Reach& reach : reaches) {
        readers_->Run([query = std::move(reach.query), database = keeper_->database()]() mutable {
          std::move(query)(std::move(database));
        });
      }
    } else {
      StepOnce();
    }
    if (clock_->Steady() < tidy_at_) continue;
    tidy_at_ = clock_->Steady() + HistoryKeeper::kTidy;
    if (absl::Status tidied = keeper_->Tidy(); !tidied.ok()) Complain(tidied);
  }
}

bool History::Await() {
  absl::MutexLock lock(&mutex_);
  const absl::Duration pause = more_ ? absl::Milliseconds(1) : kBetweenSteps;
  mutex_.AwaitWithTimeout(absl::Condition(this, &History::Awake), pause);
  if (more_ || woken_ || Awake()) return !stopping_;
  const auto awake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Awake() || woken_; };
  mutex_.AwaitWithTimeout(absl::Condition(&awake), kLookEvery);
  return !stopping_;
}

void History::StepOnce() {
  if (clock_->Steady() < retry_at_) return;
  const absl::StatusOr<bool> more = keeper_->Step();
  more_ = more.ok() && *more;
  if (more.ok()) return;
  retry_at_ = clock_->Steady() + kRetryAfter;
  Complain(more.status());
}

void History::CatchUp(uint64_t revision, Time now) {
  const absl::Duration until = clock_->Steady() + kCatchUp;
  do {
    StepOnce();
  } while (more_ && keeper_->done() < revision && clock_->Steady() < until);
  if (now == absl::InfinitePast()) return;
  const absl::StatusOr<bool> passed = keeper_->PassTime(revision, now);
  if (!passed.ok()) Complain(passed.status());
}

void History::Complain(const absl::Status& status) {
  if (clock_->Now() - complained_ < kComplainAfter) return;
  complained_ = clock_->Now();
  LogWarn("the usage history does not continue; it is tried again", {{"error", status}});
}

// ---- Queries

void History::AskAt(uint64_t revision, Time now, Query query) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) refused = absl::UnavailableError("the server is stopping");
    if (reaches_.size() >= kMaxQueries) {
      refused = absl::ResourceExhaustedError("too many queries of the usage history wait");
    }
    if (refused.ok()) {
      reaches_.push_back({.revision = revision, .now = now, .query = std::move(query)});
      return;
    }
  }
  std::move(query)(refused);
}

// The loop says what its present is: no later turn has an earlier time. A standby knows only its
// last turn.
void History::Ask(Loop& loop, Query query) {
  if (keeper_ == nullptr) {
    return std::move(query)(absl::FailedPreconditionError(
        "this server keeps no usage history: usage.enabled is false in its configuration"));
  }
  if (!loop.leads()) return AskAt(0, absl::InfinitePast(), std::move(query));
  auto shared = std::make_shared<Query>(std::move(query));
  const absl::Status posted = loop.Post([this, shared, &loop](Turn& turn) {
    const uint64_t revision = turn.seen();
    const Time now = turn.now();
    loop.WhenDurable(revision, [this, shared, revision, now](const absl::Status&) {
      AskAt(revision, now, std::move(*shared));
    });
  });
  if (!posted.ok()) AskAt(0, absl::InfinitePast(), std::move(*shared));
}

}  // namespace berth
