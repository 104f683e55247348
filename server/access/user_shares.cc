#include "server/access/user_shares.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "support/errors.h"

namespace berth {
namespace {

constexpr absl::Duration kRetrySoon = absl::Milliseconds(200);
constexpr absl::Duration kRetryLater = absl::Seconds(5);

absl::Status TooMuch(const Caller& caller, int64_t most, absl::string_view what,
                     absl::string_view limit, absl::Duration retry) {
  const std::string who = caller.principal.name.empty() ? "clients without a name" : TextOf(caller);
  return RetryLaterError(absl::StatusCode::kResourceExhausted,
                         absl::StrCat(who, " may have at most ", most, " ", what, " (limits.",
                                      limit, "); try again later"),
                         retry);
}

// The tasks of a job (server/access/task_caller.h) share a part of their own.
std::string KeyOf(const Caller& caller) {
  if (caller.task.has_value()) return absl::StrCat("job/", caller.task->key.job.value);
  const bool node = caller.principal.kind == Principal::Kind::kNode;
  return node ? absl::StrCat("node/", caller.principal.name)
              : absl::StrCat("user/", caller.principal.name);
}

}  // namespace

bool UserShares::TakeCredit(Use& use) {
  if (limits_.requests_per_second == 0) return true;
  const auto rate = static_cast<double>(limits_.requests_per_second);
  const absl::Duration now = clock_->Steady();
  const bool is_new = use.counted == absl::ZeroDuration();
  use.credit =
      is_new ? rate : std::min(rate, use.credit + rate * absl::ToDoubleSeconds(now - use.counted));
  use.counted = now;
  if (use.credit < 1) return false;
  use.credit -= 1;
  return true;
}

// How many requests the user may have under way now.
int64_t UserShares::RequestsNow(Use& use) {
  const int64_t second = absl::ToInt64Seconds(clock_->Steady());
  if (second != second_) {
    callers_before_ = second == second_ + 1 ? callers_ : 0;
    callers_ = 0;
    second_ = second;
  }
  if (use.second != second) ++callers_;
  use.second = second;
  const int64_t users = std::max(callers_, callers_before_);
  if (users <= 1) return limits_.requests;
  return std::min(limits_.requests, std::max(kLeast, kTogether / users));
}

absl::Duration UserShares::HoldTime() {
  if (held_.fetch_add(1) >= kMostHeld) {
    Unhold();
    return absl::ZeroDuration();
  }
  return absl::Milliseconds(200 + hold_number_.fetch_add(1) * 61 % 200);
}

UserShares::Part UserShares::PartOf(const std::string& user, int64_t jobs, bool stream) {
  Part part;
  part.shares_ = this;
  part.user_ = user;
  part.jobs_ = jobs;
  part.stream_ = stream;
  return part;
}

absl::StatusOr<UserShares::Part> UserShares::Begin(const Caller& caller, int64_t jobs,
                                                   bool essential) {
  const int64_t reserve = essential ? kEssential : 0;
  absl::MutexLock lock(&mutex_);
  ForgetIdle();
  const std::string key = KeyOf(caller);
  Use& use = uses_[key];
  const int64_t most = RequestsNow(use);
  if (use.requests >= most + reserve) {
    return TooMuch(caller, most, "calls under way", "requests_per_user", kRetrySoon);
  }
  // One call may always be as large as a call may be.
  if (jobs > 0 && use.jobs > 0 && use.jobs + jobs > limits_.jobs) {
    return TooMuch(caller, limits_.jobs, "jobs in submissions under way", "submitted_jobs_per_user",
                   kRetrySoon);
  }
  if (!essential && !TakeCredit(use)) {
    return TooMuch(caller, limits_.requests_per_second, "calls a second",
                   "requests_per_second_per_user", kRetrySoon);
  }
  ++use.requests;
  use.jobs += jobs;
  return PartOf(key, jobs, false);
}

absl::StatusOr<UserShares::Part> UserShares::BeginStream(const Caller& caller) {
  absl::MutexLock lock(&mutex_);
  ForgetIdle();
  const std::string key = KeyOf(caller);
  Use& use = uses_[key];
  if (use.streams >= limits_.streams) {
    return TooMuch(caller, limits_.streams, "watches, followed outputs and commands in tasks",
                   "streams_per_user", kRetryLater);
  }
  ++use.streams;
  return PartOf(key, 0, true);
}

void UserShares::Leave(const std::string& user, int64_t jobs, bool stream) {
  absl::MutexLock lock(&mutex_);
  Use& use = uses_[user];
  use.jobs -= jobs;
  --(stream ? use.streams : use.requests);
}

// Keeps users whose rate is still counted. What is looked at doubles with what remains, so that
// this stays cheap.
void UserShares::ForgetIdle() {
  if (uses_.size() < forget_at_) return;
  const absl::Duration now = clock_->Steady();
  absl::erase_if(uses_, [&](const auto& entry) {
    const Use& use = entry.second;
    return use.requests == 0 && use.streams == 0 && now - use.counted > absl::Seconds(1);
  });
  forget_at_ = std::max<size_t>(1024, 2 * uses_.size());
}

size_t UserShares::users() const {
  absl::MutexLock lock(&mutex_);
  return uses_.size();
}

}  // namespace berth
