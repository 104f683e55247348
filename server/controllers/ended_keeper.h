// EndedKeeper: bounds the memory of tasks that have ended.
//
// A job that has ended is kept until its time to live is over, and with it the outcome of each task
// that ran. If more tasks than the bound have ended, the jobs whose time to live ends first are
// deleted before their time, until few enough are left. Jobs on which others depend stay, and so do
// jobs of which no task ran: they hold nothing.
//
// Timers of jobs that have not ended stand among theirs, in any number. One turn looks at so many
// timers; the next goes on behind them, and from the first again once it was at the last.
#ifndef BERTH_SERVER_CONTROLLERS_ENDED_KEEPER_H_
#define BERTH_SERVER_CONTROLLERS_ENDED_KEEPER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/loop.h"

namespace berth {

class EndedKeeper {
 public:
  static constexpr absl::Duration kTick = absl::Seconds(1);
  static constexpr int kMostDeleted = 1'000;   // jobs in one turn
  static constexpr int kMostLooked = 100'000;  // timers in one turn

  // `most` tasks. The loop outlives it, and it the loop's turns. Before the first turn.
  EndedKeeper(Loop* loop, int64_t most, int most_looked = kMostLooked)
      : loop_(loop), most_(most), most_looked_(most_looked) {}

  // About every kTick, on the loop's thread and not within a turn.
  void Tick();

 private:
  static constexpr std::pair<absl::Time, JobId> kFirst = {absl::InfinitePast(), JobId{}};

  void Look(Turn& turn);
  std::vector<JobId> JobsToForget(const ClusterState& state, int64_t tasks);

  Loop* const loop_;
  const int64_t most_;
  const int most_looked_;
  bool posted_ = false;
  std::pair<absl::Time, JobId> next_ = kFirst;  // the timer at which the next look begins
  absl::Time told_ = absl::InfinitePast();      // in the log
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_ENDED_KEEPER_H_
