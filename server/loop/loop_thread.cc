#include "server/loop/loop_thread.h"

#include <algorithm>

#include "core/base/check.h"

namespace berth {

// The wall clock may jump while the loop sleeps until a time on it.
constexpr absl::Duration kLongestSleep = absl::Seconds(1);

LoopThread::LoopThread(Loop* loop, Clock* clock, absl::Duration window)
    : loop_(loop), clock_(clock), window_(window) {
  loop_->SetWaker([this] { Notify(); });
  AddPeriodic(absl::Seconds(1), [this] { loop_->ExpireReaders(); });
}

LoopThread::~LoopThread() { Stop(); }

void LoopThread::AddPeriodic(absl::Duration period, std::function<void()> call) {
  BERTH_CHECK(!thread_.joinable() && period > absl::ZeroDuration());
  periodic_.push_back({period, clock_->Steady() + period, std::move(call)});
}

void LoopThread::Start() {
  BERTH_CHECK(!thread_.joinable());
  thread_ = std::thread([this] { Run(); });
}

void LoopThread::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

// While a turn's batch is not durable, the next turn could not announce anything anyway. So it
// waits for the disk, at most the window, and collects commands in the meantime. After idleness
// nothing is on its way to the disk, so nothing waits.
void LoopThread::Run() {
  for (bool running = true; running;) {
    RunPeriodic();
    switch (loop_->RunTurn()) {
      case TurnResult::kWorked:
        running = Coalesce();
        break;
      case TurnResult::kIdle:
        running = Sleep(std::min(loop_->NextWake() - clock_->Now(), UntilNextCall()));
        break;
      case TurnResult::kBlocked:
        running = Sleep(UntilNextCall());
        break;
    }
  }
}

void LoopThread::Notify() {
  absl::MutexLock lock(&mutex_);
  notified_ = true;
}

bool LoopThread::Sleep(absl::Duration at_most) {
  absl::MutexLock lock(&mutex_);
  if (at_most > absl::ZeroDuration()) {
    mutex_.AwaitWithTimeout(absl::Condition(this, &LoopThread::Awake),
                            std::min(at_most, kLongestSleep));
  }
  notified_ = false;
  return !stopping_;
}

// Every notification re-evaluates the condition, also that of a new command.
bool LoopThread::Coalesce() {
  absl::MutexLock lock(&mutex_);
  if (window_ > absl::ZeroDuration() && !stopping_) {
    mutex_.AwaitWithTimeout(absl::Condition(this, &LoopThread::ShouldGoOn), window_);
  }
  return !stopping_;
}

bool LoopThread::ShouldGoOn() const { return stopping_ || loop_->ShouldNotWait(); }

void LoopThread::RunPeriodic() {
  const absl::Duration now = clock_->Steady();
  for (Periodic& periodic : periodic_) {
    if (now < periodic.due) continue;
    periodic.call();
    periodic.due = now + periodic.period;
  }
}

absl::Duration LoopThread::UntilNextCall() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const Periodic& periodic : periodic_) next = std::min(next, periodic.due);
  return next - clock_->Steady();
}

}  // namespace berth
