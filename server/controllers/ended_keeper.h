// EndedKeeper: bounds the memory used by tasks that have ended.
//
// An ended job, and the outcome of each task that ran, is kept until its time to live is over. If
// more tasks than the bound have ended, the jobs whose time to live ends first are deleted early,
// until few enough remain. Jobs on which others depend stay, and so do jobs of which no task ran,
// because they hold nothing.
//
// Timers of jobs that have not ended are interleaved with theirs, in any number. One turn examines
// a bounded number of timers; the next continues after them, and starts over at the end.
#ifndef BERTH_SERVER_CONTROLLERS_ENDED_KEEPER_H_
#define BERTH_SERVER_CONTROLLERS_ENDED_KEEPER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/loop/loop.h"

namespace berth {

class EndedKeeper {
 public:
  static constexpr absl::Duration kTick = absl::Seconds(1);
  static constexpr int kMaxDeleted = 1'000;     // jobs in one turn
  static constexpr int kMaxExamined = 100'000;  // timers in one turn

  // `most` tasks. The loop outlives it, and it outlives the loop's turns. Create before the first
  // turn.
  EndedKeeper(Loop* loop, int64_t most, int most_looked = kMaxExamined)
      : loop_(loop), most_(most), max_examined_(most_looked) {}

  // About every kTick, on the loop's thread and not within a turn.
  void Tick();

 private:
  static constexpr std::pair<absl::Time, JobId> kFirst = {absl::InfinitePast(), JobId{}};

  void Look(Turn& turn);
  std::vector<JobId> JobsToDelete(const ClusterState& state, int64_t tasks);

  Loop* const loop_;
  const int64_t most_;
  const int max_examined_;
  bool posted_ = false;
  std::pair<absl::Time, JobId> next_ = kFirst;  // the timer at which the next pass begins
  absl::Time told_ = absl::InfinitePast();      // when the log last mentioned it
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_ENDED_KEEPER_H_
