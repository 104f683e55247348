// Simulated time: events in order of time, then of the order in which they were asked for. One
// thread; nothing here reads a clock.
#ifndef BERTH_TESTS_SIMULATION_SCHEDULER_H_
#define BERTH_TESTS_SIMULATION_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace berth::simulation {

// Whoever events happen to: one process of berthd, one of an agent, a machine, a client. What was
// planned for one that is dead does not happen; for one that stands still it happens afterwards, in
// the same order.
struct Actor {
  bool dead = false;
  absl::Duration paused_until = -absl::InfiniteDuration();
};
using ActorPtr = std::shared_ptr<Actor>;

class Scheduler {
 public:
  using Action = absl::AnyInvocable<void() &&>;

  // Since the simulation began.
  absl::Duration now() const { return now_; }

  void At(absl::Duration when, ActorPtr actor, Action action) {
    heap_.push_back({std::max(when, now_), ++sequence_, std::move(actor), std::move(action)});
    std::push_heap(heap_.begin(), heap_.end());
  }
  void After(absl::Duration delay, ActorPtr actor, Action action) {
    At(now_ + delay, std::move(actor), std::move(action));
  }

  // Does the next event; false if there is none up to `limit`, which is then the time.
  bool Step(absl::Duration limit) {
    while (!heap_.empty() && heap_.front().at <= limit) {
      std::pop_heap(heap_.begin(), heap_.end());
      Event event = std::move(heap_.back());
      heap_.pop_back();
      now_ = event.at;
      if (event.actor->dead) continue;
      if (event.actor->paused_until > now_) {
        event.at = event.actor->paused_until;
        heap_.push_back(std::move(event));
        std::push_heap(heap_.begin(), heap_.end());
        continue;
      }
      ++steps_;
      std::move(event.action)();
      return true;
    }
    now_ = std::max(now_, limit);
    return false;
  }
  uint64_t steps() const { return steps_; }

 private:
  struct Event {
    absl::Duration at;
    uint64_t sequence = 0;
    ActorPtr actor;
    Action action;
    bool operator<(const Event& other) const {  // the heap's top is its greatest
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };
  std::vector<Event> heap_;
  absl::Duration now_;
  uint64_t sequence_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_SCHEDULER_H_
